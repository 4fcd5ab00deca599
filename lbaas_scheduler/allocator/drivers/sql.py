"""States in SQLite, PostgreSQL or MariaDB: one row each, and unique keys that decide who was faster.

An allocation is four statements (of PostgreSQL: three), whatever the size of the pool and however many there are: begin, the
row (inserted only if its pool is as it was read), the event, commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
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
        return self._reach(lambda: self._database.read(lambda conn: tables.read(conn, query)))

    def keys(self, query: Query[Any]) -> list[tuple[Any, ...]]:
        return self._reach(lambda: self._database.read(lambda conn: tables.keys(conn, query)))

    def count(self, query: Query[Any]) -> int:
        return self._reach(lambda: self._database.read(lambda conn: tables.count(conn, query)))

    def apply(self, changes: Changes) -> None:
        with _duplicates(changes):
            self._reach(lambda: self._database.write(lambda conn: _apply(conn, changes)))

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
    fence = _fence_of(changes)
    try:
        if fence is not None and conn.dialect.name == "postgresql" and _is_simple(changes):
            _insert_with_event(conn, changes, fence)
            return
        for stored in changes.requires:
            if stored is not fence:
                _require(conn, stored)
        _rewrite(conn, changes, tables.ORDER[:2])
        for query in changes.absent:
            if tables.read(conn, Query(query.cls, query.index, query.prefix, query.lo, query.hi, limit=1)):
                raise Collision([Clash(None, "present")])
        _rewrite(conn, changes, (*tables.ORDER[2:], Event))
        for cls in tables.ORDER:
            _insert(conn, [state for state in changes.inserts if type(state) is cls], fence)
    except Collision:
        # The answer to a COMMIT may have been lost, and this be its repetition.
        if changes.events and tables.one(conn, Event, "", changes.events[0].stamp):
            return
        raise
    if changes.events:
        conn.execute(tables.insert(Event, conn.dialect.name), [tables.row_of(event) for event in changes.events])


def _fence_of(changes: Changes) -> Stored[Any] | None:
    """The pool whose fence rides on the one INSERT that needs it."""
    inserted = [state for state in changes.inserts if isinstance(state, Allocation)]
    pools = [stored for stored in changes.requires if isinstance(stored.state, Pool)]
    if len(inserted) == 1 and len(pools) == 1 and pools[0].state.id == inserted[0].pool_id:
        return pools[0]
    return None


def _is_simple(changes: Changes) -> bool:
    """One allocation, its pool's fence and its event, as nearly all transactions are."""
    rest = (changes.deletes, changes.replaces, changes.absent)
    return len(changes.inserts) == len(changes.events) == len(changes.requires) == 1 and not any(rest)


def _insert_with_event(conn: Connection, changes: Changes, fence: Stored[Any]) -> None:
    values = tables.prefixed(tables.row_of(changes.inserts[0])) | tables.prefixed(tables.row_of(changes.events[0]), "e")
    values |= {"fence_id": fence.state.id, "fence_rev": fence.rev}
    if conn.execute(tables.insert_with_event(), values).rowcount != 1:
        raise Collision(_clashes(conn, changes.inserts, fence))


def _require(conn: Connection, stored: Stored[Any]) -> None:
    rev = conn.execute(tables.lock(type(stored.state)), tables.key_of(stored.state)).scalar_one_or_none()
    if rev != stored.rev:
        raise Collision([Clash(stored.state, "changed")])


def _rewrite(conn: Connection, changes: Changes, classes: Sequence[type[State]]) -> None:
    for cls in classes:
        deleted = [stored for stored in changes.deletes if type(stored.state) is cls]
        if deleted:
            rows = [tables.key_of(stored.state) | {"k_rev": stored.rev} for stored in deleted]
            done = conn.execute(tables.delete(cls), rows).rowcount
            if done != len(deleted) and cls is not Event:
                raise Collision([Clash(stored.state, "changed") for stored in deleted])
        replaced = [(stored, state) for stored, state in changes.replaces if type(state) is cls]
        for stored, state in replaced:
            values = tables.prefixed(tables.row_of(state)) | tables.key_of(stored.state) | {"k_rev": stored.rev}
            values.pop("v_rev")
            if conn.execute(tables.update(cls), values).rowcount != 1:
                raise Collision([Clash(stored.state, "changed")])


def _insert(conn: Connection, states: Sequence[State], fence: Stored[Any] | None) -> None:
    if not states:
        return
    cls = type(states[0])
    rows = [tables.row_of(state) for state in states]
    if fence is not None and cls is Allocation:
        values = tables.prefixed(rows[0]) | {"fence_id": fence.state.id, "fence_rev": fence.rev}
        done = conn.execute(tables.insert_fenced(conn.dialect.name), values).rowcount
    else:
        done = conn.execute(tables.insert(cls, conn.dialect.name), rows).rowcount
    if done != len(states):
        raise Collision(_clashes(conn, states, fence))


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
