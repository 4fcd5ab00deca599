"""The client of the allocator, for programs that do not speak HTTP.

A pool is named by ``{"kind", "name", "scope"}``, an owner by ``{"type", "id"}``; a request is a document with the fields of
:class:`lbaas_scheduler.allocator.core.requests.Request`. Errors arrive as their own class (:mod:`lbaas_scheduler.errors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oslo_messaging
from oslo_context.context import RequestContext

from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.transport import delivering, get_client

Body = dict[str, Any]


class AllocatorClient:
    """Version 1.0.

    :raises oslo_messaging.MessagingTimeout: no server answered within ``rpc_response_timeout``. Give :meth:`allocate` and
        :meth:`hold` a ``request_id``, and they can be repeated then: what was allocated meanwhile is the answer.
    """

    def __init__(self, transport: oslo_messaging.Transport) -> None:
        self._client = get_client(transport, topics.PLUGINS, topics.ALLOCATOR_NAMESPACE)

    def _call(self, context: RequestContext, method: str, **arguments: Any) -> Any:
        with delivering():
            return self._client.call(context, method, **arguments)

    def define(self, context: RequestContext, pool: Body, config: Body | None = None) -> Body:
        found: Body = self._call(context, "define", pool=pool, config=config)
        return found

    def resize(self, context: RequestContext, pool: Body, config: Body, drain: bool = False) -> Body:
        """``drain``: keep values in use outside of the new range until they are released, in place of refusing."""
        found: Body = self._call(context, "resize", pool=pool, config=config, drain=drain)
        return found

    def undefine(self, context: RequestContext, pool: Body, drain: bool = False, force: bool = False) -> Body:
        """``{"removed": false}``: it is draining, and goes with its last value."""
        found: Body = self._call(context, "undefine", pool=pool, drain=drain, force=force)
        return found

    def pool(self, context: RequestContext, pool: Body) -> Body:
        found: Body = self._call(context, "pool", pool=pool)
        return found

    def pools(self, context: RequestContext, kind: str | None = None) -> list[Body]:
        found: list[Body] = self._call(context, "pools", kind=kind)
        return found

    def allocate(self, context: RequestContext, requests: Sequence[Body], request_id: str = "") -> list[Body]:
        """All of them, with all that they bring, or none."""
        found: list[Body] = self._call(context, "allocate", requests=list(requests), request_id=request_id)
        return found

    def hold(
        self, context: RequestContext, requests: Sequence[Body], ttl_seconds: float | None = None, request_id: str = ""
    ) -> list[Body]:
        """As :meth:`allocate`, until :meth:`commit` makes it final."""
        asked = {"requests": list(requests), "ttl_seconds": ttl_seconds, "request_id": request_id}
        found: list[Body] = self._call(context, "hold", **asked)
        return found

    def commit(
        self, context: RequestContext, allocation_id: str, generation: int | None = None, pool: Body | None = None
    ) -> Body:
        found: Body = self._call(context, "commit", allocation_id=allocation_id, generation=generation, pool=pool)
        return found

    def release(
        self,
        context: RequestContext,
        allocation_id: str,
        generation: int | None = None,
        pool: Body | None = None,
        force: bool = False,
        missing_ok: bool = False,
    ) -> Body:
        """``{"released": how many values came back}``."""
        asked = {"generation": generation, "pool": pool, "force": force, "missing_ok": missing_ok}
        found: Body = self._call(context, "release", allocation_id=allocation_id, **asked)
        return found

    def release_owner(self, context: RequestContext, owner: Body, force: bool = False) -> Body:
        found: Body = self._call(context, "release_owner", owner=owner, force=force)
        return found

    def release_value(self, context: RequestContext, pool: Body, value: Any, owner: Body) -> Body:
        found: Body = self._call(context, "release_value", pool=pool, value=value, owner=owner)
        return found

    def allocation(self, context: RequestContext, allocation_id: str, pool: Body | None = None) -> Body:
        found: Body = self._call(context, "allocation", allocation_id=allocation_id, pool=pool)
        return found

    def allocations(
        self, context: RequestContext, pool: Body | None = None, owner: Body | None = None, resting: bool = False
    ) -> list[Body]:
        found: list[Body] = self._call(context, "allocations", pool=pool, owner=owner, resting=resting)
        return found

    def usage(self, context: RequestContext, pool: Body) -> Body:
        found: Body = self._call(context, "usage", pool=pool)
        return found

    def history(
        self,
        context: RequestContext,
        pool: Body | None = None,
        owner: Body | None = None,
        allocation_id: str | None = None,
        since: str | None = None,
        limit: int = 100,
    ) -> list[Body]:
        """What was done, last things first."""
        asked = {"pool": pool, "owner": owner, "allocation_id": allocation_id, "since": since, "limit": limit}
        found: list[Body] = self._call(context, "history", **asked)
        return found

    def keys(self, context: RequestContext) -> str:
        return str(self._call(context, "keys"))

    def check(self, context: RequestContext) -> list[Body]:
        """Whatever is not as it should be."""
        found: list[Body] = self._call(context, "check")
        return found

    def reconcile(
        self,
        context: RequestContext,
        dry_run: bool = True,
        grace_seconds: float | None = None,
        history_days: float | None = None,
        request_days: float | None = None,
    ) -> Body:
        """Find what nobody wants any more; give it back unless ``dry_run``."""
        asked = {"grace_seconds": grace_seconds, "history_days": history_days, "request_days": request_days}
        found: Body = self._call(context, "reconcile", dry_run=dry_run, **asked)
        return found
