"""The allocator for whoever calls from outside, over REST or the bus: who may see what, and who did it.

Administrators may do everything. Anybody else sees the pools of his own tenant (scope ``tenant:<project id>``) and their values;
what belongs to others does not exist for him. He may take values from his pools and give them back where something lets him come
so far: the REST API's policy lets administrators only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from oslo_config import cfg
from oslo_context.context import RequestContext

from lbaas_scheduler.allocator.api import AllocatorAPI, owner_
from lbaas_scheduler.allocator.core.requests import Owner
from lbaas_scheduler.allocator.reconcile import Probe
from lbaas_scheduler.errors import InvalidRequest, NotAllocated, NotAuthorized, NotDefined, OwnerLives
from lbaas_scheduler.schemas import resources as schemas
from lbaas_scheduler.schemas.checker import Schema, violation

Document = dict[str, Any]
Words = Mapping[str, Any]

MAX_ACTOR = 255


class Resources:
    """:param conf: has ``[allocator]``, whose times hold where a caller gives none.

    :param probe: tells whether an owner lives; without one, nothing counts as leaked.
    """

    def __init__(self, allocator: AllocatorAPI, conf: cfg.ConfigOpts, probe: Probe | None = None) -> None:
        self._allocator = allocator
        self._conf = conf
        self._probe = probe

    # --- pools --------------------------------------------------------------------------------------------------------------

    def define(self, context: RequestContext, pool: Words, config: Any = None) -> Document:
        """Make a pool. The same configuration again is fine.

        :raises AlreadyDefined, InvalidConfig, Overlap: as they say.
        """
        _only_admins(context, "define resources")
        return self._allocator.define(pool, {} if config is None else config, actor=_actor(context))

    def resize(self, context: RequestContext, pool: Words, config: Any, drain: bool = False) -> Document:
        """Give a pool another definition while it is in use."""
        _only_admins(context, "define resources")
        return self._allocator.resize(pool, config, drain=bool(drain), actor=_actor(context))

    def undefine(self, context: RequestContext, pool: Words, drain: bool = False, force: bool = False) -> Document:
        """Remove a pool. ``{"removed": false}``: it is draining, and goes with its last value.

        :raises PoolBusy: it is in use, and neither ``drain`` nor ``force``.
        """
        _only_admins(context, "define resources")
        return self._allocator.undefine(pool, drain=bool(drain), force=bool(force), actor=_actor(context))

    def pool(self, context: RequestContext, pool: Words) -> Document:
        """:raises NotDefined: there is none, or it is not the caller's."""
        return self._allocator.pool(_seen(context, pool))

    def pools(self, context: RequestContext, kind: str | None = None) -> list[Document]:
        """Those that the caller may see, ordered by kind, scope and name."""
        found = self._allocator.pools(kind)
        return found if context.is_admin else [pool for pool in found if pool["scope"] == _own_scope(context)]

    # --- values -------------------------------------------------------------------------------------------------------------

    def allocate(self, context: RequestContext, requests: Sequence[Any], request_id: str = "") -> list[Document]:
        """All of them or none: see :meth:`lbaas_scheduler.allocator.manager.ResourceAllocator.allocate_many`."""
        asked = _own_requests(context, requests)
        return self._allocator.allocate(asked, request_id=request_id, actor=_actor(context))

    def hold(
        self, context: RequestContext, requests: Sequence[Any], ttl_seconds: float | None = None, request_id: str = ""
    ) -> list[Document]:
        """As :meth:`allocate`, to be made final by :meth:`commit` within ``ttl_seconds``, or what the configuration says."""
        asked = _own_requests(context, requests)
        ttl = self._conf.allocator.hold_ttl_seconds if ttl_seconds is None else ttl_seconds
        _check("ttl_seconds", ttl, schemas.TTL_SECONDS)
        return self._allocator.hold(asked, ttl, request_id=request_id, actor=_actor(context))

    def commit(
        self, context: RequestContext, allocation_id: str, generation: int | None = None, pool: Words | None = None
    ) -> Document:
        """Make a hold final.

        :param pool: where it must be from; whoever is no administrator has to say.
        """
        self._check_pool(context, allocation_id, pool)
        _check_generation(generation)
        return self._allocator.commit(allocation_id, generation, actor=_actor(context))

    def release(
        self,
        context: RequestContext,
        allocation_id: str,
        generation: int | None = None,
        pool: Words | None = None,
        force: bool = False,
        missing_ok: bool = False,
    ) -> Document:
        """Give a value back. ``pool`` as in :meth:`commit`.

        :param force: with what depends on it, and even if its owner lives.
        :raises StaleGeneration: it is not in the state any more that the caller speaks of.
        :raises OwnerLives: a VIP, say, would go on using what somebody else may get.
        """
        _check_generation(generation)
        try:
            found = self._check_pool(context, allocation_id, pool)
        except NotAllocated:
            if missing_ok and context.is_admin:
                return {"released": 0}
            raise
        self._spare(Owner(**found["owner"]), force)
        asked = {"force": bool(force), "missing_ok": bool(missing_ok)}
        return self._allocator.release(allocation_id, generation, **asked, actor=_actor(context))

    def release_owner(self, context: RequestContext, owner: Words, force: bool = False) -> Document:
        """Give back whatever an owner has, from whichever pools.

        :raises OwnerLives: as :meth:`release`.
        """
        _only_admins(context, "release by owner")
        self._spare(owner_(owner), force)
        return self._allocator.release_owner(owner, force=bool(force), actor=_actor(context))

    def release_value(self, context: RequestContext, pool: Words, value: Any, owner: Words) -> Document:
        """:raises NotAuthorized: it is not the owner's.

        :raises OutOfRange: the pool has no such value.
        :raises OwnerLives: as :meth:`release`, which can be forced.
        """
        seen = _seen(context, pool)
        # Whether somebody lives who has nothing there is none of the caller's business.
        if self._allocator.allocations(seen, owner):
            self._spare(owner_(owner))
        return self._allocator.release_value(seen, value, owner, actor=_actor(context))

    def allocation(self, context: RequestContext, allocation_id: str, pool: Words | None = None) -> Document:
        """With its children. ``pool`` as in :meth:`commit`."""
        return self._check_pool(context, allocation_id, pool)

    def allocations(
        self, context: RequestContext, pool: Words | None = None, owner: Words | None = None, resting: bool = False
    ) -> list[Document]:
        """Of a pool, of an owner, or both. ``resting``: the quarantined ones, too."""
        if pool is None:
            _only_admins(context, "see allocations of all pools")
        return self._allocator.allocations(None if pool is None else _seen(context, pool), owner, resting=bool(resting))

    # --- looking ------------------------------------------------------------------------------------------------------------

    def usage(self, context: RequestContext, pool: Words) -> Document:
        """How many values of a pool are in use, held, resting or free, and which."""
        return self._allocator.usage(_seen(context, pool))

    def history(
        self,
        context: RequestContext,
        pool: Words | None = None,
        owner: Words | None = None,
        allocation_id: str | None = None,
        since: str | None = None,
        limit: int = 100,
    ) -> list[Document]:
        """What was done, last things first. ``since``: ISO 8601, UTC where it names no zone. It outlives its pools."""
        _only_admins(context, "see the history of resources")
        _check("limit", limit, schemas.HISTORY_LIMIT)
        _check("allocation_id", allocation_id, schemas.OPTIONAL_ID)
        moment = _moment(since)
        return self._allocator.history(pool, owner, allocation_id=allocation_id, since=moment, limit=int(limit))

    def keys(self, context: RequestContext) -> str:
        """The key tree of the store."""
        _only_admins(context, "see the keys of the store")
        return self._allocator.keys()

    # --- care ---------------------------------------------------------------------------------------------------------------

    def check(self, context: RequestContext) -> list[Document]:
        """Whatever is not as it should be."""
        _only_admins(context, "check resources")
        return self._allocator.check()

    def reconcile(
        self,
        context: RequestContext,
        dry_run: bool = True,
        grace_seconds: float | None = None,
        history_days: float | None = None,
        request_days: float | None = None,
    ) -> Document:
        """Find what nobody wants any more; give it back unless ``dry_run``. Times as configured, unless given."""
        _only_admins(context, "reconcile resources")
        given = {"grace_seconds": grace_seconds, "history_days": history_days, "request_days": request_days}
        group = self._conf.allocator
        terms = {
            "grace_seconds": group.owner_grace_delay_seconds,
            "history_days": group.history_days,
            "request_days": group.request_days,
            **{name: value for name, value in given.items() if value is not None},
        }
        _check("reconcile", {"dry_run": dry_run, **terms}, schemas.RECONCILE)
        return self._allocator.reconcile(probe=self._probe, dry_run=dry_run, **terms)

    def _spare(self, owner: Owner, force: bool = False) -> None:
        """:raises OwnerLives: it does, and must not lose what it has."""
        if self._probe is not None and not force and self._probe(owner):
            raise OwnerLives(type=owner.type, id=owner.id)

    def _check_pool(self, context: RequestContext, allocation_id: str, pool: Words | None) -> Document:
        """The allocation.

        :raises NotAllocated: there is none, or not in that pool.
        """
        if not isinstance(allocation_id, str):
            raise InvalidRequest(f"The id of an allocation is a text, not {allocation_id!r:.80}")
        if pool is None:
            _only_admins(context, "name an allocation without its pool")
            return self._allocator.allocation(allocation_id)
        known = self.pool(context, pool)
        found = self._allocator.allocation(allocation_id)
        if found["pool_id"].rstrip("#") != known["id"]:
            raise NotAllocated(id=allocation_id[:80])
        return found


