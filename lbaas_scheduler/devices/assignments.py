"""Which agent drives which device: its pinned host's, else a live one that reports the device's type.

Any number of servers do this at once. A binding moves by compare-and-swap, and in the same transaction every deployment on the
device gets a new epoch and is made due: the new agent is told everything, and the old one's late reports count for nothing.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from lbaas_scheduler.db import agents, device_agents, renewals, schedulable
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.device_agents import Homeless
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.agents import Agent
from lbaas_scheduler.errors import Conflict

LOG = logging.getLogger(__name__)

BATCH = 100
"""How many devices move in one transaction."""


@dataclass(frozen=True, slots=True)
class Move:
    """A device that got an agent, or another one. ``old_host`` None = it had none."""

    device_id: str
    old_host: str | None
    new_host: str


class Assignments:
    """Gives devices to agents.

    :param agent_down_seconds: an agent whose last report is older than this counts as dead.
    :param choose: breaks ties between agents that drive equally many devices.
    """

    def __init__(self, database: Database, agent_down_seconds: float, choose: random.Random | None = None) -> None:
        self._database = database
        self._agent_down = timedelta(seconds=agent_down_seconds)
        self._choose = choose or random.Random()  # noqa: S311 - spreads load, hides nothing

    def heard_since(self) -> datetime:
        """An agent that was heard since then counts as alive."""
        return clock.utcnow() - self._agent_down

    def assign(self, conn: sa.Connection, device_ids: Collection[str]) -> list[Move]:
        """In the caller's transaction: give new devices, and those whose pin changed, their agents; keep their flags true."""
        heard_since = self.heard_since()
        wanting = [it for it in device_agents.among(conn, device_ids) if it.binding is None or _misplaced(it)]
        moves = self._settle(conn, wanting, heard_since)
        schedulable.refresh(conn, heard_since, device_ids)
        return moves

    def require_able(self, conn: sa.Connection, device_id: str, device_type: str, host: str) -> None:
        """In the caller's transaction: a device is to be pinned to ``host``.

        :raises Conflict: an agent drives it elsewhere, and the one on ``host`` cannot take it over now.
        """
        binding = device_agents.by_devices(conn, [device_id]).get(device_id)
        if binding is None or binding.host == host:
            return
        there = [agent for agent in agents.list_all(conn) if agent.host == host]
        why = _unable(there, device_type, self.heard_since())
        if why:
            reason = f"device {device_id} stays with the agent on {binding.host}, since {why.format(host=host)}"
            raise Conflict(reason=reason)

    def assign_waiting(self) -> list[Move]:
        """Give an agent to devices that had to wait for one."""
        return self._in_batches(device_agents.without_agent)

    def take_over(self) -> list[Move]:
        """Give the devices of dead agents to live ones, spread over them, and bring pinned devices home.

        Where no live agent can take a device, its binding stays.
        """
        return self._in_batches(device_agents.to_be_moved)

    def vacate(self, conn: sa.Connection, agent_id: str) -> tuple[list[Move], int]:
        """In the caller's transaction: give all devices of an agent to others, as far as possible.

        :returns: the moves, and how many devices stay because no other agent can take them.
        """
        heard_since = self.heard_since()
        driven = device_agents.driven_by(conn, agent_id)
        moves = self._settle(conn, driven, heard_since, without=agent_id)
        schedulable.refresh(conn, heard_since, [it.device_id for it in driven])
        return moves, len(driven) - len(moves)

    def refresh(self, conn: sa.Connection, agent_id: str) -> int:
        """In the caller's transaction: an agent's state changed; keep the flags of its devices true."""
        return schedulable.refresh_agent(conn, self.heard_since(), agent_id)

    def refresh_all(self) -> int:
        """Correct the flags of all devices whose agents died or came back. Writes nothing when nothing changed.

        :returns: how many devices were opened or closed.
        """
        heard_since = self.heard_since()
        stale = self._database.read(lambda conn: schedulable.find_stale(conn, heard_since))
        # A transaction each, so that the rows of a large fleet are not locked all at once.
        return sum(
            self._database.write(lambda conn, some=ids: schedulable.refresh(conn, heard_since, some))  # type: ignore[misc]
            for ids in chunks(stale, BATCH)
        )

    def _in_batches(self, find: Callable[[sa.Connection, datetime, int], list[Homeless]]) -> list[Move]:
        moves: list[Move] = []
        while batch := self._move_batch(find):
            moves += batch
            if len(batch) < BATCH:
                break
        return moves

    def _move_batch(self, find: Callable[[sa.Connection, datetime, int], list[Homeless]]) -> list[Move]:
        heard_since = self.heard_since()
        found = self._database.read(lambda conn: find(conn, heard_since, BATCH))
        return self._database.write(lambda conn: self._settle_and_refresh(conn, found, heard_since)) if found else []

    def _settle_and_refresh(self, conn: sa.Connection, found: Sequence[Homeless], heard_since: datetime) -> list[Move]:
        moves = self._settle(conn, found, heard_since)
        schedulable.refresh(conn, heard_since, [move.device_id for move in moves])
        return moves

    def _settle(
        self, conn: sa.Connection, wanting: Sequence[Homeless], heard_since: datetime, without: str | None = None
    ) -> list[Move]:
        if not wanting:
            return []
        choice = _Choice(
            [agent for agent in agents.list_all(conn) if agent.id != without],
            device_agents.counts(conn),
            heard_since,
            self._choose,
        )
        moves = []
        for device in sorted(wanting, key=lambda it: it.device_id):
            agent = choice.agent_for(device)
            if agent is not None and _bind(conn, device, agent):
                old_host = device.binding.host if device.binding else None
                LOG.info("Device %s is driven by the agent on %s now, before: %s", device.device_id, agent.host, old_host)
                moves.append(Move(device.device_id, old_host, agent.host))
        return moves


