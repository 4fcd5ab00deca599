"""States as rows, and the statements for them, built once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.core.drivers import Query, Stored
from lbaas_scheduler.allocator.core.memo import memo
from lbaas_scheduler.allocator.core.states import (
    Allocation,
    Claim,
    Domain,
    Event,
    Note,
    Pool,
    RequestLog,
    S,
    State,
    from_document,
)
from lbaas_scheduler.db import allocator_models as models

TABLES: Mapping[type[State], sa.Table] = {
    Pool: models.allocator_pools,
    Claim: models.allocator_claims,
    Domain: models.allocator_domains,
    Allocation: models.allocator_allocations,
    Event: models.allocator_events,
    RequestLog: models.allocator_requests,
    Note: models.allocator_notes,
}

ORDER: tuple[type[State], ...] = (Domain, Pool, Claim, Note, RequestLog, Allocation)
"""In which order rows are locked, so that two transactions do not wait for each other."""

_COUNT_ROWS = {"preserve_rowcount": True}


def table_of(cls: type[State]) -> sa.Table:
    """:raises LookupError: the state has no table; kinds keep their own in notes."""
    try:
        return TABLES[cls]
    except KeyError:
        raise LookupError(f"{cls.__name__} has no table; keep it in a Note") from None


@memo
def _fields(cls: type[State]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def row_of(state: State, rev: int = 1) -> dict[str, Any]:
    """Values by column."""
    row = {name: getattr(state, name) for name in _fields(type(state))}
    if not isinstance(state, Event):
        row["rev"] = rev
    return row


def state_of(cls: type[S], row: sa.Row[Any]) -> Stored[S]:
    if cls in (Pool, RequestLog):
        document = dict(zip(_fields(cls), row, strict=False))
        return Stored(from_document(cls, document), row[-1])
    return Stored(cls(*row[:-1]), row[-1])


def read(conn: Connection, query: Query[S]) -> list[Stored[S]]:
    statement, values = _bound(query, "rows")
    return [state_of(query.cls, row) for row in conn.execute(statement, values)]


def keys(conn: Connection, query: Query[Any]) -> list[tuple[Any, ...]]:
    statement, values = _bound(query, "keys")
    return [tuple(row) for row in conn.execute(statement, values)]


def count(conn: Connection, query: Query[Any]) -> int:
    statement, values = _bound(query, "count")
    return int(conn.execute(statement, values).scalar_one())


def _bound(query: Query[Any], what: str) -> tuple[sa.Select[Any], dict[str, Any]]:
    names = tuple(name for name, _ in query.where)
    shape = (
        query.cls,
        query.index,
        len(query.prefix),
        query.lo is not None,
        query.hi is not None,
        query.limit is not None,
        names,
        query.reverse,
    )
    values = {f"p{place}": value for place, value in enumerate(query.prefix)}
    values |= {f"w{place}": value for place, (_, value) in enumerate(query.where)}
    values |= {name: value for name, value in (("lo", query.lo), ("hi", query.hi), ("n", query.limit)) if value is not None}
    return _select(what, *shape), values


@memo
def _select(
    what: str, cls: type[State], index: str, prefix: int, lo: bool, hi: bool, limit: bool, where: tuple[str, ...], reverse: bool
) -> sa.Select[Any]:
    columns = table_of(cls).c
    declared = cls.keyspace.named(index)
    conditions = [columns[name] == sa.bindparam(f"p{place}") for place, name in enumerate(declared.fields[:prefix])]
    conditions += [columns[name] == sa.bindparam(f"w{place}") for place, name in enumerate(where)]
    if declared.only_if and declared.only_if not in declared.fields[:prefix]:
        conditions.append(columns[declared.only_if].is_not(None))
    if lo:
        conditions.append(columns[declared.fields[prefix]] >= sa.bindparam("lo"))
    if hi:
        conditions.append(columns[declared.fields[prefix]] <= sa.bindparam("hi"))
    if what == "count":
        return sa.select(sa.func.count()).select_from(table_of(cls)).where(*conditions)
    wanted = cls.keyspace.key if what == "keys" else (*_fields(cls), "rev")
    statement = sa.select(*(columns[name] for name in wanted)).where(*conditions)
    order = [columns[name].desc() if reverse else columns[name] for name in declared.fields[prefix:]]
    statement = statement.order_by(*order)
    return statement.limit(sa.bindparam("n", type_=sa.Integer())) if limit else statement


# --- writing ----------------------------------------------------------------------------------------------------------


def _key_is(table: sa.Table, cls: type[State]) -> list[sa.ColumnElement[bool]]:
    return [table.c[name] == sa.bindparam(f"k_{name}") for name in cls.keyspace.key]


def key_of(state: State) -> dict[str, Any]:
    return {f"k_{name}": value for name, value in zip(state.keyspace.key, state.key(), strict=True)}


@memo
def insert(cls: type[State], dialect: str) -> sa.Insert:
    """An INSERT that leaves out what is there already: an error would cost a caller's PostgreSQL its transaction."""
    table = table_of(cls)
    if cls is Event:
        return sa.insert(table).inline()
    statement: sa.Insert = _ignoring(table, dialect).inline()
    return statement.execution_options(**_COUNT_ROWS)


