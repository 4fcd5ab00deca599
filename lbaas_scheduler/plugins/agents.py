"""Agents: their reports, and what administrators do with them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import sqlalchemy as sa

from lbaas_scheduler.db import agents as store
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.assignments import Assignments, Move
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.agents import LOADBALANCER_AGENT, Agent, StateReport
from lbaas_scheduler.errors import AgentNotFound, Conflict, InvalidRequest
from lbaas_scheduler.plugins.casts import Casts

LOG = logging.getLogger(__name__)

RETURNS = 3
"""So often reports of an agent's former start must follow those of a later one: when a queue is worked off by several threads,
some overtake each other once.
"""

_MAX_NAME = 255
_MAX_DRIVER = 64
_CHANGEABLE: Mapping[str, tuple[type, str]] = {
    "admin_state_up": (bool, "true or false"),
    "description": (str, "a string of up to 255 characters"),
}


class AgentControl(Protocol):
    """What tells agents of themselves: see :class:`~lbaas_scheduler.plugins.outbox.Outbox`."""

    def agent_updated(self, host: str, admin_state_up: bool) -> None: ...


class AgentDirectory:
    """All agents that have ever reported.

    Reports may come in storms: a queue that was not read for a while, hundreds of agents at once. One that says nothing new so
    soon after the last costs no transaction. An agent is alive from when a report of it arrived, whatever its host's clock says:
    what a dead agent left in a queue makes it look alive once more.

    :param agent_down_seconds: an agent whose last report arrived longer ago than this counts as dead.
    :param monotonic: the clock by which reports follow each other; for tests.
    """

    def __init__(
        self,
        database: Database,
        assignments: Assignments,
        caster: Casts,
        control: AgentControl,
        agent_down_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._assignments = assignments
        self._caster = caster
        self._control = control
        self._pause_seconds = agent_down_seconds / 10
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._recorded: dict[tuple[str, str], tuple[StateReport, float]] = {}
        """Agent → the latest report that was recorded, and when."""
        self._twins = _Twins()

    def report(self, state: Any) -> None:
        """Take an agent's report. One that is malformed is logged and does no harm to other agents."""
        report, received = parse(state, clock.utcnow()), self._monotonic()
        if report is None:
            return
        self._twins.note(report)
        if not self._worth_recording(report, received):
            return
        if self._database.write(lambda conn: self._record(conn, report)):
            self._caster.announce(self._assignments.assign_waiting())
        with self._lock:
            self._recorded[report.agent_type, report.host] = report, received

    def get(self, agent_id: str) -> dict[str, Any]:
        """:raises AgentNotFound: there is no such agent."""
        return self._document(self._find(agent_id))

    def list(self, filters: Mapping[str, Sequence[Any]] | None = None) -> list[dict[str, Any]]:
        """Agents by host.

        :param filters: attribute of the document → accepted values.
        """
        documents = [self._document(agent) for agent in self._database.read(store.list_all)]
        return [it for it in documents if all(_matches(it, name, values) for name, values in (filters or {}).items())]

    def update(self, agent_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change ``admin_state_up`` or ``description``. A disabled agent keeps its devices; they take nothing new.

        :raises InvalidRequest: a wrong change.
        :raises AgentNotFound: there is no such agent.
        """
        _check_changes(changes)
        before = self._find(agent_id)

        def work(conn: sa.Connection) -> None:
            if not store.update(conn, agent_id, changes):
                raise AgentNotFound(id=agent_id)
            self._assignments.refresh(conn, agent_id)

        if changes:
            self._database.write(work)
        wanted = changes.get("admin_state_up", before.admin_state_up)
        if wanted != before.admin_state_up:
            self._control.agent_updated(before.host, wanted)
        return self.get(agent_id)

    def delete(self, agent_id: str) -> None:
        """Forget an agent. Its devices go to others; it comes back with its next report.

        :raises Conflict: no other agent can take all of its devices.
        :raises AgentNotFound: there is no such agent.
        """

        def work(conn: sa.Connection) -> list[Move]:
            if store.get(conn, agent_id) is None:
                raise AgentNotFound(id=agent_id)
            moves, left = self._assignments.vacate(conn, agent_id)
            if left:
                raise Conflict(reason=f"agent {agent_id} drives {left} device(s) that no other live agent can take", count=left)
            store.delete(conn, agent_id)
            return moves

        self._caster.announce(self._database.write(work))

    def _worth_recording(self, report: StateReport, received: float) -> bool:
        with self._lock:
            last, at = self._recorded.get((report.agent_type, report.host), (None, 0.0))
        if last is None or received - at >= self._pause_seconds:
            return True
        if report.started_at == last.started_at and report.sent_at < last.sent_at:
            return False  # overtaken by a newer one
        return report.first or report.drivers != last.drivers or report.started_at != last.started_at

    def _record(self, conn: sa.Connection, report: StateReport) -> bool:
        """:returns: whether devices may wait for just this agent."""
        before = store.find(conn, report.agent_type, report.host)
        news = store.report(conn, report)
        if before is None or news or not before.alive(self._assignments.heard_since()):
            after = store.find(conn, report.agent_type, report.host)
            if after is not None:
                self._assignments.refresh(conn, after.id)
            return True
        return False

    def _find(self, agent_id: str) -> Agent:
        agent = self._database.read(lambda conn: store.get(conn, agent_id))
        if agent is None:
            raise AgentNotFound(id=agent_id)
        return agent

    def _document(self, agent: Agent) -> dict[str, Any]:
        return {
            "id": agent.id,
            "agent_type": agent.agent_type,
            "binary": agent.binary,
            "topic": agent.topic,
            "host": agent.host,
            "description": agent.description,
            "admin_state_up": agent.admin_state_up,
            "alive": agent.alive(self._assignments.heard_since()),
            "created_at": agent.created_at.isoformat(),
            "started_at": agent.started_at.isoformat(),
            "heartbeat_timestamp": agent.heartbeat_at.isoformat(),
            "configurations": dict(agent.configurations),
        }


@dataclass
class _Heard:
    """``sent``: start of an agent → when its latest report was sent. ``returns``: how often an earlier start followed."""

    started_at: datetime
    sent: dict[datetime, datetime] = field(default_factory=dict)
    returns: int = 0


class _Twins:
    """Says of hosts that two agents report from at once: each gets but a part of what is sent to their common name.

    An agent that restarts does not go on reporting what it said before. Once is enough until the server restarts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: dict[str, _Heard] = {}
        self._told: set[str] = set()

    def note(self, report: StateReport) -> None:
        with self._lock:
            heard = self._heard.setdefault(report.host, _Heard(report.started_at))
            self._follow(heard, report)
            if heard.returns < RETURNS or report.host in self._told:
                return
            self._told.add(report.host)
        LOG.error(
            "Two agents call themselves %s, and each gets only a part of what is sent; set [DEFAULT] host apart", report.host
        )

    def _follow(self, heard: _Heard, report: StateReport) -> None:
        before = heard.sent.get(report.started_at)
        if before is not None and report.sent_at <= before:
            return  # one that was under way for long
        if report.started_at != heard.started_at:
            if before is None:
                heard.sent, heard.returns = {it: at for it, at in heard.sent.items() if it == heard.started_at}, 0
            else:
                heard.returns += 1
        heard.sent[report.started_at] = report.sent_at
        heard.started_at = report.started_at


def parse(state: Any, now: datetime) -> StateReport | None:
    """Read an agent's report. None: it does not even say who it is from.

    Without a proper list of drivers the agent is known, and drives nothing.
    """
    host = state.get("host") if isinstance(state, Mapping) else None
    if not isinstance(host, str) or not 0 < len(host) <= _MAX_NAME:
        LOG.warning("An agent's report without a host name is ignored")
        return None
    return StateReport(
        agent_type=_name(state, "agent_type", LOADBALANCER_AGENT)[:_MAX_DRIVER],
        host=host,
        binary=_name(state, "binary", ""),
        topic=_name(state, "topic", ""),
        started_at=_time(state.get("started_at")) or now,
        sent_at=_time(state.get("sent_at")) or now,
        drivers=_drivers(host, state.get("configurations")),
        configurations=_configurations(state),
        first=state.get("start_flag") is True,
    )


def _drivers(host: str, configurations: Any) -> frozenset[str]:
    names = configurations.get("device_drivers") if isinstance(configurations, Mapping) else None
    if isinstance(names, list) and all(isinstance(name, str) and 0 < len(name) <= _MAX_DRIVER for name in names):
        return frozenset(names)
    LOG.warning("The report of the agent on %s has no list configurations.device_drivers; no device is given to it", host)
    return frozenset()


def _configurations(state: Mapping[str, Any]) -> Mapping[str, Any]:
    given = state.get("configurations")
    return given if isinstance(given, Mapping) else {}


def _name(state: Mapping[str, Any], key: str, default: str) -> str:
    value = state.get(key)
    return value[:_MAX_NAME] if isinstance(value, str) and value else default


def _time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _check_changes(changes: Mapping[str, Any]) -> None:
    if not isinstance(changes, Mapping):
        raise InvalidRequest("agent must be an object.")
    for name, value in changes.items():
        if name not in _CHANGEABLE:
            raise InvalidRequest(f"{name[:64]} of an agent cannot be changed; {' and '.join(sorted(_CHANGEABLE))} can.")
        kind, wanted = _CHANGEABLE[name]
        if not isinstance(value, kind) or (isinstance(value, str) and (len(value) > _MAX_NAME or "\x00" in value)):
            raise InvalidRequest(f"{name} must be {wanted}.")


def _matches(document: Mapping[str, Any], name: str, values: Sequence[Any]) -> bool:
    if name not in document:
        raise InvalidRequest(f"Unknown filter {name[:64]!r}; known are {', '.join(sorted(document))}.")
    return str(document[name]).lower() in {str(value).lower() for value in values}
