"""States in SQLite, PostgreSQL or MariaDB: one row each, and unique keys that decide who was faster.

An allocation is one statement and its commit, whatever the size of the pool and however many there are: a row, inserted only if
its pool is as it was read, that carries the event which tells of it until it first changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.core.drivers import Change, Changes, Clash, Collision, Query, Settings, StateDriver, Stored
from lbaas_scheduler.allocator.core.states import Allocation, Event, Pool, S, State
from lbaas_scheduler.allocator.drivers import sql_tables as tables
from lbaas_scheduler.allocator.drivers.sql_watch import Watcher
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import ConfigurationError, StoreUnavailable, Unavailable

T = TypeVar("T")


class SqlDriver(StateDriver):
    """The tables of :mod:`lbaas_scheduler.db.allocator_models`, which the product's migrations make.

    :param poll_seconds: how often a watcher looks for what is new.
    """

    name: ClassVar[str] = "sql"

    def __init__(self, database: Database, poll_seconds: float = 0.2) -> None:
        self._database = database
        self._poll_seconds = poll_seconds

    @classmethod
    def open(cls, settings: Settings) -> Self:
        if settings.database is None:
            raise ConfigurationError(reason="[allocator] driver 'sql' needs a database; set [database] connection")
        return cls(settings.database)

    def bound(self, conn: Connection) -> StateDriver:
        """The same store, inside of the transaction of ``conn``: sees what that wrote, and is undone with it.

        For one use within ``Database.write``; a lost race costs a savepoint and not the transaction.
        """
        return BoundDriver(conn)

    def read(self, query: Query[S]) -> list[Stored[S]]:
        return self._reach(lambda: self._database.look(lambda conn: tables.read(conn, query)))

    def keys(self, query: Query[Any]) -> list[tuple[Any, ...]]:
        return self._reach(lambda: self._database.look(lambda conn: tables.keys(conn, query)))

    def count(self, query: Query[Any]) -> int:
        return self._reach(lambda: self._database.look(lambda conn: tables.count(conn, query)))

    def apply(self, changes: Changes) -> None:
        run, work = (self._database.alone, _insert_one) if _is_single(changes) else (self._database.write, _apply)
        try:
            with _duplicates(changes):
                self._reach(lambda: run(lambda conn: work(conn, changes)))
        except Collision:
            # The answer to a COMMIT may have been lost, and this be its repetition. Asked only now that what it wrote is undone.
            if not (changes.events and self.get(Event, changes.events[0].stamp)):
                raise

    def watch(self, query: Query[S], stop: threading.Event, ready: threading.Event) -> Iterator[Change[S]]:
        return Watcher(self, query, self._poll_seconds).run(stop, ready)

    def close(self) -> None:
        self._database.dispose()

    def _reach(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except StoreUnavailable:
            raise
        except Unavailable as error:
            raise StoreUnavailable(dependency=self.name, reason=error.message) from error


class BoundDriver(StateDriver):
    """What :meth:`SqlDriver.bound` gives. Not thread-safe, as its connection is not."""

    name: ClassVar[str] = "sql"

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def read(self, query: Query[S]) -> list[Stored[S]]:
        return tables.read(self._conn, query)

    def keys(self, query: Query[Any]) -> list[tuple[Any, ...]]:
        return tables.keys(self._conn, query)

    def count(self, query: Query[Any]) -> int:
        return tables.count(self._conn, query)

    def apply(self, changes: Changes) -> None:
        with _duplicates(changes), self._conn.begin_nested():
            _apply(self._conn, changes)

    def watch(self, query: Query[S], stop: threading.Event, ready: threading.Event) -> Iterator[Change[S]]:
        raise RuntimeError("a transaction has nothing to watch; watch the driver itself")


class _duplicates:  # noqa: N801  # reads as a verb: with _duplicates(changes)
    """A state whose next version clashes with another one's unique key is a lost race as any other."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, DBDuplicateEntry):
            raise Collision([Clash(state, "own") for _, state in self._changes.replaces]) from error


def _apply(conn: Connection, changes: Changes) -> None:
    """In this order: what others wait for comes first, and whether a place is empty is asked when nobody can fill it any more."""
    fence, births = _fence_of(changes), _births(changes)
    for stored in changes.requires:
        if stored is not fence:
            _require(conn, stored)
    _rewrite(conn, changes, tables.ORDER[:2])
    for query in changes.absent:
        if tables.read(conn, Query(query.cls, query.index, query.prefix, query.lo, query.hi, limit=1)):
            raise Collision([Clash(None, "present")])
    _rewrite(conn, changes, (*tables.ORDER[2:], Event))
    _insert(conn, changes.inserts, births, fence)
    events = [tables.row_of(event) for event in changes.events if births.get(event.allocation_id) is not event]
    if events:
        conn.execute(tables.insert(Event, conn.dialect.name), events)


def _fence_of(changes: Changes) -> Stored[Any] | None:
    """The pool whose fence rides on the one INSERT that needs it."""
    inserted = [state for state in changes.inserts if isinstance(state, Allocation)]
    pools = [stored for stored in changes.requires if isinstance(stored.state, Pool)]
    if len(inserted) == 1 and len(pools) == 1 and pools[0].state.id == inserted[0].pool_id:
        return pools[0]
    return None


