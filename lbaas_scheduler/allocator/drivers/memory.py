"""States in this process: for tests, and for what belongs to one process anyway."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any, ClassVar

from lbaas_scheduler.allocator import keys
from lbaas_scheduler.allocator.core.drivers import Change, Changes, Clash, Collision, Query, StateDriver, Stored
from lbaas_scheduler.allocator.core.states import S, State

POLL_SECONDS = 0.05
"""How long a watcher may take to see that it shall stop."""


class MemoryDriver(StateDriver):
    """A sorted list of keys and a dictionary behind it, under one lock."""

    name: ClassVar[str] = "memory"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._order: list[str] = []
        self._entries: dict[str, Stored[Any]] = {}
        self._revision = 0
        self._watchers: list[tuple[str, str, SimpleQueue[Change[Any]]]] = []

    def read(self, query: Query[S]) -> list[Stored[S]]:
        with self._lock:
            return [self._entries[key] for key in self._range(query)]

    def keys(self, query: Query[Any]) -> list[tuple[Any, ...]]:
        return [stored.state.key() for stored in self.read(query)]

    def count(self, query: Query[Any]) -> int:
        with self._lock:
            first, last = self._bounds(query)
            return last - first

    def apply(self, changes: Changes) -> None:
        with self._lock:
            clashes = [*self._stale(changes), *self._taken(changes), *self._present(changes)]
            if clashes:
                raise Collision(clashes)
            self._revision += 1
            for stored in changes.deletes:
                self._remove(stored.state)
                self._tell(None, stored.state)
            for stored, state in changes.replaces:
                self._remove(stored.state)
                self._put(state)
                self._tell(state, stored.state)
            for state in (*changes.inserts, *changes.events):
                self._put(state)
                self._tell(state, None)

    def watch(self, query: Query[S], stop: threading.Event, ready: threading.Event) -> Iterator[Change[S]]:
        queue: SimpleQueue[Change[Any]] = SimpleQueue()
        watcher = (*keys.bounds(query), queue)
        with self._lock:
            self._watchers.append(watcher)
        ready.set()
        try:
            while not stop.is_set():
                try:
                    yield queue.get(timeout=POLL_SECONDS)
                except Empty:
                    continue
        finally:
            with self._lock:
                self._watchers.remove(watcher)

    def _bounds(self, query: Query[Any]) -> tuple[int, int]:
        first, last = keys.bounds(query)
        return bisect_left(self._order, first), bisect_left(self._order, last)

    def _range(self, query: Query[Any]) -> list[str]:
        if query.among or query.runs:
            return [key for one in query.one_by_one() for key in self._range(one)]
        first, last = self._bounds(query)
        if not query.where and not query.reverse:
            return self._order[first : last if query.limit is None else min(last, first + query.limit)]
        found = self._order[first:last]
        if query.reverse:
            found.reverse()
        return [key for key in found if query.matches(self._entries[key].state)][: query.limit]

    def _stale(self, changes: Changes) -> Iterator[Clash]:
        read = (*changes.requires, *changes.deletes, *(stored for stored, _ in changes.replaces))
        for stored in read:
            present = self._entries.get(keys.primary(stored.state))
            if present is None or present.rev != stored.rev:
                yield Clash(stored.state, "changed")

    def _taken(self, changes: Changes) -> Iterator[Clash]:
        freed = {
            key
            for stored in (*changes.deletes, *(stored for stored, _ in changes.replaces))
            for key in _all_keys(stored.state).values()
        }
        fresh: set[str] = set()
        new = [*((state, False) for _, state in changes.replaces), *((state, True) for state in changes.inserts)]
        for state, with_key in new:
            for name, key in _unique_keys(state, with_key).items():
                if key in fresh or (key in self._entries and key not in freed):
                    yield Clash(state, name)
                fresh.add(key)

    def _present(self, changes: Changes) -> Iterator[Clash]:
        for query in changes.absent:
            first, last = self._bounds(query)
            if last > first:
                yield Clash(None, "present")

    def _put(self, state: State) -> None:
        stored = Stored(state, self._revision)
        for key in _all_keys(state).values():
            if key not in self._entries:
                insort(self._order, key)
            self._entries[key] = stored

    def _remove(self, state: State) -> None:
        for key in _all_keys(state).values():
            del self._entries[key]
            del self._order[bisect_left(self._order, key)]

    def _tell(self, current: State | None, previous: State | None) -> None:
        state = current or previous
        assert state is not None
        key = keys.primary(state)
        for first, last, queue in self._watchers:
            if first <= key < last:
                queue.put(Change(current, previous))


def _all_keys(state: State) -> dict[str, str]:
    return {"": keys.primary(state)} | {index.name: key for index, key in keys.pointers(state)}


def _unique_keys(state: State, with_key: bool) -> dict[str, str]:
    found = {index.name: key for index, key in keys.pointers(state) if index.unique}
    return {"": keys.primary(state)} | found if with_key else found
