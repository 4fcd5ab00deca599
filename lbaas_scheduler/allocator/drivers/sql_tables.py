"""States as rows, and the statements for them, built once."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from lbaas_scheduler.db.rows import AnyRow, AnySelect

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

_EVENTS, _ALLOCATIONS = models.allocator_events, models.allocator_allocations

_BORN = {
    "stamp": "birth_stamp", "at": "created_at", "actor": "birth_actor", "op": "birth_op", "pool": "birth_pool",
    "allocation_id": "id",
}  # fmt: skip
"""An event's column → that of an allocation which carries it; the others have one name in both, and ``note`` is empty."""

_BIRTHS = (
    sa.select(
        *(
            sa.literal("").label("note")
            if column.name == "note"
            else _ALLOCATIONS.c[_BORN.get(column.name, column.name)].label(column.name)
            for column in _EVENTS.c
        )
    )
    .where(_ALLOCATIONS.c.birth_stamp != "")
    .subquery("births")
)
"""Events that their allocations carry still, as if they were rows of the table of events."""

_USUAL: Mapping[str, str | int | None] = {
    "prefix_len": -1, "slot": "", "tenant_id": "", "part": "", "status": "active", "parent_id": "", "generation": 1,
    "request_id": "", "last_owner": "", "due_at": None, "birth_actor": "", "birth_op": "allocate", "rev": 1,
}  # fmt: skip
"""What most allocations have. Written into the statement: a parameter costs client and server more than all else about it."""

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


def row_of(state: State, birth: Event | None = None) -> dict[str, Any]:
    """Values by column.

    :param birth: the event that tells of a new allocation, to be carried by it.
    """
    row = {name: getattr(state, name) for name in _fields(type(state))}
    if isinstance(state, Event):
        return row
    if isinstance(state, Allocation):
        row["birth_stamp"] = row["birth_actor"] = row["birth_op"] = row["birth_pool"] = ""
        if birth is not None:
            row |= {"birth_stamp": birth.stamp, "birth_actor": birth.actor, "birth_op": birth.op, "birth_pool": birth.pool}
    # One that is removed and written anew is another one: told apart by its id, or by where its revisions begin.
    row["rev"] = 1 if "id" in row else random.randrange(1, 2**30)  # noqa: S311  # guards nothing against anybody
    return row


def state_of(cls: type[S], row: AnyRow) -> Stored[S]:
    if cls in (Pool, RequestLog):
        document = dict(zip(_fields(cls), row, strict=False))
        return Stored(from_document(cls, document), row[-1])
    return Stored(cls(*row[:-1]), row[-1])


# --- reading ----------------------------------------------------------------------------------------------------------


def read(conn: Connection, query: Query[S]) -> list[Stored[S]]:
    if query.cls is Event:
        return _history(conn, query)
    statement, values = _bound(query, "rows", conn.dialect.name)
    return [state_of(query.cls, row) for row in conn.execute(statement, values).all()]


def keys(conn: Connection, query: Query[Any]) -> list[tuple[Any, ...]]:
    statement, values = _bound(query, "keys", conn.dialect.name)
    return [tuple(row) for row in conn.execute(statement, values).all()]


def count(conn: Connection, query: Query[Any]) -> int:
    if query.cls is Event:
        return len(_history(conn, query))
    statement, values = _bound(query, "count", conn.dialect.name)
    return int(conn.execute(statement, values).scalar_one())


def one(conn: Connection, cls: type[S], index: str, *prefix: Any) -> Stored[S] | None:
    found = read(conn, Query(cls, index, prefix, limit=1))
    return found[0] if found else None


def _history(conn: Connection, query: Query[S]) -> list[Stored[S]]:
    """Events, wherever they are. Those that allocations carry first: an event that moves meanwhile is seen twice, not never."""
    found: dict[str, Stored[S]] = {}
    for what in ("births", "rows"):
        statement, values = _bound(query, what, conn.dialect.name)
        found |= {row.stamp: state_of(query.cls, row) for row in conn.execute(statement, values)}
    return [found[stamp] for stamp in sorted(found, reverse=query.reverse)][: query.limit]


