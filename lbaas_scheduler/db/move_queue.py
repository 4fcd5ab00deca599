"""Moves that wait to begin: what is put there, and who takes it out. As many statements for many moves as for one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception

from lbaas_scheduler.db import deployments, evacuations, placements
from lbaas_scheduler.db.chunks import SIZE, chunks
from lbaas_scheduler.db.fleet_models import moves
from lbaas_scheduler.db.lost_devices import lost
from lbaas_scheduler.db.models import deployments as deployment_table
from lbaas_scheduler.db.models import placements as placement_table
from lbaas_scheduler.db.moves import BUSY, MAX_ERROR, columns, from_row, is_as_seen
from lbaas_scheduler.db.rows import AnySelect
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.moves import Cause, Limits, Move, MoveState, UnderWay

MAX_BATCH = SIZE
"""How many resources are queued by one statement, at most."""

LEASE = timedelta(seconds=30)
"""A server that dies with moves that it took costs them this delay."""


@dataclass(frozen=True, slots=True)
class Resident:
    """A resource that lives on a device."""

    resource_id: str
    service: str
    device_id: str


def enqueue(conn: sa.Connection, wanted: Iterable[Move]) -> int:
    """Let resources wait for their move. Those that are on their way or wait already are left alone.

    :returns: how many were added.
    """
    asked = {move.resource_id: move for move in wanted}
    added = 0
    for ids in chunks(asked):
        conn.execute(sa.delete(moves).where(moves.c.resource_id.in_(ids), moves.c.state.not_in(BUSY)))
        busy = set(conn.scalars(sa.select(moves.c.resource_id).where(moves.c.resource_id.in_(ids))))
        added += _insert(conn, [asked[it] for it in ids if it not in busy])
    return added


def _insert(conn: sa.Connection, added: Sequence[Move]) -> int:
    if not added:
        return 0
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(moves), [columns(move) for move in added])
    except db_exception.DBDuplicateEntry:
        # Somebody else has queued one of them at the same moment.
        return sum(_insert(conn, [move]) for move in added) if len(added) > 1 else 0
    return len(added)


def take_rescues(conn: sa.Connection, heard_since: datetime, limit: int, frozen: bool) -> list[Move]:
    """Take queued moves off lost devices whose turn it is. No move is taken by two servers.

    :param frozen: leave those alone that nobody has asked for.
    """
    waiting = _due(frozen).where(moves.c.source_id.in_(lost(heard_since)))
    rows = conn.execute(waiting.order_by(moves.c.due_at, moves.c.resource_id).limit(limit)).all()
    return _take(conn, [from_row(row) for row in rows])


def take(conn: sa.Connection, heard_since: datetime, under_way: UnderWay, limits: Limits, frozen: bool) -> list[Move]:
    """As :func:`take_rescues`, off all other devices, as many as may begin: a device that has enough under way keeps no move
    of another one waiting.

    :param under_way: what is on its way now.
    """
    turn = sa.func.row_number().over(partition_by=moves.c.source_id, order_by=(moves.c.due_at, moves.c.resource_id))
    ranked = _due(frozen).where(moves.c.source_id.not_in(lost(heard_since))).add_columns(turn.label("turn")).subquery()
    # Twice as many, since some of the first may be bound for a device that has enough.
    first = sa.select(ranked).where(ranked.c.turn <= 2 * limits.per_device)
    rows = conn.execute(first.order_by(ranked.c.due_at, ranked.c.resource_id).limit(MAX_BATCH)).all()
    return _take(conn, _with_room([from_row(row) for row in rows], under_way, limits))


def _due(frozen: bool) -> AnySelect:
    due = sa.select(moves).where(moves.c.state == MoveState.QUEUED, moves.c.due_at <= clock.utcnow())
    return due.where(moves.c.cause != Cause.FAILURE) if frozen else due


def _with_room(waiting: Sequence[Move], under_way: UnderWay, limits: Limits) -> list[Move]:
    """Those that may begin, the first first; targets that are not chosen yet are counted when they are."""
    chosen: list[Move] = []
    more: Counter[str] = Counter()
    for move in waiting:
        ends = [it for it in (move.source_id, move.target_id) if it is not None]
        if under_way.live() + len(chosen) >= limits.moves:
            break
        if all(under_way.live(it) + more[it] < limits.per_device for it in ends):
            chosen.append(move)
            more.update(ends)
    return chosen


def _take(conn: sa.Connection, wanted: Sequence[Move]) -> list[Move]:
    """Those of the moves that nobody else has taken: their rows say until when they are the caller's."""
    if not wanted:
        return []
    # The moment is drawn by lot, so that it tells whose they are.
    until = clock.utcnow() + LEASE + timedelta(microseconds=random.randrange(1_000_000))  # noqa: S311 - hides nothing
    ids = sorted(move.resource_id for move in wanted)
    these = (moves.c.resource_id.in_(ids), moves.c.state == MoveState.QUEUED)
    conn.execute(sa.update(moves).where(*these, moves.c.due_at <= clock.utcnow()).values(due_at=until))
    mine = set(conn.scalars(sa.select(moves.c.resource_id).where(*these, moves.c.due_at == until)))
    return [replace(move, due_at=until) for move in wanted if move.resource_id in mine]


