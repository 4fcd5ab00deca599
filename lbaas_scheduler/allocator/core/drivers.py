"""The interface of a store, and the transaction that is handed to whoever changes something."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self

from lbaas_scheduler.allocator.core.states import Event, S, State
from lbaas_scheduler.errors import TransactionTooLarge


@dataclass(frozen=True, slots=True)
class Stored(Generic[S]):
    """A state as it was read. ``rev`` changes with every write to it; only its own driver can tell what it means."""

    state: S
    rev: int


@dataclass(frozen=True, slots=True)
class Query(Generic[S]):
    """Which states to read, in the order of an index.

    :param index: name of the index; "" = by key.
    :param prefix: values of the index's first fields.
    :param lo: smallest value of the field after them, included; None = from the start.
    :param hi: largest one, included; None = to the end.
    :param where: fields that must have these values; filters, does not find. ``limit`` counts what is left.
    :param reverse: last ones first.
    :param among: of the field after the prefix: only these values, in any order. Not together with a limit or filters. A driver
        that does not know it answers with more.
    :param runs: of the field after the prefix: only what lies between the first and the last of one of these pairs, both
        included, in any order. Not together with the others but the prefix; what lies in two may come twice.
    """

    cls: type[S]
    index: str = ""
    prefix: tuple[Any, ...] = ()
    lo: Any = None
    hi: Any = None
    limit: int | None = None
    where: tuple[tuple[str, Any], ...] = ()
    reverse: bool = False
    among: tuple[Any, ...] = ()
    runs: tuple[tuple[Any, Any], ...] = ()

    def one_by_one(self) -> Iterator[Query[S]]:
        """A query for each value of ``among`` and each of the ``runs``."""
        for value in self.among:
            yield replace(self, prefix=(*self.prefix, value), lo=None, hi=None, among=())
        for lo, hi in self.runs:
            yield replace(self, lo=lo, hi=hi, runs=())

    def matches(self, state: State) -> bool:
        """Whether the filters let a state through."""
        return all(getattr(state, name) == value for name, value in self.where)


@dataclass(frozen=True, slots=True)
class Clash:
    """Why a transaction was refused: what it touched, and which of its assumptions was wrong.

    :ivar reason: name of the unique index that is taken ("" = the key), ``changed`` for a state that is not as it was read any
        more, ``present`` for something where nothing should be.
    """

    state: State | None
    reason: str


class Collision(Exception):
    """Nothing was written: somebody else was faster. Never leaves this package."""

    def __init__(self, clashes: Sequence[Clash]) -> None:
        super().__init__(f"{len(clashes)} clash(es)")
        self.clashes = tuple(clashes)


@dataclass(slots=True)
class Changes:
    """What a transaction wants, in the order in which a driver applies it."""

    requires: list[Stored[Any]] = field(default_factory=list)
    deletes: list[Stored[Any]] = field(default_factory=list)
    replaces: list[tuple[Stored[Any], State]] = field(default_factory=list)
    inserts: list[State] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    absent: list[Query[Any]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.deletes or self.replaces or self.inserts or self.events)


@dataclass(frozen=True, slots=True)
class Change(Generic[S]):
    """What a watcher sees. ``previous`` None = created; ``current`` None = deleted; both = modified."""

    current: S | None
    previous: S | None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a driver is opened with.

    :ivar database: the product's, for drivers that keep their states there.
    :ivar options: the group ``[allocator]``.
    """

    database: Any
    options: Mapping[str, Any]


