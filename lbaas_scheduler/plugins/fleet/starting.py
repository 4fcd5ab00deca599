"""The first step of a move: a claim on the target, and a deployment there, in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol

from oslo_config import cfg
from oslo_db.exception import DBDuplicateEntry
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import deployments, devices, moves, placements, quotas
from lbaas_scheduler.db.deployments import DeploymentRow
from lbaas_scheduler.db.placements import Placement
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.moves import Cause, Move, MoveState
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.trail import Decision
from lbaas_scheduler.errors import Conflict, DeviceNotFound, InvalidRequest, NotFound, NoValidDevice, StateInvalid, Unavailable
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
class _Plan:
    """What was read before the decision. ``seen``: the resource's last move."""

    placement: Placement
    asked: ScheduleRequest
    request: ScheduleRequest
    seen: Move | None


class Starter:
    """Begins moves.

    :param requests: service → its :data:`Requests`.
    :param conf: its group ``scheduler`` is read anew each time.
    """

    def __init__(
        self, database: Database, placer: PlacesResources, requests: Mapping[str, Requests], conf: cfg.ConfigOpts
    ) -> None:
        self._database = database
        self._placer = placer
        self._requests = requests
        self._conf = conf

    def start(self, resource_id: str, target_id: str | None, cause: Cause, queued: Move | None = None) -> Move:
        """Claim a target and let the resource be deployed there. Nothing is changed if this is refused.

        :param target_id: the only device that will do; None = the scheduler chooses.
        :param queued: the move that waits to begin, and becomes this one.
        :raises NotFound: the resource is not placed.
        :raises DeviceNotFound: there is no such target.
        :raises Conflict: it is there already, is on its way, or left the target and is not gone from there yet.
        :raises StateInvalid: it is being deleted.
        :raises NoValidDevice: the target, or every device, cannot take it; says why.
        :raises Crowded: only where ``queued`` is given.
        """
        move_id = str(uuid.uuid4())
        for _ in range(MAX_TRIES):
            plan = self._database.read(lambda conn: self._plan(conn, resource_id, target_id, queued))
            move = Move(
                resource_id,
                move_id,
                plan.placement.service,
                plan.placement.device_id,
                target_id,
                MoveState.DEPLOYING,
                cause,
                tried=queued.tried if queued else (),
                attempts=queued.attempts if queued else 0,
                due_at=utcnow() + timedelta(seconds=self._options.move_timeout_seconds),
                created_at=queued.created_at if queued else None,
            )
            try:
                return self._place(plan, move, queued)
            except _Changed:
                continue
        raise Unavailable(dependency=f"Resource {resource_id}", reason="it changes too often to be moved")

    @property
    def _options(self) -> Any:
        return self._conf.scheduler

    def _plan(self, conn: Connection, resource_id: str, target_id: str | None, queued: Move | None) -> _Plan:
        placement = placements.get(conn, resource_id)
        if placement is None:
            raise NotFound(resource="Placement", id=resource_id)
        seen = moves.get(conn, resource_id)
        if queued is not None and (seen is None or (seen.id, seen.state) != (queued.id, queued.state)):
            raise Conflict(reason=f"the move of {resource_id} is another server's by now")
        rows = deployments.for_resources(conn, [resource_id])
        self._check_state(conn, placement, rows, seen, target_id)
        if placement.service not in self._requests:
            raise InvalidRequest(reason=f"resources of service {placement.service} cannot be moved")
        asked = self._requests[placement.service](conn, [resource_id]).get(resource_id)
        if asked is None:
            raise NotFound(resource="Resource", id=resource_id)
        # What it holds is what it takes along; where it is, failed before, or is not gone from yet, it cannot go.
        there = {row.device_id for row in rows} | {placement.device_id} | set(queued.tried if queued else ())
        request = replace(
            asked,
            demand=placement.amounts,
            networks=placement.networks,
            exclude=asked.exclude | there,
            device_hint=target_id,
        )
        return _Plan(placement, asked, request, seen)

    def _check_state(
        self, conn: Connection, placement: Placement, rows: list[DeploymentRow], seen: Move | None, target_id: str | None
    ) -> None:
        resource_id, source_id = placement.resource_id, placement.device_id
        if not any(row.device_id == source_id and not row.removing for row in rows):
            raise StateInvalid(resource=placement.service, id=resource_id, state="being deleted")
        if seen is not None and seen.state is MoveState.DEPLOYING:
            raise Conflict(reason=f"{resource_id} is on its way to device {seen.target_id} already", target_id=seen.target_id)
        if target_id is None:
            return
        if not devices.by_ids(conn, [target_id]):
            raise DeviceNotFound(id=target_id)
        if target_id == source_id:
            raise Conflict(reason=f"{resource_id} is on device {target_id} already")
        if any(row.device_id == target_id for row in rows):
            raise Conflict(reason=f"device {target_id} has not let go of {resource_id} since it left")

    def _place(self, plan: _Plan, move: Move, queued: Move | None) -> Move:
        placed: list[Move] = []

        def within(conn: Connection, decision: Decision) -> None:
            placed[:] = [replace(move, target_id=decision.device_id)]
            self._write(conn, plan, placed[0], queued is not None)

        try:
            self._placer.place(plan.request, within, role=moves.TARGET)
        except DBDuplicateEntry:
            # Somebody else's move was faster; or this one, and the answer to its commit got lost.
            found = self._database.read(lambda conn: moves.get(conn, move.resource_id))
            if found is None or found.id != move.id:
                raise Conflict(reason=f"{move.resource_id} is on its way to another device already") from None
            return found
        except NoValidDevice as error:
            raise _explained(error, move) from None
        return placed[0]

    def _write(self, conn: Connection, plan: _Plan, move: Move, throttled: bool) -> None:
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
            self._check_room(conn, move)
        if not moves.begin(conn, move, plan.seen):
            raise Conflict(reason=f"{move.resource_id} is on its way to another device already")
        due_at = utcnow() + timedelta(seconds=self._options.cast_deadline_seconds)
        epoch = deployments.next_epoch(conn, move.resource_id)
        deployments.create(conn, move.resource_id, move.target_id, epoch=epoch, due_at=due_at)

    def _check_room(self, conn: Connection, move: Move) -> None:
        """Moves begin one after the other, until the transaction ends: so that no two count the same free place."""
        quotas.take_turn(conn, quotas.NOBODY, "move")
        options = self._options
        if moves.count_deploying(conn) >= options.max_moves:
            raise Crowded
        for device_id in (move.source_id, move.target_id):
            if moves.count_deploying(conn, device_id) >= options.max_moves_per_device:
                raise Crowded


def _explained(error: NoValidDevice, move: Move) -> NoValidDevice:
    """For a move to a certain device it is that device's reason that counts, not that all others are others."""
    if move.target_id is None:
        return error
    trail = error.kwargs["trail"]
    own = [it for it in trail["rejections"] if it["device_id"] == move.target_id]
    codes = sorted(code for code in trail["dropped"] if code not in ("hint", "excluded"))
    reason = f"it {own[-1]['reason']} ({own[-1]['code']})" if own else ", ".join(codes) or "it is not known to the scheduler yet"
    return NoValidDevice(
        f"Device {move.target_id} cannot take {move.resource_id}: {reason}.", **{**error.kwargs, "summary": reason}
    )
