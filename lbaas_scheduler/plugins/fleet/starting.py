"""The first step of a move: a claim on the target, and a deployment there, in one transaction."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from oslo_config import cfg
from oslo_db.exception import DBDuplicateEntry
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import deployments, devices, epochs, moves, moves_under_way, placements, quotas
from lbaas_scheduler.db.deployments import DeploymentRow
from lbaas_scheduler.db.placements import Placement
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.moves import Cause, Limits, Move, MoveState
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.trail import Decision
from lbaas_scheduler.errors import (
    Conflict,
    DeviceNotFound,
    InvalidRequest,
    LBaaSError,
    NotFound,
    NoValidDevice,
    StateInvalid,
    Unavailable,
)
from lbaas_scheduler.plugins.device_scheduler.placer import Within

MAX_TRIES = 5

Requests = Callable[[Connection, Collection[str]], Mapping[str, ScheduleRequest]]
"""Of one service: resource ids → what each would ask for if it were placed now; those that are gone are left out."""


class PlacesResources(Protocol):
    def place(self, request: ScheduleRequest, within: Within | None = None, role: str = placements.CURRENT) -> Decision:
        """See :class:`~lbaas_scheduler.plugins.device_scheduler.placer.Placer`."""


class Crowded(Exception):
    """As many moves are under way as may be."""


class _Changed(Exception):
    """The resource is not as it was when a target was looked for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was read before the decision. ``seen``: the resource's last move."""

    placement: Placement
    asked: ScheduleRequest
    request: ScheduleRequest
    seen: Move | None


@dataclass(frozen=True, slots=True)
class _Wish:
    """``target_id``: the only device that will do; None = the scheduler chooses. ``queued``: the move that waits to begin."""

    resource_id: str
    target_id: str | None
    cause: Cause
    queued: Move | None = None

    @property
    def tried(self) -> tuple[str, ...]:
        return self.queued.tried if self.queued else ()