class _Choice:
    """Picks agents one device after the other, counting what it gave."""

    def __init__(self, known: Sequence[Agent], counts: dict[str, int], heard_since: datetime, choose: random.Random) -> None:
        self._known = known
        self._counts = dict(counts)
        self._heard_since = heard_since
        self._choose = choose

    def agent_for(self, device: Homeless) -> Agent | None:
        agent = self._least_busy(device) if device.pinned_host is None else self._pinned(device)
        if agent is not None:
            self._counts[agent.id] = self._counts.get(agent.id, 0) + 1
        return agent

    def _pinned(self, device: Homeless) -> Agent | None:
        there = [agent for agent in self._known if agent.host == device.pinned_host]
        able = [agent for agent in there if device.device_type in agent.drivers]
        if device.binding is None:
            # Dead or not, it is the one that the operator wants; while it is dead the device takes nothing new.
            return next(iter(able or there), None)
        # Whoever drives it ends what is on it as soon as another one is to.
        return next((agent for agent in able if agent.alive(self._heard_since)), None)

    def _least_busy(self, device: Homeless) -> Agent | None:
        able = [
            agent
            for agent in self._known
            if device.device_type in agent.drivers and agent.usable(self._heard_since) and not _is_at(device, agent)
        ]
        if not able:
            return None
        fewest = min(self._counts.get(agent.id, 0) for agent in able)
        return self._choose.choice([agent for agent in able if self._counts.get(agent.id, 0) == fewest])


def _unable(there: Sequence[Agent], device_type: str, heard_since: datetime) -> str:
    """Why none of the agents of a host can take a device over; "" = one can."""
    if not there:
        return "no agent has ever reported from {host}"
    able = [agent for agent in there if device_type in agent.drivers]
    if not able:
        return f"the agent on {{host}} has no driver for devices of type {device_type}"
    if any(agent.alive(heard_since) for agent in able):
        return ""
    return f"the agent on {{host}} is dead: its last report arrived at {max(it.heartbeat_at for it in able).isoformat()}"


def _is_at(device: Homeless, agent: Agent) -> bool:
    return device.binding is not None and device.binding.agent_id == agent.id


def _misplaced(device: Homeless) -> bool:
    return device.binding is not None and device.pinned_host not in (None, device.binding.host)


def _bind(conn: sa.Connection, device: Homeless, agent: Agent) -> bool:
    if device.binding is None:
        bound = device_agents.insert(conn, device.device_id, agent.id)
    else:
        bound = not _is_at(device, agent) and device_agents.move(conn, device.binding, agent.id)
    if bound:
        renewals.rebind(conn, device.device_id, clock.utcnow())
    return bound