def hand_back(conn: sa.Connection, taken: Collection[Move]) -> None:
    """Moves that were taken, and not looked at: it is their turn still."""
    for ids in chunks(move.resource_id for move in taken):
        untouched = (moves.c.state == MoveState.QUEUED, moves.c.due_at.in_({move.due_at for move in taken}))
        conn.execute(sa.update(moves).where(moves.c.resource_id.in_(ids), *untouched).values(due_at=clock.utcnow()))


def postpone(conn: sa.Connection, move: Move, error: str, seconds: float, **changes: Any) -> None:
    """A queued move could not begin, for a reason that may pass.

    :param changes: ``attempts`` or ``tried``, where they are to be others.
    """
    if "tried" in changes:
        changes["tried"] = list(changes["tried"])
    now = clock.utcnow()
    changes |= {"error": error[:MAX_ERROR], "updated_at": now, "due_at": now + timedelta(seconds=seconds)}
    conn.execute(sa.update(moves).where(is_as_seen(move)).values(**changes))


def give_up(conn: sa.Connection, move: Move, error: str) -> None:
    """A move will not begin, or not go on."""
    failed = {"state": MoveState.FAILED, "error": error[:MAX_ERROR], "due_at": None, "updated_at": clock.utcnow()}
    conn.execute(sa.update(moves).where(is_as_seen(move)).values(failed))


def drop(conn: sa.Connection, waiting: Collection[Move]) -> None:
    """There is no reason any more for queued moves."""
    for move in waiting:
        conn.execute(sa.delete(moves).where(is_as_seen(move)))


def end_evacuation(conn: sa.Connection, device_id: str) -> int:
    """Let what has not begun to leave a device stay, if the device is being evacuated. What is on its way arrives, or stays too.

    :returns: how many stay; what waits to leave a device that is not being evacuated has other reasons, and goes on.
    """
    if not evacuations.finish(conn, device_id, cancelled=True):
        return 0
    return conn.execute(sa.delete(moves).where(moves.c.source_id == device_id, moves.c.state == MoveState.QUEUED)).rowcount


def to_be_evacuated(conn: sa.Connection, device_id: str, limit: int) -> list[Resident]:
    """Resources that are on a device, are to stay somewhere, and wait for no move."""
    return _without_move(conn, placement_table.c.device_id == device_id, limit=limit)


def to_be_moved(conn: sa.Connection, resource_ids: Collection[str]) -> list[Resident]:
    """Those of the resources that are to stay somewhere, and wait for no move."""
    return _without_move(conn, placement_table.c.resource_id.in_(resource_ids), limit=len(resource_ids))


def to_be_saved(conn: sa.Connection, service_type_id: str, devices: AnySelect, limit: int) -> list[Resident]:
    """Resources of a service type on some devices that wait for no move."""
    here = (placement_table.c.service_type_id == service_type_id, placement_table.c.device_id.in_(devices))
    return _without_move(conn, *here, limit=limit)


def _without_move(conn: sa.Connection, *where: sa.ColumnElement[bool], limit: int) -> list[Resident]:
    c, deployed = placement_table.c, deployment_table.c
    staying = sa.exists().where(
        deployed.resource_id == c.resource_id, deployed.device_id == c.device_id, deployed.operation == deployments.APPLY
    )
    waiting = sa.exists().where(moves.c.resource_id == c.resource_id, moves.c.state.in_(BUSY))
    query = sa.select(c.resource_id, c.service, c.device_id).where(*where, c.role == placements.CURRENT, staying, ~waiting)
    return [Resident(*row) for row in conn.execute(query.order_by(c.resource_id).limit(limit))]