@memo
def insert_fenced(dialect: str) -> sa.Insert:
    """One allocation, only if its pool is as it was read. The pool's row stays share-locked until the commit, so that a resize
    or a removal waits for allocations that are under way, and they for it."""
    table, pools = models.allocator_allocations, models.allocator_pools
    row = sa.select(*(sa.bindparam(f"v_{column.name}", type_=column.type).label(column.name) for column in table.c))
    fence = row.select_from(pools).where(pools.c.id == sa.bindparam("fence_id"), pools.c.rev == sa.bindparam("fence_rev"))
    names = [column.name for column in table.c]
    statement: sa.Insert = _ignoring(table, dialect, lambda made: made.from_select(names, fence.with_for_update(read=True)))
    return statement.execution_options(**_COUNT_ROWS)


@memo
def insert_with_event() -> sa.Insert:
    """PostgreSQL alone: the same, and the event that tells of it, in one statement. Counts one row, or none."""
    table, pools, events = models.allocator_allocations, models.allocator_pools, models.allocator_events
    row = sa.select(*(sa.bindparam(f"v_{column.name}", type_=column.type).label(column.name) for column in table.c))
    fence = row.select_from(pools).where(pools.c.id == sa.bindparam("fence_id"), pools.c.rev == sa.bindparam("fence_rev"))
    names = [column.name for column in table.c]
    made = (
        postgresql.insert(table)
        .from_select(names, fence.with_for_update(read=True))
        .on_conflict_do_nothing()
        .returning(table.c.id)
        .cte("made")
    )
    told = [column for column in events.c if column.name != "rev"]
    event = sa.select(*(sa.bindparam(f"e_{column.name}", type_=column.type).label(column.name) for column in told))
    statement = sa.insert(events).from_select([column.name for column in told], event.select_from(made)).inline()
    return statement.execution_options(**_COUNT_ROWS)


def _ignoring(table: sa.Table, dialect: str, fill: Callable[[Any], Any] = lambda made: made) -> Any:
    if dialect == "postgresql":
        return fill(postgresql.insert(table)).on_conflict_do_nothing()
    if dialect == "sqlite":
        return fill(sqlite.insert(table)).on_conflict_do_nothing()
    return fill(mysql.insert(table)).prefix_with("IGNORE")


@memo
def update(cls: type[State]) -> sa.Update:
    table = table_of(cls)
    values = {column.name: sa.bindparam(f"v_{column.name}", type_=column.type) for column in table.c if column.name != "rev"}
    matches = [*_key_is(table, cls), table.c.rev == sa.bindparam("k_rev")]
    return sa.update(table).where(*matches).values(**values, rev=table.c.rev + 1)


@memo
def delete(cls: type[State]) -> sa.Delete:
    table = table_of(cls)
    if cls is Event:
        return sa.delete(table).where(*_key_is(table, cls))
    return sa.delete(table).where(*_key_is(table, cls), table.c.rev == sa.bindparam("k_rev"))


@memo
def lock(cls: type[State]) -> sa.Select[Any]:
    """A state's revision, and nobody changes it until the commit."""
    table = table_of(cls)
    return sa.select(table.c.rev).where(*_key_is(table, cls)).with_for_update(read=True)


def one(conn: Connection, cls: type[S], index: str, *prefix: Any) -> Stored[S] | None:
    found = read(conn, Query(cls, index, prefix, limit=1))
    return found[0] if found else None


def prefixed(row: Mapping[str, Any], prefix: str = "v") -> dict[str, Any]:
    return {f"{prefix}_{name}": value for name, value in row.items()}