def _bound(query: Query[Any], what: str, dialect: str) -> tuple[AnySelect | sa.CompoundSelect[Any], dict[str, Any]]:
    values = {f"p{place}": value for place, value in enumerate(query.prefix)}
    if query.runs:
        for place, (lo, hi) in enumerate(query.runs):
            values |= {f"lo{place}": lo, f"hi{place}": hi}
        return _in_runs(what, query.cls, query.index, len(query.prefix), len(query.runs)), values
    if query.among:
        # Nothing new beside the values themselves, but something to mislead a database's planner.
        query = replace(query, lo=None, hi=None)
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
        ("each" if query.prefix and dialect == "postgresql" else "in") if query.among else "",
    )
    values |= {f"w{place}": value for place, (_, value) in enumerate(query.where)}
    values |= {name: value for name, value in (("lo", query.lo), ("hi", query.hi), ("n", query.limit)) if value is not None}
    if query.among:
        values["among"] = list(query.among)
    return _select(what, *shape), values


@memo
def _select(
    what: str,
    cls: type[State],
    index: str,
    prefix: int,
    lo: bool,
    hi: bool,
    limit: bool,
    where: tuple[str, ...],
    reverse: bool,
    among: str,
) -> AnySelect:
    source: sa.FromClause = _BIRTHS if what == "births" else table_of(cls)
    columns = source.c
    declared = cls.keyspace.named(index)
    conditions = [columns[name] == sa.bindparam(f"p{place}") for place, name in enumerate(declared.fields[:prefix])]
    conditions += [columns[name] == sa.bindparam(f"w{place}") for place, name in enumerate(where)]
    if declared.only_if:
        # Said even where it follows from the rest: by this a database knows that it may use its partial index.
        listed = columns[declared.only_if]
        conditions.append(listed.is_not(None) if listed.nullable else listed != sa.literal_column("''"))
    if lo:
        conditions.append(columns[declared.fields[prefix]] >= sa.bindparam("lo"))
    if hi:
        conditions.append(columns[declared.fields[prefix]] <= sa.bindparam("hi"))
    if among == "in":
        conditions.append(columns[declared.fields[prefix]].in_(sa.bindparam("among", expanding=True)))
    if what == "count":
        return sa.select(sa.func.count()).select_from(source).where(*conditions)
    rev = sa.literal_column("1").label("rev") if cls is Event else columns.get("rev")
    wanted = [columns[name] for name in (cls.keyspace.key if what == "keys" else _fields(cls))]
    statement = sa.select(*wanted, *(() if what == "keys" else (rev,))).where(*conditions)
    if among:
        return _each(statement, columns[declared.fields[prefix]]) if among == "each" else statement
    order = [columns[name].desc() if reverse else columns[name] for name in declared.fields[prefix:]]
    statement = statement.order_by(*order)
    return statement.limit(sa.bindparam("n", type_=sa.Integer())) if limit else statement


@memo
def _in_runs(what: str, cls: type[State], index: str, prefix: int, count: int) -> sa.CompoundSelect[Any]:
    """One look into the index for each run: no planner can take the whole for a reason to read more."""
    column = table_of(cls).c[cls.keyspace.named(index).fields[prefix]]
    every = _select(what, cls, index, prefix, False, False, False, (), False, "").order_by(None)
    return sa.union_all(
        *(every.where(column.between(sa.bindparam(f"lo{place}"), sa.bindparam(f"hi{place}"))) for place in range(count))
    )


def _each(statement: AnySelect, column: sa.ColumnElement[Any]) -> AnySelect:
    """PostgreSQL alone: one look into the index for each value, whatever its planner thinks of the table. Until it is analysed,
    as after each quick growth, it would read all of a domain and filter."""
    values = sa.bindparam("among", type_=postgresql.ARRAY(sa.String()))
    wanted = sa.func.unnest(values).table_valued("value", name="wanted").render_derived()
    # OFFSET 0 keeps the inner statement together.
    found = statement.where(column == wanted.c.value).offset(sa.literal_column("0")).lateral("found")
    return sa.select(*found.c).select_from(wanted.join(found, sa.true()))


# --- writing ----------------------------------------------------------------------------------------------------------


@memo
def _identity(cls: type[State]) -> tuple[str, ...]:
    """The fields by which a state is found, and told apart from one that was there before."""
    return (*cls.keyspace.key, "id") if "id" in _fields(cls) else cls.keyspace.key


