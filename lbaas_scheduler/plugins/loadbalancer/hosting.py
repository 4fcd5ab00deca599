"""Which load balancers are where. For administrators; tenants see no devices but their own, and no agents."""

from __future__ import annotations

from typing import Any

from oslo_context.context import RequestContext

from lbaas_scheduler.db import hosting
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.errors import NotAuthorized
from lbaas_scheduler.plugins.loadbalancer import pools, vips
from lbaas_scheduler.plugins.loadbalancer.core import Core
from lbaas_scheduler.plugins.loadbalancer.schemas.vips import VIP
from lbaas_scheduler.schemas.access import Fields, Filters, listing, projected

Document = dict[str, Any]


class Hosting:
    def __init__(self, core: Core, of_pools: pools.Pools) -> None:
        self._core = core
        self._pools = of_pools

    def vips_on_device(
        self, context: RequestContext, device_id: str, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        """Those of the caller. Whether he may know of the device, whoever calls has asked."""
        asked = listing(context, VIP, filters, **page)
        rows = self._core.database.read(lambda conn: hosting.vips_on_device(conn, device_id, asked))
        return [projected(vips.document(row), fields) for row in rows]

    def pools_on_agent(self, context: RequestContext, agent_id: str) -> list[Document]:
        """Those whose VIPs are on devices that the agent drives; an unknown agent has none."""
        _only_admins(context)
        ids = self._core.database.read(lambda conn: hosting.pools_on_agent(conn, agent_id))
        return [pool for some in chunks(ids) for pool in self._pools.search(context, {"id": list(some)})]

    def agent_of_pool(self, context: RequestContext, pool_id: str) -> str | None:
        """Id of the agent that drives the device of the pool's VIP; None = nobody does, or it has no VIP.

        :raises PoolNotFound: there is no such pool.
        """
        _only_admins(context)
        self._pools.get(context, pool_id, ["id"])
        return self._core.database.read(lambda conn: hosting.agent_of_pool(conn, pool_id))


def _only_admins(context: RequestContext) -> None:
    if not context.is_admin:
        raise NotAuthorized(reason="only administrators see what is on devices and agents")
