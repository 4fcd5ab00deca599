"""The client of the allocator, for programs that do not speak HTTP.

Each method is a call of that of the same name of :class:`lbaas_scheduler.plugins.resources.Resources`, which says what it raises.
A pool is named by ``{"kind", "name", "scope"}``, an owner by ``{"type", "id"}``; a request is a document with the fields of
:class:`lbaas_scheduler.allocator.core.requests.Request`. Errors arrive as their own class (:mod:`lbaas_scheduler.errors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oslo_context.context import RequestContext

from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.plugin_client import Body, PluginClient


class AllocatorClient(PluginClient):
    """Version 1.0.

    :raises oslo_messaging.MessagingTimeout: no server answered within ``rpc_response_timeout``. Give :meth:`allocate` and
        :meth:`hold` a ``request_id``, and they can be repeated then: what was allocated meanwhile is the answer.
    """

    namespace = topics.ALLOCATOR_NAMESPACE

    def define(self, context: RequestContext, pool: Body, config: Body | None = None) -> Body:
        """Make a pool. The same configuration again is fine. ``config`` None: what is usual for its kind."""
        return self._call(context, "define", pool=pool, config=config)

    def resize(self, context: RequestContext, pool: Body, config: Body, drain: bool = False) -> Body:
        """``drain``: keep values in use outside of the new range until they are released, in place of refusing."""
        return self._call(context, "resize", pool=pool, config=config, drain=drain)

    def undefine(self, context: RequestContext, pool: Body, drain: bool = False, force: bool = False) -> Body:
        """``{"removed": false}``: it is draining, and goes with its last value."""
        return self._call(context, "undefine", pool=pool, drain=drain, force=force)

    def pool(self, context: RequestContext, pool: Body) -> Body:
        """:raises NotDefined: there is none, or it is not the caller's."""
        return self._call(context, "pool", pool=pool)

    def pools(self, context: RequestContext, kind: str | None = None) -> list[Body]:
        """Those that the caller may see; ``kind`` None: of all kinds."""
        return self._list(context, "pools", kind=kind)

    def allocate(self, context: RequestContext, requests: Sequence[Body], request_id: str = "") -> list[Body]:
        """All of them, with all that they bring, or none."""
        return self._list(context, "allocate", requests=list(requests), request_id=request_id)

    def hold(
        self, context: RequestContext, requests: Sequence[Body], ttl_seconds: float | None = None, request_id: str = ""
    ) -> list[Body]:
        """As :meth:`allocate`, until :meth:`commit` makes it final; ``ttl_seconds`` None: as the server is configured."""
        asked = {"requests": list(requests), "ttl_seconds": ttl_seconds, "request_id": request_id}
        return self._list(context, "hold", **asked)

    def commit(
        self, context: RequestContext, allocation_id: str, generation: int | None = None, pool: Body | None = None
    ) -> Body:
        """Make a hold final.

        :param generation: from the grant; None = whatever it is by now.
        :param pool: where it must be from; whoever is no administrator has to say.
        """
        return self._call(context, "commit", allocation_id=allocation_id, generation=generation, pool=pool)

    def release(
        self,
        context: RequestContext,
        allocation_id: str,
        generation: int | None = None,
        pool: Body | None = None,
        force: bool = False,
        missing_ok: bool = False,
    ) -> Body:
        """Give a value back, with its children: ``{"released": how many values came back}``.

        :param generation, pool: as in :meth:`commit`.
        :param force: what depends on it, too: the addresses of a subnet.
        :param missing_ok: 0 values, in place of ``NotAllocated``; for administrators.
        """
        asked = {"generation": generation, "pool": pool, "force": force, "missing_ok": missing_ok}
        return self._call(context, "release", allocation_id=allocation_id, **asked)

    def release_owner(self, context: RequestContext, owner: Body, force: bool = False) -> Body:
        """Give back whatever an owner has. ``{"released": 0}``: it had nothing."""
        return self._call(context, "release_owner", owner=owner, force=force)

    def release_value(self, context: RequestContext, pool: Body, value: Any, owner: Body) -> Body:
        """Give back by value, for callers who kept nothing else."""
        return self._call(context, "release_value", pool=pool, value=value, owner=owner)

    def allocation(self, context: RequestContext, allocation_id: str, pool: Body | None = None) -> Body:
        """With its children. ``pool`` as in :meth:`commit`."""
        return self._call(context, "allocation", allocation_id=allocation_id, pool=pool)

    def allocations(
        self, context: RequestContext, pool: Body | None = None, owner: Body | None = None, resting: bool = False
    ) -> list[Body]:
        """Of a pool, of an owner, or both; without children. ``resting``: the quarantined ones, too."""
        return self._list(context, "allocations", pool=pool, owner=owner, resting=resting)

    def usage(self, context: RequestContext, pool: Body) -> Body:
        """How many values of a pool are in use, held, resting or free, and which."""
        return self._call(context, "usage", pool=pool)

    def history(
        self,
        context: RequestContext,
        pool: Body | None = None,
        owner: Body | None = None,
        allocation_id: str | None = None,
        since: str | None = None,
        limit: int = 100,
    ) -> list[Body]:
        """What was done, last things first. ``since``: ISO 8601, UTC where it names no zone. For administrators."""
        asked = {"pool": pool, "owner": owner, "allocation_id": allocation_id, "since": since, "limit": limit}
        return self._list(context, "history", **asked)

    def keys(self, context: RequestContext) -> str:
        """The key tree of the store, one key a line."""
        return str(self._call(context, "keys"))

    def check(self, context: RequestContext) -> list[Body]:
        """Whatever is not as it should be."""
        return self._list(context, "check")

    def reconcile(
        self,
        context: RequestContext,
        dry_run: bool = True,
        grace_seconds: float | None = None,
        history_days: float | None = None,
        request_days: float | None = None,
    ) -> Body:
        """Find what nobody wants any more; give it back unless ``dry_run``. Times as the server is configured, unless given."""
        asked = {"grace_seconds": grace_seconds, "history_days": history_days, "request_days": request_days}
        return self._call(context, "reconcile", dry_run=dry_run, **asked)
