"""What administrators do with the fleet, over the bus and REST: plain values in, plain documents out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_context.context import RequestContext

from lbaas_scheduler.db import device_checks, evacuations, move_lists, moves
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.breaker import CircuitBreaker
from lbaas_scheduler.devices.monitor import Monitor
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.domain.moves import BalancePlan, Evacuation, Move, MoveState, Transfer
from lbaas_scheduler.errors import InvalidRequest, NotAuthorized, NotFound
from lbaas_scheduler.plugins.fleet.balancing import Balancing
from lbaas_scheduler.plugins.fleet.mover import Mover
from lbaas_scheduler.plugins.fleet.writing_off import WritingOff

Document = dict[str, Any]

DEFAULT_BOUND = 0.1
DEFAULT_MAX_MOVES = 100
MAX_MOVES = 10_000
MAX_PAGE = 1000
MAX_WAITING = 100
LOAD_BALANCER = "LoadBalancer"


class FleetOperations:
    """For administrators only."""

    def __init__(
        self,
        database: Database,
        mover: Mover,
        balancing: Balancing,
        monitor: Monitor,
        breaker: CircuitBreaker,
        registry: Registry,
        writing_off: WritingOff,
    ) -> None:
        self._database = database
        self.mover = mover
        self.monitor = monitor
        self.breaker = breaker
        self._balancing = balancing
        self._registry = registry
        self._writing_off = writing_off

    def move_vip(self, context: RequestContext, id: str, device_id: str | None = None) -> Document:
        """Begin to move a VIP: to a device, or to the one that the scheduler chooses. Its status stays as it is.

        :raises LBaaSError: it cannot be moved there, with the reason; nothing was changed.
        """
        _only_admins(context)
        return _move(self.mover.move(id, device_id))

    def evacuate_device(self, context: RequestContext, id: str) -> Document:
        """Drain a device and begin to move everything off it. See :meth:`get_evacuation` for how far it is.

        :raises DeviceNotFound: there is no such device.
        """
        _only_admins(context)
        self.mover.evacuate(id)
        return self.get_evacuation(context, id)

    def cancel_evacuation(self, context: RequestContext, id: str) -> Document:
        """Let everything stay that has not begun to leave; the device stays as it is, draining.

        :raises NotFound: it was never evacuated.
        """
        _only_admins(context)
        self.mover.cancel(id)
        return self.get_evacuation(context, id)

    def get_evacuation(self, context: RequestContext, id: str) -> Document:
        """How far the last evacuation of a device is.

        :raises DeviceNotFound: there is no such device.
        :raises NotFound: it was never evacuated.
        """
        _only_admins(context)
        self._registry.get(id)
        evacuation, left, (counts, waiting) = self._database.read(
            lambda conn: (evacuations.get(conn, id), moves.count_current(conn, id), moves.off_device(conn, id, MAX_WAITING))
        )
        if evacuation is None:
            raise NotFound(resource="Evacuation of device", id=id)
        return _evacuation(evacuation, left, counts, waiting)

    def write_off_device(self, context: RequestContext, id: str, force: bool = False) -> Document:
        """A disabled device is gone for good: what it was to remove counts as removed. See :meth:`WritingOff.write_off`.

        :returns: ``{"device_id", "settled": removals, "gone": [ids of what is deleted with it]}``.
        """
        _only_admins(context)
        if not isinstance(force, bool):
            raise InvalidRequest(reason="force must be true or false")
        settled, gone = self._writing_off.write_off(id, force)
        return {"device_id": id, "settled": settled, "gone": gone}

    def get_moves(
        self,
        context: RequestContext,
        device_id: str | None = None,
        states: Sequence[str] | None = None,
        marker: str | None = None,
        limit: int | None = None,
    ) -> list[Document]:
        """The last move of each resource, the oldest first, at most :data:`MAX_PAGE` at a time.

        :param device_id: only those from or to this device.
        :param states: only those in these states.
        :param marker: from after the move of this resource.
        :raises InvalidRequest: an unknown state, a marker that was never moved, a limit below 1.
        """
        _only_admins(context)
        wanted = [_state(name) for name in states or ()]
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidRequest(reason="limit must be an integer from 1 up")
        size = min(limit or MAX_PAGE, MAX_PAGE)

        def read(conn: sa.Connection) -> list[Move]:
            after = None if marker is None else moves.get(conn, marker)
            if marker is not None and after is None:
                raise InvalidRequest(reason=f"marker {str(marker)[:64]!r} is not in the list", attribute="marker")
            return moves.page(conn, size, device_id, wanted, after)

        return [_move(move) for move in self._database.read(read)]

    def search_moves(self, context: RequestContext, listing: Listing) -> list[Document]:
        """The last move of each resource, in pages as other nouns have them; see :func:`db.move_lists.search`."""
        _only_admins(context)
        return [_move(move) for move in self._database.read(lambda conn: move_lists.search(conn, listing))]

    def get_move(self, context: RequestContext, resource_id: str) -> Document:
        """The last move of a resource.

        :raises NotFound: it was never moved.
        """
        _only_admins(context)
        found = self._database.read(lambda conn: moves.get(conn, resource_id))
        if found is None:
            raise NotFound(resource="Move of resource", id=resource_id)
        return _move(found)

    def rebalance(
        self,
        context: RequestContext,
        apply: bool = False,
        bound: float = DEFAULT_BOUND,
        max_moves: int = DEFAULT_MAX_MOVES,
        service: str = LOAD_BALANCER,
        moves: Sequence[Mapping[str, str]] | None = None,
    ) -> Document:
        """A plan of the fewest moves after which no device is fuller than another by more than ``bound`` (0 to 1).

        :param apply: begin to carry it out; else it is only shown.
        :param moves: with ``apply``: exactly what was shown; steps that are out of date by now are left out.
        """
        _only_admins(context)
        _check_numbers(bound, max_moves)
        if moves is not None:
            if not apply:
                raise InvalidRequest(reason="moves are given to be applied: set apply to true")
            transfers = [_transfer(step) for step in moves]
            return {"moves": [asdict(it) for it in transfers], "queued": self.mover.transfer(transfers)}
        plan = self._balancing.plan(service, bound, max_moves)
        return {**_plan(plan), "queued": self.mover.transfer(plan.transfers) if apply else 0}

    def check_device(self, context: RequestContext, id: str) -> Document:
        """Ask a device now how it is.

        :raises DeviceNotFound: there is no such device.
        :raises InvalidRequest: it cannot be asked.
        """
        _only_admins(context)
        check = self.monitor.check(id)
        return self._health(id, {"online": check.online, "detail": check.detail})

    def get_device_health(self, context: RequestContext, id: str) -> Document:
        """What monitoring knows of a device: status, load, failed checks.

        :raises DeviceNotFound: there is no such device.
        """
        _only_admins(context)
        self._registry.get(id)
        return self._health(id, {})

    def get_breaker(self, context: RequestContext) -> Document:
        """Whether automatic moves are frozen, and why: ``{"frozen", "kinds": [{"kind", "tripped_at", "reason", …}]}``."""
        _only_admins(context)
        losses = self.breaker.losses()
        kinds = [
            {
                "kind": it.kind,
                "tripped_at": _text(it.tripped_at),
                "acknowledged_at": _text(it.acknowledged_at),
                "reason": it.reason,
                "total": losses[it.kind].total,
                "lost": losses[it.kind].now,
            }
            for it in self.breaker.state()
        ]
        return {"frozen": any(it["tripped_at"] for it in kinds), "kinds": kinds}

    def reset_breaker(self, context: RequestContext) -> Document:
        """What was lost is lost: let automatic moves go on."""
        _only_admins(context)
        self.breaker.acknowledge()
        return self.get_breaker(context)

    def _health(self, device_id: str, answer: Document) -> Document:
        device = self._registry.get(device_id)
        health = self._database.read(lambda conn: device_checks.get(conn, device_id))
        if health is None:
            raise NotFound(resource="Device", id=device_id)
        return {
            "device_id": device_id,
            "status": str(device.status),
            "status_description": device.status_description,
            "failures": health.failures,
            "load": dict(health.load),
            "offline_since": _text(health.offline_since),
            "next_check_at": _text(health.check_due_at),
            **answer,
        }


def _only_admins(context: RequestContext) -> None:
    if not context.is_admin:
        raise NotAuthorized(reason="only administrators move what is on devices, and see how devices are")


def _move(move: Move) -> Document:
    return {
        "resource_id": move.resource_id,
        "service": move.service,
        "source_id": move.source_id,
        "target_id": move.target_id,
        "state": str(move.state),
        "cause": str(move.cause),
        "error": move.error,
        "attempts": move.attempts,
        "created_at": _text(move.created_at),
        "updated_at": _text(move.updated_at),
    }


def _evacuation(evacuation: Evacuation, left: int, counts: Mapping[str, int], waiting: Sequence[Move]) -> Document:
    state = "running" if evacuation.finished_at is None else "cancelled" if evacuation.cancelled else "finished"
    return {
        "device_id": evacuation.device_id,
        "state": state,
        "total": evacuation.total,
        "left": left,
        "moves": dict(counts),
        "waiting": [{"resource_id": it.resource_id, "reason": it.error} for it in waiting],
        "started_at": _text(evacuation.started_at),
        "finished_at": _text(evacuation.finished_at),
    }


def _plan(plan: BalancePlan) -> Document:
    return {
        "moves": [asdict(step) for step in plan.transfers],
        "spread_before": round(plan.spread_before, 4),
        "spread_after": round(plan.spread_after, 4),
        "before": dict(plan.before),
        "after": dict(plan.after),
    }


def _state(name: str) -> MoveState:
    try:
        return MoveState(name)
    except ValueError:
        raise InvalidRequest(reason=f"unknown state {str(name)[:64]!r}; known are {', '.join(MoveState)}") from None


def _transfer(step: Mapping[str, str]) -> Transfer:
    if not isinstance(step, Mapping) or not all(isinstance(step.get(name), str) for name in Transfer.__dataclass_fields__):
        raise InvalidRequest(reason="each of moves must be an object {resource_id, source_id, target_id}, as it was shown")
    return Transfer(step["resource_id"], step["source_id"], step["target_id"])


def _check_numbers(bound: float, max_moves: int) -> None:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 <= bound <= 1:
        raise InvalidRequest(reason="bound must be a number from 0 to 1: a difference of fill")
    if isinstance(max_moves, bool) or not isinstance(max_moves, int) or not 1 <= max_moves <= MAX_MOVES:
        raise InvalidRequest(reason=f"max_moves must be an integer from 1 to {MAX_MOVES}")


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
