"""Moves: what operators ask for, and what servers do about it from time to time.

Everything is rows (:mod:`lbaas_scheduler.db.moves`). Agents' reports bring a move from its second step to its end; what is left
to the servers' clocks is to begin moves that wait, and to undo those whose target takes too long. Any number of servers do it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db.exception import DBDuplicateEntry, DBReferenceError

from lbaas_scheduler.db import device_checks, devices, evacuations, moves, service_types
from lbaas_scheduler.db.placements import Placement
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.breaker import CircuitBreaker
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.moves import Cause, Move, MoveState, Transfer
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus
from lbaas_scheduler.errors import Conflict, DeviceNotFound, LBaaSError, NotFound, StateInvalid, Unavailable
from lbaas_scheduler.plugins.casts import Casts
from lbaas_scheduler.plugins.device_scheduler.service_type_schema import EVACUATE
from lbaas_scheduler.plugins.fleet.starting import Crowded, Starter

LOG = logging.getLogger(__name__)

BATCH = 100
"""How many resources are queued in one transaction."""

RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 300.0


class Mover:
    """Moves resources of all services.

    :param conf: its group ``scheduler`` is read anew in every cycle.
    """

    def __init__(
        self,
        database: Database,
        starter: Starter,
        caster: Casts,
        registry: Registry,
        breaker: CircuitBreaker,
        conf: cfg.ConfigOpts,
    ) -> None:
        self._database = database
        self._starter = starter
        self._caster = caster
        self._registry = registry
        self._breaker = breaker
        self._conf = conf

    # -- what operators ask for -------------------------------------------------------------------------------------------

    def move(self, resource_id: str, target_id: str | None = None) -> Move:
        """Begin to move a resource, at once: neither the breaker nor the limits for many moves stop a single one.

        :raises LBaaSError: see :meth:`Starter.start`; nothing was changed then.
        """
        move = self._starter.start(resource_id, target_id, Cause.OPERATOR)
        LOG.info("%s begins to move from device %s to %s", resource_id, move.source_id, move.target_id)
        self._caster.cast([resource_id])
        return move

    def evacuate(self, device_id: str) -> None:
        """Drain a device, and let everything on it leave, a few at a time. Asked again, it goes on.

        :raises DeviceNotFound: there is no such device.
        """
        if self._registry.get(device_id).admin_state is AdminState.ENABLED:
            # Else it would fill up at the rate at which it empties.
            self._registry.update(device_id, {"admin_state": AdminState.DRAINING.value})
        try:
            self._database.write(lambda conn: evacuations.begin(conn, device_id, moves.count_current(conn, device_id)))
        except DBDuplicateEntry:
            LOG.debug("Somebody else began to evacuate device %s at the same moment", device_id)
        except DBReferenceError:  # it was removed since it was looked up
            raise DeviceNotFound(id=device_id) from None
        self._sweep_device(device_id)
        self._begin_queued()

    def cancel(self, device_id: str) -> int:
        """Let what has not begun to leave a device stay. What is on its way arrives.

        :returns: how many stay; what waits to leave a device that is not being evacuated has other reasons, and goes on.
        :raises DeviceNotFound: there is no such device.
        """
        self._registry.get(device_id)

        def work(conn: sa.Connection) -> int:
            if not evacuations.finish(conn, device_id, cancelled=True):
                return 0
            return moves.drop_queued(conn, device_id, list(Cause))

        return self._database.write(work)

    def transfer(self, transfers: Sequence[Transfer]) -> int:
        """Queue the steps of a plan. Those that are out of date are left out.

        :returns: how many were queued.
        """

        def work(conn: sa.Connection, some: Sequence[Transfer]) -> int:
            wanted = []
            for step in some:
                here = {it.resource_id: it for it in moves.to_be_moved(conn, step.source_id, [step.resource_id])}
                if step.resource_id in here:
                    wanted.append(_queued(here[step.resource_id], Cause.REBALANCE, step.target_id))
            return moves.enqueue(conn, wanted)

        added = 0
        for start in range(0, len(transfers), BATCH):
            some = transfers[start : start + BATCH]
            added += self._database.write(lambda conn, some=some: work(conn, some))  # type: ignore[misc]
        self._begin_queued()
        return added

    # -- what the clock asks for ------------------------------------------------------------------------------------------

    def steps(self) -> Sequence[Callable[[], None]]:
        """For the reconciler, in this order."""
        return (self.undo_late_moves, self.save_from_lost_devices, self.sweep_evacuations, self.begin_queued_moves)

    def run_once(self) -> None:
        for step in self.steps():
            step()

    def undo_late_moves(self) -> None:
        for move in self._database.read(lambda conn: moves.overdue(conn, utcnow(), BATCH)):
            if self._database.write(lambda conn, late=move: self._undo(conn, late)):  # type: ignore[misc]
                LOG.warning("%s stays on device %s: device %s was too slow", move.resource_id, move.source_id, move.target_id)
                self._caster.cast([move.resource_id])

    def save_from_lost_devices(self) -> None:
        """Queue what is on devices that are OFFLINE for longer than its service type allows."""
        patience = {
            it.id: it.options[EVACUATE]
            for it in self._database.read(service_types.list_all)
            if it.options.get(EVACUATE) is not None
        }
        if not patience or self._breaker.frozen:
            return
        for service_type_id, seconds in patience.items():
            self._save(service_type_id, seconds)

    def sweep_evacuations(self) -> None:
        for device_id in self._database.read(evacuations.running):
            self._sweep_device(device_id)

    def begin_queued_moves(self) -> None:
        self._begin_queued()

    @property
    def _options(self) -> Any:
        return self._conf.scheduler

    def _undo(self, conn: sa.Connection, move: Move) -> bool:
        error = f"Device {move.target_id} has not confirmed it within {self._options.move_timeout_seconds} s."
        if move.target_id is None or not moves.roll_back(conn, move.resource_id, move.target_id, error):
            # It arrived in the meantime; or it is being deleted, and nothing of the move is left to do.
            moves.give_up(conn, move, "It is being deleted.")
            return False
        return True

    def _save(self, service_type_id: str, seconds: int) -> None:
        lost = device_checks.offline_before(utcnow() - timedelta(seconds=seconds))

        def work(conn: sa.Connection) -> int:
            found = moves.to_be_saved(conn, service_type_id, lost, BATCH)
            return moves.enqueue(conn, [_queued(it, Cause.FAILURE) for it in found])

        while (added := self._database.write(work)) > 0:
            LOG.warning("%d resource(s) leave devices that are OFFLINE for more than %d s", added, seconds)

    def _sweep_device(self, device_id: str) -> None:
        """Queue what is on a device that is being evacuated: what came after the start, too."""

        def work(conn: sa.Connection) -> int:
            if not evacuations.hold(conn, device_id):
                return 0  # it was cancelled meanwhile
            found = moves.to_be_evacuated(conn, device_id, BATCH)
            return moves.enqueue(conn, [_queued(it, Cause.EVACUATION) for it in found])

        while self._database.write(work) > 0:
            continue
        if self._database.read(lambda conn: moves.count_current(conn, device_id)) == 0 and self._database.write(
            lambda conn: evacuations.finish(conn, device_id)
        ):
            LOG.info("Device %s is evacuated", device_id)

    def _begin_queued(self) -> None:
        """Begin as many moves as may be under way at once, each by itself: one that cannot begin stops no other."""
        frozen = self._breaker.frozen
        while True:
            free = self._options.max_moves - self._database.read(moves.count_deploying)
            if free <= 0:
                return
            taken = self._database.write(
                lambda conn, n=free: moves.claim_queued(conn, utcnow(), n, _later, frozen)  # type: ignore[misc]
            )
            for move in taken:
                self._begin(move)
            if not taken:
                return

    def _begin(self, move: Move) -> None:
        try:
            if self._is_pointless(move):
                self._database.write(lambda conn: moves.drop(conn, move))
                return
            begun = self._starter.start(move.resource_id, move.target_id, move.cause, queued=move)
        except Crowded:
            soon = utcnow() + timedelta(seconds=1)
            text = "Waits for others that are on their way."
            self._database.write(lambda conn: moves.postpone(conn, move, text, due_at=soon, attempts=max(0, move.attempts - 1)))
        except (NotFound, StateInvalid):
            self._database.write(lambda conn: moves.drop(conn, move))
        except Unavailable:
            raise
        except LBaaSError as error:
            self._cannot_begin(move, error)
        except Exception as error:
            LOG.exception("The move of %s cannot begin", move.resource_id)
            self._cannot_begin(move, error)
        else:
            self._caster.cast([begun.resource_id])

    def _cannot_begin(self, move: Move, error: Exception) -> None:
        text = getattr(error, "message", "") or f"{type(error).__name__}: {error}"
        if move.cause.persistent and not isinstance(error, Conflict):
            LOG.info("%s cannot leave device %s yet: %s", move.resource_id, move.source_id, text)
            # Devices that failed before get another chance: none of the others would do.
            self._database.write(lambda conn: moves.postpone(conn, move, text, tried=()))
        elif isinstance(error, Conflict):
            LOG.debug("The move of %s is out of date: %s", move.resource_id, text)
            self._database.write(lambda conn: moves.drop(conn, move))
        else:
            self._database.write(lambda conn: moves.give_up(conn, move, text))

    def _is_pointless(self, move: Move) -> bool:
        """Whether what was to be left is fine again."""
        if move.cause is not Cause.FAILURE:
            return False
        source = self._database.read(lambda conn: devices.by_ids(conn, [move.source_id])).get(move.source_id)
        return source is None or source.status is not DeviceStatus.OFFLINE


def _queued(placement: Placement, cause: Cause, target_id: str | None = None) -> Move:
    return Move(
        resource_id=placement.resource_id,
        id=str(uuid.uuid4()),
        service=placement.service,
        source_id=placement.device_id,
        target_id=target_id,
        state=MoveState.QUEUED,
        cause=cause,
        due_at=utcnow(),
    )


def _later(attempts: int) -> datetime:
    """When a move that could not begin is tried again."""
    return utcnow() + timedelta(seconds=min(RETRY_SECONDS * 2.0 ** min(attempts, 16), LONGEST_RETRY_SECONDS))
