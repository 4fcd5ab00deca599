"""What callers use: everything that can be done with pools and allocations.

>>> allocator = ResourceAllocator(MemoryDriver(), {"vlan": Vlan()})
>>> pool = Selector("vlan", "rack-1")
>>> allocator.define(pool, {"ranges": "100-199", "pick": "lowest"}).state
'active'
>>> grant = allocator.allocate(Request("vlan", Owner("network", "blue"), "rack-1"))
>>> grant.value
100
>>> allocator.release(grant.id, grant.generation)
1
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from lbaas_scheduler.allocator import checks, definitions, levels, reconcile, releases, usage, values
from lbaas_scheduler.allocator.context import Context, stamp
from lbaas_scheduler.allocator.core.drivers import Change, Query, StateDriver
from lbaas_scheduler.allocator.core.requests import Grant, Owner, Request, Selector, Usage
from lbaas_scheduler.allocator.core.resource import Resource
from lbaas_scheduler.allocator.core.states import Allocation, Event, Pool
from lbaas_scheduler.allocator.leaves import Terms
from lbaas_scheduler.allocator.planner import Planner
from lbaas_scheduler.allocator.texts import check_owner, check_text
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.errors import InvalidRequest, NotDefined

# Under names of their own: inside of the class below, "list" is a method.
Grants = list[Grant]
Pools = list[Pool]
Events = list[Event]
Findings = list[checks.Finding]
Levels = list[levels.Level]
Tally = levels.Tally

MAX_TTL_SECONDS = 7 * 86_400


class ResourceAllocator:
    """Thread-safe. Any number of processes may work on one store; none of them is special, and nobody holds a lock.

    :param driver: where the state is.
    :param kinds: name → kind, as installed.
    :param now: the clock; only tests bring their own.

    ``actor`` everywhere: who does it, for the audit trail.
    """

    def __init__(self, driver: StateDriver, kinds: Mapping[str, Resource], now: Callable[[], datetime] = utcnow) -> None:
        self._context = Context(driver, kinds, now)

    def within(self, driver: StateDriver) -> ResourceAllocator:
        """The same allocator inside of somebody's transaction: what it does is done when that commits, and undone with it.

        :param driver: from ``SqlDriver.bound(connection)``, of the same database; or ``briefly()`` of a store of its own, where
            each step is done at once.
        """
        inside = ResourceAllocator.__new__(ResourceAllocator)
        inside._context = self._context.on(driver)
        return inside

    @property
    def kinds(self) -> Mapping[str, Resource]:
        return self._context.kinds

    @property
    def driver(self) -> StateDriver:
        return self._context.driver

    # --- pools --------------------------------------------------------------------------------------------------------------

    def define(self, pool: Selector, config: Mapping[str, Any], actor: str = "") -> Pool:
        """See :func:`lbaas_scheduler.allocator.definitions.define`."""
        return definitions.define(self._context, pool, config, actor)

    def redefine(self, pool: Selector, config: Mapping[str, Any], *, drain: bool = False, actor: str = "") -> Pool:
        """See :func:`lbaas_scheduler.allocator.definitions.redefine`."""
        return definitions.redefine(self._context, pool, config, drain=drain, actor=actor)

    def undefine(self, pool: Selector, *, drain: bool = False, force: bool = False, actor: str = "") -> bool:
        """See :func:`lbaas_scheduler.allocator.definitions.undefine`."""
        return definitions.undefine(self._context, pool, drain=drain, force=force, actor=actor)

    def pool(self, pool: Selector) -> Pool:
        """:raises NotDefined: there is none."""
        return self._context.pool(pool, fresh=True).pool

    def pools(self, kind: str | None = None) -> Pools:
        """All of them, or all of one kind; ordered by kind, scope, name."""
        if kind is not None:
            self._context.kind(kind)
        found = self.driver.read(Query(Pool, prefix=() if kind is None else (kind,)))
        return [stored.state for stored in found]

    # --- values -------------------------------------------------------------------------------------------------------------

    def allocate(self, request: Request, *, request_id: str = "", actor: str = "") -> Grant:
        """Give one value, with all that its request brings, or nothing. See :meth:`allocate_many`."""
        return self.allocate_many([request], request_id=request_id, actor=actor)[0]

    def allocate_many(self, requests: Sequence[Request], *, request_id: str = "", actor: str = "") -> Grants:
        """Give all, or nothing, in one transaction; at any depth of nesting.

        Idempotent: an owner gets for a slot what it has there already, and a ``request_id`` gets what it got before.

        :raises PoolExhausted, QuotaExceeded, OutOfRange, ValueInUse, PoolDraining, NotDefined, InvalidRequest: as they say.
        :raises TransactionTooLarge: the store cannot do so much at once.
        :raises Contention, StoreUnavailable: worth repeating.
        """
        return self._plan(requests, Terms(actor, request_id))

    def hold(self, requests: Sequence[Request], ttl_seconds: float, *, request_id: str = "", actor: str = "") -> Grants:
        """As :meth:`allocate_many`, for now: :meth:`commit` makes it final, and :meth:`reconcile` takes back what is past its
        time.

        A hold that is over is never given to somebody else by itself: a device might use the value still.
        """
        is_number = isinstance(ttl_seconds, int | float) and not isinstance(ttl_seconds, bool)
        if not is_number or not 0 < ttl_seconds <= MAX_TTL_SECONDS:
            raise InvalidRequest(f"ttl_seconds is {ttl_seconds!r:.80}; give more than 0 and at most {MAX_TTL_SECONDS}")
        return self._plan(requests, Terms(actor, request_id, ttl_seconds))

    def commit(self, allocation_id: str, generation: int | None = None, *, actor: str = "") -> Grant:
        """See :func:`lbaas_scheduler.allocator.releases.commit`."""
        return releases.commit(self._context, allocation_id, generation, actor=actor)

    def release(
        self, allocation_id: str, generation: int | None = None, *, force: bool = False, missing_ok: bool = False, actor: str = ""
    ) -> int:
        """See :func:`lbaas_scheduler.allocator.releases.release`."""
        return releases.release(self._context, allocation_id, generation, force=force, missing_ok=missing_ok, actor=actor)

    def release_many(self, allocation_ids: Sequence[str], *, actor: str = "") -> int:
        """See :func:`lbaas_scheduler.allocator.releases.release_many`."""
        return releases.release_many(self._context, allocation_ids, actor=actor)

    def release_owner(self, owner: Owner, *, force: bool = False, actor: str = "") -> int:
        """See :func:`lbaas_scheduler.allocator.releases.release_owner`."""
        check_owner(owner)
        return releases.release_owner(self._context, owner, force=force, actor=actor)

    def release_value(self, pool: Selector, value: Any, owner: Owner, *, missing_ok: bool = False, actor: str = "") -> int:
        """See :func:`lbaas_scheduler.allocator.releases.release_value`."""
        return releases.release_value(self._context, pool, value, owner, missing_ok=missing_ok, actor=actor)

    def get(self, allocation_id: str) -> Grant:
        """:raises NotAllocated: it is not, or not any more."""
        return values.tree(self._context, values.by_id(self._context, allocation_id))

    def holder(self, pool: Selector, value: Any) -> Grant | None:
        """Who has a value now; None = nobody has."""
        return values.holder(self._context, pool, value)

    # --- looking ------------------------------------------------------------------------------------------------------------

    def list(self, pool: Selector | None = None, owner: Owner | None = None, *, resting: bool = False) -> Grants:
        """Allocations of a pool, of an owner, or both; flat.

        :param resting: the quarantined ones, too.
        """
        return usage.grants(self._context, pool, owner, resting)

    def usage(self, pool: Selector) -> Usage:
        """How full a pool is."""
        return usage.of(self._context, self._context.pool(pool, fresh=True))

    def levels(self, tally: Tally | None = None) -> Levels:
        """How full pools are, for monitoring; see :func:`lbaas_scheduler.allocator.levels.read`."""
        return levels.read(self._context, tally)

    def history(
        self,
        pool: Selector | None = None,
        owner: Owner | None = None,
        *,
        allocation_id: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> Events:
        """What was done, last things first."""
        where: dict[str, Any] = {}
        if pool is not None:
            where |= {"pool": pool.label, "kind": pool.kind}
        if owner is not None:
            where |= {"owner_type": owner.type, "owner_id": owner.id}
        if allocation_id is not None:
            where["allocation_id"] = allocation_id
        after = None if since is None else stamp(since)
        query = Query(Event, lo=after, limit=limit, where=tuple(where.items()), reverse=True)
        return [stored.state for stored in self.driver.read(query)]

    def watch(self, stop: threading.Event, ready: threading.Event | None = None) -> Iterator[Change[Allocation]]:
        """Every change of an allocation from now on, until ``stop`` is set; survives outages of the store.

        :param ready: is set when nothing can be missed any more.
        """
        return self.driver.watch(Query(Allocation), stop, ready or threading.Event())

    # --- care ---------------------------------------------------------------------------------------------------------------

    def check(self) -> Findings:
        """Whatever is not as it should be; see :mod:`lbaas_scheduler.allocator.checks`."""
        return [*checks.run(self._context), *checks.of_history(self._context)]

    def reconcile(self, probe: reconcile.Probe | None = None, **terms: Any) -> reconcile.Report:
        """See :func:`lbaas_scheduler.allocator.reconcile.reconcile`. Changes nothing unless ``dry_run=False``."""
        return reconcile.reconcile(self._context, probe, **terms)

    def _plan(self, requests: Sequence[Request], terms: Terms) -> Grants:
        check_text("request id", terms.request_id, may_be_empty=True)
        if not requests:
            return []
        try:
            return Planner(self._context, requests, terms).run()
        except NotDefined:
            # The pool may be gone since, and the answer known all the same.
            answered = values.answer(self._context, terms.request_id) if terms.request_id else None
            if answered is None:
                raise
            return answered