class Starter:
    """Begins moves.

    :param requests: service → its :data:`Requests`.
    :param heard_since: an agent that was heard since then is alive.
    :param conf: its group ``scheduler`` is read anew each time.
    """

    def __init__(
        self,
        database: Database,
        placer: PlacesResources,
        requests: Mapping[str, Requests],
        heard_since: Callable[[], datetime],
        conf: cfg.ConfigOpts,
    ) -> None:
        self._database = database
        self._placer = placer
        self._requests = requests
        self._heard_since = heard_since
        self._conf = conf

    @property
    def limits(self) -> Limits:
        """How many moves may be under way that nobody waits for."""
        options = self._options
        return Limits(options.max_moves, options.max_moves_per_device, options.max_rescues_per_device)

    def start(self, resource_id: str, target_id: str | None, cause: Cause) -> Move:
        """Claim a target and let the resource be deployed there, at once. Nothing is changed if this is refused.

        :param target_id: the only device that will do; None = the scheduler chooses.
        :raises NotFound: the resource is not placed.
        :raises DeviceNotFound: there is no such target.
        :raises Conflict: it is there already, is on its way, or left the target and is not gone from there yet.
        :raises StateInvalid: it is being deleted.
        :raises NoValidDevice: the target, or every device, cannot take it; says why.
        """
        return self._start(_Wish(resource_id, target_id, cause))

    def plans(self, queued: Sequence[Move]) -> Mapping[str, Plan | LBaaSError]:
        """What has to be known to begin moves that were queued, read in as many statements for many as for one.

        :returns: resource id → what :meth:`begin` wants.
        """
        wishes = [_wish(move) for move in queued]
        return self._database.read(lambda conn: self._plans(conn, wishes))

    def begin(self, queued: Move, plan: Plan | LBaaSError) -> Move:
        """As :meth:`start`, for a move that waits for its turn.

        :param plan: of :meth:`plans`. It is made anew if it is out of date.
        :raises Crowded: as many moves are under way as may be.
        """
        return self._start(_wish(queued), plan)

    @property
    def _options(self) -> Any:
        return self._conf.scheduler

    def _start(self, wish: _Wish, plan: Plan | LBaaSError | None = None) -> Move:
        move_id = str(uuid.uuid4())
        for _ in range(MAX_TRIES):
            plan = plan or self._database.read(lambda conn: self._plans(conn, [wish]))[wish.resource_id]
            if isinstance(plan, LBaaSError):
                raise plan
            try:
                return self._place(plan, self._move(move_id, wish, plan), wish.queued is not None)
            except _Changed:
                plan = None
        raise Unavailable(dependency=f"Resource {wish.resource_id}", reason="it changes too often to be moved")

    def _move(self, move_id: str, wish: _Wish, plan: Plan) -> Move:
        queued = wish.queued
        return Move(
            wish.resource_id,
            move_id,
            plan.placement.service,
            plan.placement.device_id,
            wish.target_id,
            MoveState.DEPLOYING,
            wish.cause,
            tried=wish.tried,
            attempts=queued.attempts + 1 if queued else 0,
            due_at=utcnow() + timedelta(seconds=self._options.move_timeout_seconds),
            created_at=queued.created_at if queued else None,
        )

    def _plans(self, conn: Connection, wishes: Sequence[_Wish]) -> dict[str, Plan | LBaaSError]:
        ids = [wish.resource_id for wish in wishes]
        placed, seen = placements.current(conn, ids), moves.by_ids(conn, ids)
        rows: dict[str, list[DeploymentRow]] = defaultdict(list)
        for row in deployments.for_resources(conn, ids):
            rows[row.resource_id].append(row)
        targets = {wish.target_id for wish in wishes if wish.target_id is not None}
        known = devices.by_ids(conn, targets).keys() if targets else frozenset[str]()
        asked = self._asked(conn, placed.values())
        plans: dict[str, Plan | LBaaSError] = {}
        for wish in wishes:
            id_ = wish.resource_id
            try:
                if wish.target_id not in (None, *known):
                    raise DeviceNotFound(id=wish.target_id)
                plans[id_] = self._plan(wish, placed.get(id_), seen.get(id_), rows[id_], asked.get(id_))
            except LBaaSError as error:
                plans[id_] = error
        return plans

    def _asked(self, conn: Connection, placed: Collection[Placement]) -> dict[str, ScheduleRequest]:
        by_service: dict[str, list[str]] = defaultdict(list)
        for it in placed:
            by_service[it.service].append(it.resource_id)
        asked: dict[str, ScheduleRequest] = {}
        for service in by_service.keys() & self._requests.keys():
            asked |= self._requests[service](conn, by_service[service])
        return asked

    def _plan(
        self,
        wish: _Wish,
        placement: Placement | None,
        seen: Move | None,
        rows: Sequence[DeploymentRow],
        asked: ScheduleRequest | None,
    ) -> Plan:
        if placement is None:
            raise NotFound(resource="Placement", id=wish.resource_id)
        queued = wish.queued
        if queued is not None and (seen is None or (seen.id, seen.state) != (queued.id, queued.state)):
            raise Conflict(reason=f"the move of {wish.resource_id} is another server's by now")
        _check_state(placement, rows, seen, wish.target_id)
        if placement.service not in self._requests:
            raise InvalidRequest(reason=f"resources of service {placement.service} cannot be moved")
        if asked is None:
            raise NotFound(resource="Resource", id=wish.resource_id)
        # What it holds is what it takes along; where it is, failed before, or is not gone from yet, it cannot go.
        there = {row.device_id for row in rows} | {placement.device_id} | set(wish.tried)
        request = replace(
            asked,
            demand=placement.amounts,
            networks=placement.networks,
            exclude=asked.exclude | there,
            device_hint=wish.target_id,
        )
        return Plan(placement, asked, request, seen)

    def _place(self, plan: Plan, move: Move, throttled: bool) -> Move:
        placed: list[Move] = []

        def within(conn: Connection, decision: Decision) -> None:
            placed[:] = [replace(move, target_id=decision.device_id)]
            self._write(conn, plan, placed[0], throttled)

        try:
            self._placer.place(plan.request, within, role=moves.TARGET)
        except DBDuplicateEntry:
            # Somebody else's move was faster; or this one, and the answer to its commit got lost.
            found = self._database.read(lambda conn: moves.get(conn, move.resource_id))
            if found is None or found.id != move.id:
                raise Conflict(reason=f"{move.resource_id} is on its way to another device already") from None
            return found
        except NoValidDevice as error:
            raise _explained(error, move, plan.seen) from None
        return placed[0]

    def _write(self, conn: Connection, plan: Plan, move: Move, throttled: bool) -> None:
        """In the transaction that claimed the target."""
        if move.target_id is None or not deployments.hold(conn, move.resource_id, move.source_id):
            raise _Changed
        now = placements.get(conn, move.resource_id)
        if now is None or (now.device_id, now.amounts, now.networks) != (
            plan.placement.device_id,
            plan.placement.amounts,
            plan.placement.networks,
        ):
            raise _Changed
        again = self._requests[move.service](conn, [move.resource_id]).get(move.resource_id)
        # From here the resource's deployment is locked: what it needs of a device stays so until the target is written down.
        if again is None or replace(again, resource=None) != replace(plan.asked, resource=None):
            raise _Changed
        if throttled:
            self._check_room(conn, move.source_id, move.target_id)
        if not moves.begin(conn, move, plan.seen):
            raise Conflict(reason=f"{move.resource_id} is on its way to another device already")
        due_at = utcnow() + timedelta(seconds=self._options.cast_deadline_seconds)
        epoch = epochs.take(conn, move.resource_id)
        deployments.create(conn, move.resource_id, move.target_id, epoch=epoch, due_at=due_at)

    def _check_room(self, conn: Connection, source_id: str, target_id: str) -> None:
        """Moves begin one after the other, until the transaction ends: so that no two count the same free place."""
        quotas.take_turn(conn, quotas.NOBODY, "move")
        under_way = moves_under_way.read(conn, self._heard_since(), [source_id, target_id])
        if not under_way.has_room(source_id, target_id, self.limits):
            raise Crowded