class StateDriver(ABC):
    """A store.

    Thread-safe; a forked or spawned process opens its own. Reads see what is committed. :meth:`apply` is all or nothing.
    Any method may block for as long as the store's time-outs say, and raises :class:`~lbaas_scheduler.errors.StoreUnavailable`
    when the store stays away; the caller may repeat what it did: an :meth:`apply` that went through although its answer was
    lost is recognised by its ids.
    """

    name: ClassVar[str]
    max_operations: int | None = None
    """How many keys one transaction may touch; None = any number."""

    @abstractmethod
    def read(self, query: Query[S]) -> list[Stored[S]]:
        """States in the order of the index."""

    @abstractmethod
    def keys(self, query: Query[Any]) -> list[tuple[Any, ...]]:
        """As :meth:`read`, but only keys: what a search for free values needs. Queries by key only, not by an index."""

    @abstractmethod
    def count(self, query: Query[Any]) -> int:
        """How many states there are."""

    @abstractmethod
    def apply(self, changes: Changes) -> None:
        """Do all of it, or nothing.

        :raises Collision: an assumption was wrong; nothing was written.
        :raises TransactionTooLarge: before anything is written.
        """

    @abstractmethod
    def watch(self, query: Query[S], stop: threading.Event, ready: threading.Event) -> Iterator[Change[S]]:
        """Changes of states by key, from now on until ``stop`` is set.

        ``ready`` is set as soon as nothing can be missed any more. An outage of the store is waited out; what changed
        meanwhile is told afterwards, as one change for each state.
        """

    @classmethod
    def open(cls, settings: Settings) -> Self:  # noqa: ARG003  # for those that need some
        """The store that the configuration names. Connects with the first call only.

        :raises ConfigurationError: says what is wrong with the configuration.
        """
        return cls()

    def get(self, cls: type[S], *key: Any) -> Stored[S] | None:
        """One state by its whole key."""
        found = self.read(Query(cls, prefix=key, limit=1))
        return found[0] if found else None

    def first(self, cls: type[S], index: str, *prefix: Any) -> Stored[S] | None:
        """The first state under an index."""
        found = self.read(Query(cls, index, prefix, limit=1))
        return found[0] if found else None

    def begin(self) -> Txn:
        """A transaction; nothing happens before its commit."""
        return Txn(self)

    def briefly(self) -> StateDriver:
        """The same store for callers who make others wait, or can do it later: given up after one try of each member.

        This one, where no network lies between.
        """
        return self

    def close(self) -> None:
        """Let connections go."""


class Txn:
    """Reads now, writes at :meth:`commit`: every write says what it assumes, so no lock is held in between.

    Kinds, checks and reconcilers are handed one of these and never a driver.
    """

    def __init__(self, driver: StateDriver) -> None:
        self._driver = driver
        self.changes = Changes()

    def read(self, query: Query[S]) -> list[Stored[S]]:
        return self._driver.read(query)

    def count(self, query: Query[Any]) -> int:
        return self._driver.count(query)

    def get(self, cls: type[S], *key: Any) -> Stored[S] | None:
        return self._driver.get(cls, *key)

    def first(self, cls: type[S], index: str, *prefix: Any) -> Stored[S] | None:
        return self._driver.first(cls, index, *prefix)

    def insert(self, state: State) -> None:
        """Only if neither its key nor a unique index of it is taken."""
        self.changes.inserts.append(state)

    def replace(self, stored: Stored[S], state: S) -> None:
        """Only if it is as it was read. The key stays."""
        self.changes.replaces.append((stored, state))

    def delete(self, stored: Stored[Any]) -> None:
        """Only if it is as it was read."""
        self.changes.deletes.append(stored)

    def require(self, stored: Stored[Any]) -> None:
        """Refuse all of it if this one is not as it was read: a fence."""
        if stored not in self.changes.requires:
            self.changes.requires.append(stored)

    def require_none(self, query: Query[Any]) -> None:
        """Refuse all of it if anything answers the query at the moment of the commit."""
        self.changes.absent.append(query)

    def log(self, event: Event) -> None:
        self.changes.events.append(event)

    def commit(self) -> None:
        """:raises Collision: nothing was written."""
        if self.changes:
            self._driver.apply(self.changes)


def refuse_too_large(driver: StateDriver, operations: int) -> None:
    """:raises TransactionTooLarge: so many operations do not fit into one transaction of the store."""
    if driver.max_operations is not None and operations > driver.max_operations:
        raise TransactionTooLarge(operations=operations, limit=driver.max_operations, driver=driver.name)