def _only_admins(context: RequestContext, what: str) -> None:
    if not context.is_admin:
        raise NotAuthorized(reason=f"only administrators {what}")


def _actor(context: RequestContext) -> str:
    """For the audit trail. What a proxy let through as the user's id must not keep an operation from being done."""
    text = "".join(letter for letter in str(context.user_id or "") if letter.isprintable())
    return text.strip()[:MAX_ACTOR].strip()


def _own_scope(context: RequestContext) -> str:
    return f"tenant:{context.project_id}"


def _seen(context: RequestContext, pool: Words) -> Words:
    """The selector, if the caller may know of such a pool. Without a scope, it is the caller's own.

    :raises NotDefined: he may not.
    """
    if context.is_admin or not isinstance(pool, Mapping):
        return pool
    scoped = {"scope": _own_scope(context), **pool}
    if not context.project_id or scoped["scope"] != _own_scope(context):
        raise NotDefined(kind=pool.get("kind"), id=pool.get("name"))
    return scoped


def _own_requests(context: RequestContext, requests: Sequence[Any]) -> Sequence[Any]:
    return requests if context.is_admin or not isinstance(requests, list | tuple) else [_own(context, it) for it in requests]


def _own(context: RequestContext, request: Any) -> Any:
    """The request, with all below it, from the caller's own pools and for himself."""
    if not isinstance(request, Mapping):
        return request
    place = {"kind": request.get("kind"), "name": request.get("pool", ""), "scope": request.get("scope", _own_scope(context))}
    own = {**request, "scope": _seen(context, place)["scope"], "tenant_id": context.project_id}
    children = request.get("children")
    if isinstance(children, list | tuple):
        own["children"] = [_own(context, child) for child in children]
    if request.get("within") is not None:
        own["within"] = _own(context, request["within"])
    return own


def _check_generation(generation: Any) -> None:
    if generation is not None:
        _check("generation", generation, schemas.GENERATION)


def _check(name: str, value: Any, schema: Schema) -> None:
    reason = violation(schema, value)
    if reason is not None:
        raise InvalidRequest(f"Invalid value for '{name}': {reason}", attribute=name)


def _moment(text: str | None) -> datetime | None:
    """:raises InvalidRequest: no date and time."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest(f"'since' is {text!r:.80}; give a time such as 2026-01-31T12:00:00Z", attribute="since") from None
    # Nothing was kept before there were computers.
    return found if found.year >= 1970 else None
