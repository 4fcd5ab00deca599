"""Moves of resources between devices, as rows. Every step is one transaction, so that a server may die between any two.

A move holds, beside its own row: DEPLOYING, a placement of role "target" and a deployment to be applied on the target;
REMOVING and ROLLING_BACK, a placement of role "leaving:<device>" and a deployment to be removed, on the device that is left.
What a device still has is told by these alone, so that the next move need not wait for a device that does not answer.

Lock order: deployments, hot rows of devices, placements, the move.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db import deployments, move_reasons, placements, renewals
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.fleet_models import moves
from lbaas_scheduler.db.models import deployments as deployment_table
from lbaas_scheduler.db.models import placements as placement_table
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.moves import Cause, Move, MoveState, retry_seconds

TARGET = "target"
MAX_ERROR = 2000
MAX_TARGETS = 3
"""So many devices fail to take a resource that must leave its device, and it starts over with all of them, after a pause."""

RETRY_SECONDS = 5.0

BUSY = (MoveState.QUEUED, MoveState.DEPLOYING)


def leaving(device_id: str) -> str:
    """The role of what a device still has of a resource that is to leave it."""
    return f"leaving:{device_id}"


def roles(conn: sa.Connection, resource_ids: Collection[str]) -> dict[tuple[str, str], str]:
    """Device id, resource id → the role of the resource on the device, where it is not simply there."""
    rows = (row for ids in chunks(resource_ids) for row in conn.execute(_ROLES, {"ids": ids}))
    return {(row.device_id, row.resource_id): row.role for row in rows}


_ROLES = sa.select(placement_table.c.device_id, placement_table.c.resource_id, placement_table.c.role).where(
    placement_table.c.resource_id.in_(sa.bindparam("ids")), placement_table.c.role != placements.CURRENT
)


def targets(conn: sa.Connection, resource_ids: Collection[str]) -> dict[str, str]:
    """Resource id → the device that it is on its way to, for those that are on their way."""
    c = placement_table.c
    query = sa.select(c.resource_id, c.device_id).where(c.role == TARGET)
    rows = (row for ids in chunks(resource_ids) for row in conn.execute(query.where(c.resource_id.in_(ids))))
    return {row.resource_id: row.device_id for row in rows}


def get(conn: sa.Connection, resource_id: str) -> Move | None:
    row = conn.execute(sa.select(moves).where(moves.c.resource_id == resource_id)).one_or_none()
    return None if row is None else from_row(row)


def by_ids(conn: sa.Connection, resource_ids: Collection[str]) -> dict[str, Move]:
    """Resource id → its last move, for those that were ever moved."""
    rows = (row for ids in chunks(resource_ids) for row in conn.execute(sa.select(moves).where(moves.c.resource_id.in_(ids))))
    return {row.resource_id: from_row(row) for row in rows}


def page(
    conn: sa.Connection, limit: int, device_id: str | None = None, states: Collection[MoveState] = (), after: Move | None = None
) -> list[Move]:
    """Moves from or to a device, or all, the oldest first, from after ``after``."""
    c = moves.c
    query = sa.select(moves).order_by(c.created_at, c.resource_id).limit(limit)
    if device_id is not None:
        query = query.where(sa.or_(c.source_id == device_id, c.target_id == device_id))
    if states:
        query = query.where(c.state.in_(states))
    if after is not None:
        later = sa.and_(c.created_at == after.created_at, c.resource_id > after.resource_id)
        query = query.where(sa.or_(c.created_at > after.created_at, later))
    return [from_row(row) for row in conn.execute(query)]


def off_device(conn: sa.Connection, device_id: str, limit: int) -> tuple[dict[str, int], list[Move]]:
    """Moves that leave a device: state → how many, and the oldest that wait for something."""
    c = moves.c
    counted = sa.select(c.state, sa.func.count().label("number")).where(c.source_id == device_id).group_by(c.state)
    waiting = sa.select(moves).where(c.source_id == device_id, c.state.in_(BUSY), c.error != "")
    counts = {row.state: row.number for row in conn.execute(counted)}
    return counts, [from_row(row) for row in conn.execute(waiting.order_by(c.created_at, c.resource_id).limit(limit))]


def begin(conn: sa.Connection, move: Move, seen: Move | None) -> bool:
    """Write down that a move is DEPLOYING. The claim on the target was made in this transaction.

    :param seen: the row of the resource as it was read; None = there was none.
    :returns: False: somebody else's move was faster.
    :raises DBDuplicateEntry: likewise.
    """
    if seen is None:
        conn.execute(sa.insert(moves).values(columns(move)))
        return True
    if seen.state is MoveState.DEPLOYING:
        return False
    replaced = sa.update(moves).where(is_as_seen(seen)).values(columns(move))
    return bool(conn.execute(replaced).rowcount)


def overdue(conn: sa.Connection, now: datetime, limit: int) -> list[Move]:
    """Moves whose target had time enough."""
    late = sa.select(moves).where(moves.c.state == MoveState.DEPLOYING, moves.c.due_at <= now)
    return [from_row(row) for row in conn.execute(late.order_by(moves.c.due_at).limit(limit))]


def arrive(conn: sa.Connection, resource_id: str, target_id: str) -> bool:
    """The target confirmed the resource: from now on it is there, and the source is to let go of it.

    The caller has settled, and so locked, the target's deployment.

    :returns: False: it was not on its way there (any more).
    """
    source = placements.get(conn, resource_id)
    if source is None or not _turn(conn, resource_id, placements.CURRENT, source.device_id, leaving(source.device_id)):
        return False
    if not _turn(conn, resource_id, TARGET, target_id, placements.CURRENT):
        _turn(conn, resource_id, leaving(source.device_id), source.device_id, placements.CURRENT)
        return False
    _let_go(conn, resource_id, source.device_id)
    _set(conn, resource_id, (MoveState.DEPLOYING,), state=MoveState.REMOVING, error="", due_at=None)
    _finish_if_empty(conn, resource_id, source.device_id)
    return True


def roll_back(conn: sa.Connection, resource_id: str, target_id: str, error: str) -> bool:
    """The target cannot have the resource: it stays where it is, and the target is to let go of what it may have of it.

    :returns: False: it was not on its way there (any more).
    """
    if not deployments.hold(conn, resource_id, target_id):
        return False
    if not _turn(conn, resource_id, TARGET, target_id, leaving(target_id)):
        return False
    _let_go(conn, resource_id, target_id)
    move = get(conn, resource_id)
    if move is not None and move.state is MoveState.DEPLOYING:
        _set(conn, resource_id, (MoveState.DEPLOYING,), **_after_failure(conn, move, target_id, error))
    _finish_if_empty(conn, resource_id, target_id)
    return True


def leave(conn: sa.Connection, resource_id: str, device_id: str) -> placements.Released | None:
    """A device confirmed that it has nothing left of a resource that lives elsewhere. Repeatable.

    :returns: what it gave back.
    """
    released = placements.let_go(conn, resource_id, leaving(device_id))
    row = moves.c
    for_good = sa.update(moves).where(row.resource_id == resource_id).values(updated_at=clock.utcnow())
    gone = for_good.where(row.state == MoveState.REMOVING, row.source_id == device_id)
    conn.execute(gone.values(state=MoveState.DONE))
    undone = for_good.where(row.state == MoveState.ROLLING_BACK, row.target_id == device_id)
    conn.execute(undone.values(state=MoveState.FAILED))
    return released


def forget(conn: sa.Connection, resource_id: str) -> list[placements.Released]:
    """The resource is gone: give back what it holds anywhere, and forget its move. Repeatable.

    :returns: what it gave back, device by device.
    """
    held = sa.select(placement_table.c.role).where(placement_table.c.resource_id == resource_id)
    roles = conn.scalars(held.order_by(placement_table.c.device_id)).all()
    released = [placements.let_go(conn, resource_id, role) for role in roles]
    conn.execute(sa.delete(moves).where(moves.c.resource_id == resource_id))
    return [it for it in released if it is not None]


def count_current(conn: sa.Connection, device_id: str) -> int:
    """How many resources live on a device."""
    here = sa.select(sa.func.count()).select_from(placement_table)
    here = here.where(placement_table.c.device_id == device_id, placement_table.c.role == placements.CURRENT)
    return conn.scalar(here) or 0


def living(conn: sa.Connection, device_id: str, limit: int) -> tuple[list[str], int]:
    """Resources that live on a device and are not being removed from it: ids of the first, and how many there are."""
    c, deployed = placement_table.c, deployment_table.c
    going = sa.exists().where(
        deployed.resource_id == c.resource_id, deployed.device_id == c.device_id, deployed.operation == deployments.REMOVE
    )
    here = (c.device_id == device_id, c.role == placements.CURRENT, ~going)
    first = sa.select(c.resource_id).where(*here).order_by(c.resource_id).limit(limit)
    count = sa.select(sa.func.count()).select_from(placement_table).where(*here)
    return list(conn.scalars(first)), conn.scalar(count) or 0


def arriving(conn: sa.Connection, device_id: str) -> list[str]:
    """Ids of resources that are on their way to a device, ascending."""
    c = placement_table.c
    return list(conn.scalars(sa.select(c.resource_id).where(c.device_id == device_id, c.role == TARGET).order_by(c.resource_id)))


def _after_failure(conn: sa.Connection, move: Move, target_id: str, error: str) -> dict[str, Any]:
    if not move.cause.persistent or not move_reasons.still_wanted(conn, [move]):
        return {"state": MoveState.ROLLING_BACK, "error": error, "due_at": None}
    tried = (*move.tried, target_id)
    pause = retry_seconds(move.attempts // MAX_TARGETS) if len(tried) >= MAX_TARGETS else 0
    return {
        "state": MoveState.QUEUED,
        "error": error,
        "tried": [] if len(tried) >= MAX_TARGETS else list(tried),
        "target_id": None,
        "due_at": clock.utcnow() + timedelta(seconds=pause),
    }


def _turn(conn: sa.Connection, resource_id: str, role: str, device_id: str, into: str) -> bool:
    """Give a placement another role, if it has the expected one."""
    c = placement_table.c
    turned = sa.update(placement_table).where(c.resource_id == resource_id, c.role == role, c.device_id == device_id)
    return bool(conn.execute(turned.values(role=into)).rowcount)


def _let_go(conn: sa.Connection, resource_id: str, device_id: str) -> None:
    """A step of a move has an epoch of its own: what was said to the device before, or by it, is out of date.

    The device is told after the commit; the deadline is for the case that it is not, or does not hear it.
    """
    due_at = clock.utcnow() + timedelta(seconds=RETRY_SECONDS)
    deployments.mark_removal(conn, [resource_id], due_at, device_id=device_id)
    renewals.new_epoch(conn, resource_id, device_id)


def _finish_if_empty(conn: sa.Connection, resource_id: str, device_id: str) -> None:
    """A device that was never told of the resource has nothing to confirm."""
    if deployments.get(conn, resource_id, device_id) is None:
        leave(conn, resource_id, device_id)


def _set(conn: sa.Connection, resource_id: str, states: Sequence[MoveState], **values: Any) -> None:
    changed = sa.update(moves).where(moves.c.resource_id == resource_id, moves.c.state.in_(states))
    error = str(values.pop("error", ""))[:MAX_ERROR]
    conn.execute(changed.values(**values, error=error, updated_at=clock.utcnow()))


def is_as_seen(move: Move) -> sa.ColumnElement[bool]:
    """The row is still the one that was read."""
    return sa.and_(moves.c.resource_id == move.resource_id, moves.c.id == move.id, moves.c.state == move.state)


def columns(move: Move) -> dict[str, Any]:
    now = clock.utcnow()
    return {
        "resource_id": move.resource_id,
        "id": move.id,
        "service": move.service,
        "source_id": move.source_id,
        "target_id": move.target_id,
        "state": move.state,
        "cause": move.cause,
        "tried": list(move.tried),
        "attempts": move.attempts,
        "error": move.error[:MAX_ERROR],
        "due_at": move.due_at,
        "created_at": move.created_at or now,
        "updated_at": now,
    }


def from_row(row: Any) -> Move:
    return Move(
        resource_id=row.resource_id,
        id=row.id,
        service=row.service,
        source_id=row.source_id,
        target_id=row.target_id,
        state=MoveState(row.state),
        cause=Cause(row.cause),
        tried=tuple(row.tried),
        attempts=row.attempts,
        error=row.error,
        due_at=row.due_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