def _wish(queued: Move) -> _Wish:
    return _Wish(queued.resource_id, queued.target_id, queued.cause, queued)


def _check_state(placement: Placement, rows: Sequence[DeploymentRow], seen: Move | None, target_id: str | None) -> None:
    resource_id, source_id = placement.resource_id, placement.device_id
    if not any(row.device_id == source_id and not row.removing for row in rows):
        raise StateInvalid(resource=placement.service, id=resource_id, state="being deleted")
    if seen is not None and seen.state is MoveState.DEPLOYING:
        raise Conflict(reason=f"{resource_id} is on its way to device {seen.target_id} already", target_id=seen.target_id)
    if target_id == source_id:
        raise Conflict(reason=f"{resource_id} is on device {target_id} already")
    if any(row.device_id == target_id for row in rows):
        raise Conflict(reason=f"device {target_id} has not let go of {resource_id} since it left")


def _explained(error: NoValidDevice, move: Move, before: Move | None) -> NoValidDevice:
    """For a move to a certain device it is that device's reason that counts, not that all others are others. For any other, that
    devices were left out has its own reasons: it is there now, or they were tried and failed."""
    trail = error.kwargs["trail"]
    if move.target_id is None:
        left_out = f"{move.resource_id} is on device {move.source_id} now."
        if move.tried:
            last = f", the last one with: {before.error}" if before is not None and before.error else ""
            left_out += f" Devices that failed to take it: {', '.join(move.tried)}{last}"
        return NoValidDevice(f"No device can take {move.resource_id}: {error.kwargs['summary']} {left_out}", **error.kwargs)
    own = [it for it in trail["rejections"] if it["device_id"] == move.target_id]
    codes = sorted(code for code in trail["dropped"] if code not in ("hint", "excluded"))
    reason = f"it {own[-1]['reason']} ({own[-1]['code']})" if own else ", ".join(codes) or "it is not known to the scheduler yet"
    return NoValidDevice(
        f"Device {move.target_id} cannot take {move.resource_id}: {reason}.", **{**error.kwargs, "summary": reason}
    )
