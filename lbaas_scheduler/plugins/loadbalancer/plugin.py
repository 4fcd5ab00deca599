"""The facade of the LoadBalancer service: each call goes to the noun that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from oslo_context.context import RequestContext

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.plugins.base import Parts
from lbaas_scheduler.plugins.loadbalancer.associations import Associations
from lbaas_scheduler.plugins.loadbalancer.base import Body, Document, Fields, Filters, LoadBalancerPluginBase
from lbaas_scheduler.plugins.loadbalancer.core import Casts, Core, NoRules, PlacesResources, Rules, ServiceTypes
from lbaas_scheduler.plugins.loadbalancer.endpoint import LoadBalancerEndpoint
from lbaas_scheduler.plugins.loadbalancer.health_monitors import HealthMonitors
from lbaas_scheduler.plugins.loadbalancer.hosting import Hosting
from lbaas_scheduler.plugins.loadbalancer.members import Members
from lbaas_scheduler.plugins.loadbalancer.pools import Pools
from lbaas_scheduler.plugins.loadbalancer.requests import VipRequests
from lbaas_scheduler.plugins.loadbalancer.resetting import Resetting
from lbaas_scheduler.plugins.loadbalancer.simulating import Simulating
from lbaas_scheduler.plugins.loadbalancer.vips import Vips
from lbaas_scheduler.plugins.quotas import NoQuotas, QuotaGuard
from lbaas_scheduler.scheduler.services import Service
from lbaas_scheduler.sdk.networks import NetworkConnector


class LoadBalancerPlugin(LoadBalancerPluginBase):
    """LBaaS v1 on top of the device scheduler. Keeps no state: any number of servers may run it on one database.

    :param cast_deadline_seconds: after how long a change that no agent confirmed is cast again.
    :param quotas: asked before anything is created; None = everybody may have everything.
    :param rules: the placement rules; None = there are none.
    """

    def __init__(
        self,
        database: Database,
        placer: PlacesResources,
        caster: Casts,
        connector: NetworkConnector,
        service: Service,
        service_types: ServiceTypes,
        cast_deadline_seconds: float,
        quotas: QuotaGuard | None = None,
        rules: Rules | None = None,
    ) -> None:
        core = Core(
            database=database,
            placer=placer,
            caster=caster,
            connector=connector,
            service=service,
            service_types=service_types,
            cast_deadline_seconds=cast_deadline_seconds,
            quotas=quotas or NoQuotas(),
            rules=rules or NoRules(),
        )
        self.vips = Vips(core)
        self.pools = Pools(core)
        self.members = Members(core)
        self.health_monitors = HealthMonitors(core)
        self.associations = Associations(core)
        self.hosting = Hosting(core, self.pools)
        self.simulating = Simulating(core)
        self.resetting = Resetting(core)

    @classmethod
    def build(cls, parts: Parts) -> Self:
        return cls(
            database=parts.database,
            placer=parts.placer,
            caster=parts.caster,
            connector=parts.connector,
            service=parts.services[cls.service],
            service_types=parts.service_types,
            cast_deadline_seconds=parts.conf.scheduler.cast_deadline_seconds,
            quotas=parts.quotas,
            rules=parts.rules,
        )

    @classmethod
    def requests(cls, parts: Parts) -> VipRequests:
        return VipRequests(parts.services[cls.service], parts.service_types, parts.rules)

    def rpc_endpoints(self) -> Sequence[Any]:
        return [LoadBalancerEndpoint(self)]

    def create_vip(self, context: RequestContext, vip: Body) -> Document:
        return self.vips.create(context, vip)

    def create_vip_bulk(self, context: RequestContext, vips: Sequence[Body]) -> list[Document]:
        return self.vips.create_bulk(context, vips)

    def get_vip(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        return self.vips.get(context, id, fields)

    def get_vips(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        return self.vips.search(context, filters, fields, **page)

    def update_vip(self, context: RequestContext, id: str, vip: Body) -> Document:
        return self.vips.update(context, id, vip)

    def delete_vip(self, context: RequestContext, id: str) -> None:
        self.vips.delete(context, id)

    def reset_vip_status(self, context: RequestContext, id: str) -> Document:
        return self.resetting.reset(context, id)

    def create_pool(self, context: RequestContext, pool: Body) -> Document:
        return self.pools.create(context, pool)

    def create_pool_bulk(self, context: RequestContext, pools: Sequence[Body]) -> list[Document]:
        return self.pools.create_bulk(context, pools)

    def get_pool(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        return self.pools.get(context, id, fields)

    def get_pools(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        return self.pools.search(context, filters, fields, **page)

    def update_pool(self, context: RequestContext, id: str, pool: Body) -> Document:
        return self.pools.update(context, id, pool)

    def delete_pool(self, context: RequestContext, id: str) -> None:
        self.pools.delete(context, id)

    def stats(self, context: RequestContext, pool_id: str) -> Document:
        return self.pools.stats(context, pool_id)

    def simulate(self, context: RequestContext, vip: Body, count: int = 1) -> Document:
        return self.simulating.simulate(context, vip, count)

    def create_member(self, context: RequestContext, member: Body) -> Document:
        return self.members.create(context, member)

    def create_member_bulk(self, context: RequestContext, members: Sequence[Body]) -> list[Document]:
        return self.members.create_bulk(context, members)

    def get_member(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        return self.members.get(context, id, fields)

    def get_members(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        return self.members.search(context, filters, fields, **page)

    def update_member(self, context: RequestContext, id: str, member: Body) -> Document:
        return self.members.update(context, id, member)

    def delete_member(self, context: RequestContext, id: str) -> None:
        self.members.delete(context, id)

    def create_health_monitor(self, context: RequestContext, health_monitor: Body) -> Document:
        return self.health_monitors.create(context, health_monitor)

    def get_health_monitor(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        return self.health_monitors.get(context, id, fields)

    def get_health_monitors(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        return self.health_monitors.search(context, filters, fields, **page)

    def update_health_monitor(self, context: RequestContext, id: str, health_monitor: Body) -> Document:
        return self.health_monitors.update(context, id, health_monitor)

    def delete_health_monitor(self, context: RequestContext, id: str) -> None:
        self.health_monitors.delete(context, id)

    def create_pool_health_monitor(self, context: RequestContext, health_monitor_id: str, pool_id: str) -> Document:
        return self.associations.create(context, health_monitor_id, pool_id)

    def get_pool_health_monitor(
        self, context: RequestContext, health_monitor_id: str, pool_id: str, fields: Fields | None = None
    ) -> Document:
        return self.associations.get(context, health_monitor_id, pool_id, fields)

    def delete_pool_health_monitor(self, context: RequestContext, health_monitor_id: str, pool_id: str) -> None:
        self.associations.delete(context, health_monitor_id, pool_id)

    def get_vips_on_device(
        self,
        context: RequestContext,
        device_id: str,
        filters: Filters | None = None,
        fields: Fields | None = None,
        **page: Any,
    ) -> list[Document]:
        return self.hosting.vips_on_device(context, device_id, filters, fields, **page)

    def get_pools_on_agent(self, context: RequestContext, agent_id: str) -> list[Document]:
        return self.hosting.pools_on_agent(context, agent_id)

    def get_agent_of_pool(self, context: RequestContext, pool_id: str) -> str | None:
        return self.hosting.agent_of_pool(context, pool_id)
