"""Watching a database: by looking at it again and again.

Allocations are followed along the audit trail, so that a look costs as much as there is news. Numbers of events are given out
before they are committed: one may become visible after a later one. So each look goes back over the last :data:`LAG_SECONDS`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic

from lbaas_scheduler.allocator.core.drivers import Change, Query, StateDriver
from lbaas_scheduler.allocator.core.states import Allocation, Event, S
from lbaas_scheduler.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

LAG_SECONDS = 30.0
"""Longer than any transaction of ours is open."""


class Watcher(Generic[S]):
    """One watch."""

    def __init__(self, driver: StateDriver, query: Query[S], poll_seconds: float) -> None:
        self._driver = driver
        self._query = query
        self._poll_seconds = poll_seconds
        self._known: dict[tuple[Any, ...], S] = {}
        self._seen: dict[str, float] = {}

    def run(self, stop: threading.Event, ready: threading.Event) -> Iterator[Change[S]]:
        while not stop.is_set():
            try:
                changes = list(self._look())
            except StoreUnavailable:
                # What happens meanwhile is found afterwards: by what is there then.
                changes = []
            else:
                if ready.is_set():
                    yield from changes
                ready.set()
            stop.wait(self._poll_seconds)

    def _look(self) -> Iterator[Change[S]]:
        if self._query.cls is not Allocation or not self._known:
            yield from self._compare(self._driver.read(self._query), None)
            return
        touched = self._touched()
        for key in touched:
            stored = self._driver.get(self._query.cls, *key)
            yield from self._compare([stored] if stored else [], {key})

    def _touched(self) -> set[tuple[Any, ...]]:
        now = time.monotonic()
        settled = [stamp for stamp, at in self._seen.items() if now - at > LAG_SECONDS]
        lo = max(settled, default=None)
        fresh = [stored.state for stored in self._driver.read(Query(Event, lo=lo)) if stored.state.stamp not in self._seen]
        self._seen = {stamp: at for stamp, at in self._seen.items() if lo is None or stamp >= lo}
        self._seen |= {event.stamp: now for event in fresh}
        return {(event.domain, event.value, event.prefix_len) for event in fresh if event.value}

    def _compare(self, found: list[Any], keys: set[tuple[Any, ...]] | None) -> Iterator[Change[S]]:
        present: Mapping[tuple[Any, ...], S] = {stored.state.key(): stored.state for stored in found}
        for key in (self._known.keys() | present.keys()) if keys is None else keys:
            before, after = self._known.get(key), present.get(key)
            if before == after:
                continue
            if after is None:
                del self._known[key]
            else:
                self._known[key] = after
            yield Change(after, before)
