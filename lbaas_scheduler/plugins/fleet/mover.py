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

from lbaas_scheduler.db import device_checks, devices, evacuations, move_queue, moves, schedulable, service_types
from lbaas_scheduler.db.move_queue import Resident
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.breaker import CircuitBreaker
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.moves import Cause, Move, MoveState, Transfer
from lbaas_scheduler.domain.statuses import AdminState
from lbaas_scheduler.errors import DeviceNotFound, Unavailable
from lbaas_scheduler.plugins.casts import Casts
from lbaas_scheduler.plugins.device_scheduler.service_type_schema import EVACUATE
from lbaas_scheduler.plugins.fleet.queue import MoveQueue
from lbaas_scheduler.plugins.fleet.starting import Starter

LOG = logging.getLogger(__name__)

BATCH = 100
"""How many moves that are too late are undone per cycle."""

MAX_TRIES = 5


class Mover:
    """Moves resources of all services.

    :param heard_since: an agent that was heard since then is alive.
    :param conf: its group ``scheduler`` is read anew in every cycle.
    """

    def __init__(
        self,
        database: Database,
        starter: Starter,
        caster: Casts,
        registry: Registry,
        breaker: CircuitBreaker,
        heard_since: Callable[[], datetime],
        conf: cfg.ConfigOpts,
    ) -> None:
        self._database = database
        self._starter = starter
        self._caster = caster
        self._registry = registry
        self._breaker = breaker
        self._queue = MoveQueue(database, starter, caster, breaker, heard_since)
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
        """Drain a device, and let everything on it leave. Asked again, it goes on. Servers begin the moves in their next cycles.

        :raises DeviceNotFound: there is no such device.
        """
        for _ in range(MAX_TRIES):
            if self._registry.get(device_id).admin_state is AdminState.ENABLED:
                # Else it would fill up at the rate at which it empties.
                self._registry.update(device_id, {"admin_state": AdminState.DRAINING.value})
            if self._database.write(lambda conn: self._begin_evacuation(conn, device_id)):
                self._sweep_device(device_id)
                return
        raise Unavailable(dependency=f"Device {device_id}", reason="somebody enables it again and again")

    def cancel(self, device_id: str) -> int:
        """Let what has not begun to leave a device stay. What is on its way arrives; or stays too, if its target fails.

        :returns: how many stay; what waits to leave a device that is not being evacuated has other reasons, and goes on.
        :raises DeviceNotFound: there is no such device.
        """
        self._registry.get(device_id)
        return self._database.write(lambda conn: move_queue.end_evacuation(conn, device_id))

    def transfer(self, transfers: Sequence[Transfer]) -> int:
        """Queue the steps of a plan. Those that are out of date are left out. Servers begin them in their next cycles.

        :returns: how many were queued.
        """

        def work(conn: sa.Connection, steps: dict[str, Transfer]) -> int:
            here = [it for it in move_queue.to_be_moved(conn, list(steps)) if it.device_id == steps[it.resource_id].source_id]
            return move_queue.enqueue(conn, [_queued(it, Cause.REBALANCE, steps[it.resource_id].target_id) for it in here])

        added = 0
        for start in range(0, len(transfers), move_queue.MAX_BATCH):
            some = {step.resource_id: step for step in transfers[start : start + move_queue.MAX_BATCH]}
            added += self._database.write(lambda conn, some=some: work(conn, some))  # type: ignore[misc]
        return added

    # -- what the clock asks for ------------------------------------------------------------------------------------------

    def steps(self) -> Sequence[Callable[[], None]]:
        """For the reconciler, in this order."""
        return (self.undo_late_moves, self.save_from_lost_devices, self.sweep_evacuations, self.begin_queued_moves)

    def run_once(self) -> None:
        for step in self.steps():
            step()

    def undo_late_moves(self) -> None:
        undone = []
        for move in self._database.read(lambda conn: moves.overdue(conn, utcnow(), BATCH)):
            if self._database.write(lambda conn, late=move: self._undo(conn, late)):  # type: ignore[misc]
                LOG.warning("%s stays on device %s: device %s was too slow", move.resource_id, move.source_id, move.target_id)
                undone.append(move.resource_id)
        if undone:
            self._caster.cast(undone)

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
        self._queue.begin()

    @property
    def _options(self) -> Any:
        return self._conf.scheduler

    def _undo(self, conn: sa.Connection, move: Move) -> bool:
        error = f"Device {move.target_id} has not confirmed it within {self._options.move_timeout_seconds} s."
        if move.target_id is None or not moves.roll_back(conn, move.resource_id, move.target_id, error):
            # It arrived in the meantime; or it is being deleted, and nothing of the move is left to do.
            move_queue.give_up(conn, move, "It is being deleted.")
            return False
        return True

    def _save(self, service_type_id: str, seconds: int) -> None:
        lost = device_checks.offline_before(utcnow() - timedelta(seconds=seconds))

        def work(conn: sa.Connection) -> int:
            found = move_queue.to_be_saved(conn, service_type_id, lost, move_queue.MAX_BATCH)
            return move_queue.enqueue(conn, [_queued(it, Cause.FAILURE) for it in found])

        if added := self._database.write(work):
            LOG.warning("%d resource(s) leave devices that are OFFLINE for more than %d s", added, seconds)

    def _begin_evacuation(self, conn: sa.Connection, device_id: str) -> bool:
        """:returns: False: somebody has enabled the device meanwhile."""
        # Until the transaction ends nobody enables it: that would end the evacuation.
        schedulable.lock(conn, [device_id])
        device = devices.by_ids(conn, [device_id]).get(device_id)
        if device is None:  # it was removed since it was looked up
            raise DeviceNotFound(id=device_id)
        if device.admin_state is AdminState.ENABLED:
            return False
        evacuations.begin(conn, device_id, moves.count_current(conn, device_id))
        return True

    def _sweep_device(self, device_id: str) -> None:
        """Queue what is on a device that is being evacuated: what came after the start, too."""

        def work(conn: sa.Connection) -> bool:
            if not evacuations.hold(conn, device_id):
                return False  # it was cancelled meanwhile
            found = move_queue.to_be_evacuated(conn, device_id, move_queue.MAX_BATCH)
            move_queue.enqueue(conn, [_queued(it, Cause.EVACUATION) for it in found])
            return moves.count_current(conn, device_id) == 0 and evacuations.finish(conn, device_id)

        if self._database.write(work):
            LOG.info("Device %s is evacuated", device_id)


def _queued(resident: Resident, cause: Cause, target_id: str | None = None) -> Move:
    return Move(
        resource_id=resident.resource_id,
        id=str(uuid.uuid4()),
        service=resident.service,
        source_id=resident.device_id,
        target_id=target_id,
        state=MoveState.QUEUED,
        cause=cause,
        due_at=utcnow(),
    )