def _is_single(changes: Changes) -> bool:
    """Whether one statement does all of it, as of nearly all transactions: a value, with its pool's fence and event."""
    if not len(changes.inserts) == len(changes.events) == len(changes.requires) == 1:
        return False
    if changes.deletes or changes.replaces or changes.absent or changes.events[0].note:
        return False
    return _fence_of(changes) is not None and changes.events[0].allocation_id == changes.inserts[0].id  # type: ignore[attr-defined]


def _insert_one(conn: Connection, changes: Changes) -> None:
    """What is left of :func:`_apply` then."""
    fence, row = changes.requires[0], tables.row_of(changes.inserts[0], changes.events[0])
    statement, values = tables.insert_fenced(conn.dialect.name, row)
    if conn.execute(statement, values | {"fence_id": fence.state.id, "fence_rev": fence.rev}).rowcount != 1:
        raise Collision(_clashes(conn, changes.inserts, fence))


def _births(changes: Changes) -> dict[str, Event]:
    """By allocation: the event that a new row carries itself."""
    new = {state.id for state in changes.inserts if isinstance(state, Allocation)}
    return {event.allocation_id: event for event in changes.events if event.allocation_id in new and not event.note}


def _require(conn: Connection, stored: Stored[Any]) -> None:
    rev = conn.execute(tables.lock(type(stored.state)), tables.identity_of(stored.state)).scalar_one_or_none()
    if rev != stored.rev:
        raise Collision([Clash(stored.state, "changed")])


def _rewrite(conn: Connection, changes: Changes, classes: Sequence[type[State]]) -> None:
    for cls in classes:
        deleted = [stored for stored in changes.deletes if type(stored.state) is cls]
        replaced = [(stored, state) for stored, state in changes.replaces if type(state) is cls]
        if cls is Allocation:
            _move_births(conn, [*deleted, *(stored for stored, _ in replaced)])
        if deleted:
            _delete(conn, cls, deleted)
        for stored, state in replaced:
            values = tables.prefixed(tables.row_of(state)) | tables.identity_of(stored.state) | {"k_rev": stored.rev}
            values.pop("v_rev")
            if conn.execute(tables.update(cls), values).rowcount != 1:
                raise Collision([Clash(stored.state, "changed")])


def _move_births(conn: Connection, touched: Sequence[Stored[Allocation]]) -> None:
    """Whoever was faster with one of the rows has changed its revision, too: the next statement finds that out."""
    if touched:
        conn.execute(tables.move_births(), {"ids": [stored.state.id for stored in touched]})


def _delete(conn: Connection, cls: type[State], deleted: Sequence[Stored[Any]]) -> None:
    if cls is Event:
        rows = [tables.identity_of(stored.state) for stored in deleted]
        conn.execute(tables.delete(Event), rows)
        conn.execute(tables.forget_births(), rows)
        return
    if cls is Allocation:
        read = [(stored.state.id, stored.rev) for stored in deleted]
        done = conn.execute(tables.delete_allocations(), {"ids": [id_ for id_, _ in read], "as_read": read}).rowcount
    else:
        keys = [tables.identity_of(stored.state) | {"k_rev": stored.rev} for stored in deleted]
        done = conn.execute(tables.delete(cls), keys).rowcount
    if done != len(deleted):
        raise Collision([Clash(stored.state, "changed") for stored in deleted])


def _insert(conn: Connection, states: Sequence[State], births: Mapping[str, Event], fence: Stored[Any] | None) -> None:
    for cls in tables.ORDER:
        new = [state for state in states if type(state) is cls]
        if not new:
            continue
        rows = [tables.row_of(state, births.get(state.id) if isinstance(state, Allocation) else None) for state in new]
        fenced = fence if cls is Allocation else None
        if fenced is not None:
            statement, values = tables.insert_fenced(conn.dialect.name, rows[0])
            done = conn.execute(statement, values | {"fence_id": fenced.state.id, "fence_rev": fenced.rev}).rowcount
        else:
            done = conn.execute(tables.insert(cls, conn.dialect.name), rows).rowcount
        if done != len(new):
            raise Collision(_clashes(conn, new, fenced))


def _clashes(conn: Connection, states: Sequence[State], fence: Stored[Any] | None) -> list[Clash]:
    """Which of the rows were there already, and by which key."""
    found = []
    if fence is not None:
        pool = tables.one(conn, Pool, "uid", fence.state.id)
        if pool is None or pool.rev != fence.rev:
            found.append(Clash(fence.state, "changed"))
    for state in states:
        unique = ["", *(index.name for index in state.keyspace.indexes if index.unique)]
        for name in unique:
            prefix = [getattr(state, field) for field in state.keyspace.named(name).fields]
            present = tables.one(conn, type(state), name, *prefix)
            if present is not None and present.state != state:
                found.append(Clash(state, name))
    # What was in the way is gone already: try again.
    return found or [Clash(state, "gone") for state in states]