def _is(table: sa.Table, cls: type[State]) -> list[sa.ColumnElement[bool]]:
    return [table.c[name] == sa.bindparam(f"k_{name}") for name in _identity(cls)]


def identity_of(state: State) -> dict[str, Any]:
    return {f"k_{name}": getattr(state, name) for name in _identity(type(state))}


@memo
def insert(cls: type[State], dialect: str) -> sa.Insert:
    """An INSERT that leaves out what is there already: an error would cost a caller's PostgreSQL its transaction."""
    table = table_of(cls)
    if cls is Event:
        return sa.insert(table).inline()
    statement: sa.Insert = _ignoring(table, dialect).inline()
    return statement.execution_options(**_COUNT_ROWS)


def insert_fenced(dialect: str, row: Mapping[str, Any]) -> tuple[sa.Insert, dict[str, Any]]:
    """One allocation, only if its pool is as it was read. The pool's row stays share-locked until the commit, so that a resize
    or a removal waits for allocations that are under way, and they for it.

    :returns: the statement, and its values but for ``fence_id`` and ``fence_rev``.
    """
    usual = tuple(name for name, value in _USUAL.items() if row[name] == value)
    return _insert_fenced(dialect, usual), {f"v_{name}": value for name, value in row.items() if name not in usual}


@memo
def _insert_fenced(dialect: str, usual: tuple[str, ...]) -> sa.Insert:
    table, pools = models.allocator_allocations, models.allocator_pools
    row = sa.select(
        *(
            (_literal(_USUAL[name]) if name in usual else sa.bindparam(f"v_{name}", type_=column.type)).label(name)
            for name, column in table.c.items()
        )
    )
    fence = row.select_from(pools).where(pools.c.id == sa.bindparam("fence_id"), pools.c.rev == sa.bindparam("fence_rev"))
    names = [column.name for column in table.c]
    statement: sa.Insert = _ignoring(table, dialect, lambda made: made.from_select(names, fence.with_for_update(read=True)))
    return statement.execution_options(**_COUNT_ROWS)


def _literal(value: str | int | None) -> sa.ColumnElement[Any]:
    if value is None:
        return sa.null()
    return sa.literal_column(f"'{value}'" if isinstance(value, str) else str(value))


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
    matches = [*_is(table, cls), table.c.rev == sa.bindparam("k_rev")]
    return sa.update(table).where(*matches).values(**values, rev=table.c.rev + 1)


@memo
def delete(cls: type[State]) -> sa.Delete:
    table = table_of(cls)
    if cls is Event:
        return sa.delete(table).where(*_is(table, cls))
    return sa.delete(table).where(*_is(table, cls), table.c.rev == sa.bindparam("k_rev"))


@memo
def delete_allocations() -> sa.Delete:
    """Any number of them in one statement, by ids and (id, revision)."""
    table = models.allocator_allocations
    as_read = sa.tuple_(table.c.id, table.c.rev).in_(sa.bindparam("as_read", expanding=True))
    # The ids once more: MariaDB does not look pairs up in an index of the first.
    return sa.delete(table).where(table.c.id.in_(sa.bindparam("ids", expanding=True)), as_read)


@memo
def move_births() -> sa.Insert:
    """Events that allocations carry become rows of their own."""
    names = [column.name for column in _EVENTS.c]
    moved = sa.select(*(_BIRTHS.c[name] for name in names))
    moved = moved.where(_BIRTHS.c.allocation_id.in_(sa.bindparam("ids", expanding=True)))
    return sa.insert(_EVENTS).from_select(names, moved).inline()


@memo
def forget_births() -> sa.Update:
    """The end of an event that an allocation carries."""
    table = models.allocator_allocations
    return sa.update(table).where(table.c.birth_stamp == sa.bindparam("k_stamp")).values(birth_stamp="")


@memo
def lock(cls: type[State]) -> AnySelect:
    """A state's revision, and nobody changes it until the commit."""
    table = table_of(cls)
    return sa.select(table.c.rev).where(*_is(table, cls)).with_for_update(read=True)


def prefixed(row: Mapping[str, Any], prefix: str = "v") -> dict[str, Any]:
    return {f"{prefix}_{name}": value for name, value in row.items()}
