"""What everything in the allocator works with: the store, the kinds, and what this process remembers of pools."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from lbaas_scheduler.allocator.core.drivers import StateDriver, Stored
from lbaas_scheduler.allocator.core.requests import Selector
from lbaas_scheduler.allocator.core.resource import Definition, Part, Resource
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Allocation, Event, Pool
from lbaas_scheduler.allocator.kinds import configs
from lbaas_scheduler.allocator.texts import LONGEST, check_text
from lbaas_scheduler.allocator.windows import Windows
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.errors import InvalidConfig, NotDefined

MAX_KNOWN_POOLS = 10_000

FRESH_SECONDS = 5.0
"""For how long a pool's quarantine time may be taken from memory."""


class Known(NamedTuple):
    """A pool as it was read, and understood."""

    stored: Stored[Pool]
    definition: Definition

    @property
    def pool(self) -> Pool:
        return self.stored.state

    def part(self, name: str) -> Part:
        return self.definition.parts[name]

    def numbers(self, name: str) -> Spans:
        """What the part may hand out: without what pools inside this one have taken over."""
        return self._uncarved(self.part(name).numbers, name)

    def automatic(self, name: str) -> Spans:
        """What the part may hand out to those who ask for no certain value."""
        part = self.part(name)
        return self._uncarved(part.numbers if part.automatic is None else part.automatic, name)

    def _uncarved(self, numbers: Spans, name: str) -> Spans:
        return numbers.minus(Spans.of(self.pool.carved)) if self.pool.carved and not name else numbers


class Pools:
    """What this process remembers of definitions. May be out of date: every transaction is fenced by what it used."""

    def __init__(self) -> None:
        self._known: dict[Selector, Known] = {}
        self._by_id: dict[str, tuple[float, Known]] = {}
        self._lock = threading.Lock()

    def get(self, selector: Selector) -> Known | None:
        return self._known.get(selector)

    def by_id(self, pool_id: str) -> Known | None:
        """Only if it was read within the last :data:`FRESH_SECONDS`."""
        found = self._by_id.get(pool_id)
        return found[1] if found and time.monotonic() - found[0] < FRESH_SECONDS else None

    def keep(self, known: Known) -> None:
        pool = known.pool
        with self._lock:
            if len(self._known) >= MAX_KNOWN_POOLS:
                self._known.clear()
                self._by_id.clear()
            self._by_id[pool.id] = (time.monotonic(), known)
            self._known[Selector(pool.kind, pool.name, pool.scope)] = known

    def forget(self, selector: Selector) -> None:
        with self._lock:
            known = self._known.pop(selector, None)
            if known is not None:
                self._by_id.pop(known.pool.id, None)


@dataclass(frozen=True, slots=True)
class Context:
    """Handed to every part; one per driver."""

    driver: StateDriver
    kinds: Mapping[str, Resource]
    now: Callable[[], datetime] = utcnow
    windows: Windows = field(default_factory=Windows)
    pools: Pools = field(default_factory=Pools)

    def on(self, driver: StateDriver) -> Context:
        """The same, on another driver of the same store: inside of somebody's transaction."""
        return replace(self, driver=driver)

    def kind(self, name: str) -> Resource:
        """:raises NotDefined: no such kind is installed."""
        found = self.kinds.get(name) if isinstance(name, str) else None
        if found is None:
            shown = str(name)[:80]
            raise NotDefined(f'No resource found for description: "{shown}"', kind=shown, known=sorted(self.kinds))
        return found

    def find(self, selector: Selector, *, fresh: bool = False) -> Known | None:
        """A pool; from memory unless ``fresh``."""
        kind = self.kind(selector.kind)
        known = None if fresh else self.pools.get(selector)
        if known is not None:
            return known
        stored = self.driver.get(Pool, selector.kind, selector.scope, selector.name)
        if stored is None:
            self.pools.forget(selector)
            return None
        known = Known(stored, normalised(kind, stored.state, stored.state.config))
        self.pools.keep(known)
        return known

    def pool(self, selector: Selector, *, fresh: bool = False) -> Known:
        """:raises NotDefined: no such kind, or no such pool."""
        known = self.find(selector, fresh=fresh)
        if known is None:
            raise NotDefined(kind=selector.kind, id=selector.label)
        return known

    def understand(self, stored: Stored[Pool]) -> Known:
        return Known(stored, normalised(self.kind(stored.state.kind), stored.state, stored.state.config))

    def pool_of(self, pool_id: str, *, fresh: bool = True) -> Known | None:
        """A pool by its id; its own values are kept under the same id and a ``#``."""
        pool_id = pool_id.rstrip("#")
        known = None if fresh else self.pools.by_id(pool_id)
        if known is not None:
            return known
        stored = self.driver.first(Pool, "uid", pool_id)
        if stored is None:
            return None
        known = self.understand(stored)
        self.pools.keep(known)
        return known

    def show(self, allocation: Allocation) -> object:
        """An allocation's value as its kind writes it."""
        return self.kind(allocation.kind).show(allocation.number, allocation.prefix_len)

    def event(self, op: str, actor: str, pool: Pool, allocation: Allocation | None = None, note: str = "") -> Event:
        """An entry for the audit trail."""
        check_text("actor", actor, may_be_empty=True)
        common = (stamp(), self.now(), actor, op, pool.kind, pool.id, pool.label)
        if allocation is None:
            return Event(*common, note=note)
        return Event(
            *common,
            domain=allocation.domain,
            value=allocation.value,
            prefix_len=allocation.prefix_len,
            owner_type=allocation.owner_type,
            owner_id=allocation.owner_id,
            slot=allocation.slot,
            allocation_id=allocation.id,
            request_id=allocation.request_id,
            note=note,
        )


def normalised(kind: Resource, pool: Pool, config: object) -> Definition:
    """A definition, completed with the words that all kinds have.

    :raises InvalidConfig: says what is wrong and what would be right.
    """
    definition = _understood(kind, pool, config)
    for part in definition.parts.values():
        # Said here for any kind: not every store would refuse it, and one would cut it off.
        if len(part.domain) > LONGEST["domain"]:
            reason = f"its values would be unique in '{part.domain:.40}…', a name of {len(part.domain)} characters"
            raise InvalidConfig(f"{reason}; {LONGEST['domain']} are the most", kind=kind.kind)
    return definition


def _understood(kind: Resource, pool: Pool, config: object) -> Definition:
    if not isinstance(config, Mapping):
        text = "Invalid vxlan resource config." if kind.kind == "vxlan" else f"Invalid type for {kind.kind} resource config"
        raise InvalidConfig(text, kind=kind.kind)
    definition = kind.define(pool, config)
    return replace(definition, config={**definition.config, **configs.common(kind.kind, config, kind.pick)})


def new_id() -> str:
    return str(uuid.uuid4())


def stamp(at: datetime | None = None) -> str:
    """A name for an event that sorts by time. Without ``at``: now, to the nanosecond, and unique."""
    if at is not None:
        return f"{int(at.astimezone(UTC).timestamp() * 1_000_000):016d}000"
    return f"{clock.time_ns():019d}-{os.urandom(4).hex()}"
