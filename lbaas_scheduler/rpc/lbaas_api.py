"""Clients of the service plugins, for programs that do not speak HTTP (the command line, other services, tests).

Each method is a call of the plugin's method of the same name; bodies are plain attribute dicts, errors arrive as their own
class (:mod:`lbaas_scheduler.errors`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oslo_context.context import RequestContext

from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.plugin_client import Body, PluginClient

Filters = Mapping[str, Sequence[Any]]
Fields = Sequence[str]


class LoadBalancerClient(PluginClient):
    """Client of the LoadBalancer plugin, version 1.0.

    :raises oslo_messaging.MessagingTimeout: no server answered within ``rpc_response_timeout``.
    """

    namespace = topics.LOADBALANCER_NAMESPACE

    def create_vip(self, context: RequestContext, vip: Body) -> Body:
        return self._call(context, "create_vip", vip=vip)

    def get_vip(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_vip", id=id, fields=fields)

    def get_vips(self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None) -> list[Body]:
        return self._list(context, "get_vips", filters=filters, fields=fields)

    def update_vip(self, context: RequestContext, id: str, vip: Body) -> Body:
        return self._call(context, "update_vip", id=id, vip=vip)

    def delete_vip(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_vip", id=id)

    def reset_vip_status(self, context: RequestContext, id: str) -> Body:
        """Apply anew what is stuck in ERROR or PENDING. For administrators."""
        return self._call(context, "reset_vip_status", id=id)

    def create_pool(self, context: RequestContext, pool: Body) -> Body:
        return self._call(context, "create_pool", pool=pool)

    def get_pool(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_pool", id=id, fields=fields)

    def get_pools(self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None) -> list[Body]:
        return self._list(context, "get_pools", filters=filters, fields=fields)

    def update_pool(self, context: RequestContext, id: str, pool: Body) -> Body:
        return self._call(context, "update_pool", id=id, pool=pool)

    def delete_pool(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_pool", id=id)

    def create_member(self, context: RequestContext, member: Body) -> Body:
        return self._call(context, "create_member", member=member)

    def get_member(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_member", id=id, fields=fields)

    def get_members(self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None) -> list[Body]:
        return self._list(context, "get_members", filters=filters, fields=fields)

    def update_member(self, context: RequestContext, id: str, member: Body) -> Body:
        return self._call(context, "update_member", id=id, member=member)

    def delete_member(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_member", id=id)

    def create_health_monitor(self, context: RequestContext, health_monitor: Body) -> Body:
        return self._call(context, "create_health_monitor", health_monitor=health_monitor)

    def get_health_monitor(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_health_monitor", id=id, fields=fields)

    def get_health_monitors(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None
    ) -> list[Body]:
        return self._list(context, "get_health_monitors", filters=filters, fields=fields)

    def update_health_monitor(self, context: RequestContext, id: str, health_monitor: Body) -> Body:
        return self._call(context, "update_health_monitor", id=id, health_monitor=health_monitor)

    def delete_health_monitor(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_health_monitor", id=id)

    def create_pool_health_monitor(self, context: RequestContext, health_monitor_id: str, pool_id: str) -> Body:
        return self._call(context, "create_pool_health_monitor", health_monitor_id=health_monitor_id, pool_id=pool_id)

    def get_pool_health_monitor(
        self, context: RequestContext, health_monitor_id: str, pool_id: str, fields: Fields | None = None
    ) -> Body:
        arguments = {"health_monitor_id": health_monitor_id, "pool_id": pool_id, "fields": fields}
        return self._call(context, "get_pool_health_monitor", **arguments)

    def delete_pool_health_monitor(self, context: RequestContext, health_monitor_id: str, pool_id: str) -> None:
        self._call(context, "delete_pool_health_monitor", health_monitor_id=health_monitor_id, pool_id=pool_id)

    def stats(self, context: RequestContext, pool_id: str) -> Body:
        return self._call(context, "stats", pool_id=pool_id)

    def simulate(self, context: RequestContext, vip: Body, count: int = 1) -> Body:
        """Where ``count`` such VIPs would go, and what would fill up first. Claims nothing."""
        return self._call(context, "simulate", vip=vip, count=count)


class DeviceSchedulerClient(PluginClient):
    """Client of the device scheduler plugin (registry, service types, agents, networks), version 1.0. Mostly for administrators.

    :raises oslo_messaging.MessagingTimeout: no server answered within ``rpc_response_timeout``.
    """

    namespace = topics.DEVICES_NAMESPACE

    def create_device(self, context: RequestContext, device: Body) -> Body:
        return self._call(context, "create_device", device=device)

    def get_device(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_device", id=id, fields=fields)

    def get_devices(self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None) -> list[Body]:
        return self._list(context, "get_devices", filters=filters, fields=fields)

    def update_device(self, context: RequestContext, id: str, device: Body) -> Body:
        return self._call(context, "update_device", id=id, device=device)

    def delete_device(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_device", id=id)

    def create_service_type(self, context: RequestContext, service_type: Body) -> Body:
        return self._call(context, "create_service_type", service_type=service_type)

    def get_service_type(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_service_type", id=id, fields=fields)

    def get_service_types(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None
    ) -> list[Body]:
        return self._list(context, "get_service_types", filters=filters, fields=fields)

    def update_service_type(self, context: RequestContext, id: str, service_type: Body) -> Body:
        return self._call(context, "update_service_type", id=id, service_type=service_type)

    def delete_service_type(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_service_type", id=id)

    def get_agent(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_agent", id=id, fields=fields)

    def get_agents(self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None) -> list[Body]:
        return self._list(context, "get_agents", filters=filters, fields=fields)

    def update_agent(self, context: RequestContext, id: str, agent: Body) -> Body:
        return self._call(context, "update_agent", id=id, agent=agent)

    def delete_agent(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_agent", id=id)

    def create_network(self, context: RequestContext, network: Body) -> Body:
        return self._call(context, "create_network", network=network)

    def get_network(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_network", id=id, fields=fields)

    def get_networks(self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None) -> list[Body]:
        return self._list(context, "get_networks", filters=filters, fields=fields)

    def update_network(self, context: RequestContext, id: str, network: Body) -> Body:
        return self._call(context, "update_network", id=id, network=network)

    def delete_network(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_network", id=id)

    def create_subnet(self, context: RequestContext, subnet: Body) -> Body:
        return self._call(context, "create_subnet", subnet=subnet)

    def get_subnet(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_subnet", id=id, fields=fields)

    def get_subnets(self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None) -> list[Body]:
        return self._list(context, "get_subnets", filters=filters, fields=fields)

    def update_subnet(self, context: RequestContext, id: str, subnet: Body) -> Body:
        return self._call(context, "update_subnet", id=id, subnet=subnet)

    def delete_subnet(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_subnet", id=id)

    def get_placement(self, context: RequestContext, resource_id: str) -> Body:
        """Where a resource went and why: the stored decision with its trail."""
        return self._call(context, "get_placement", resource_id=resource_id)

    def explain(self, context: RequestContext, resource_id: str) -> Body:
        """Why a resource is where it is, in sentences."""
        return self._call(context, "explain", resource_id=resource_id)

    def create_placement_rule(self, context: RequestContext, placement_rule: Body) -> Body:
        return self._call(context, "create_placement_rule", placement_rule=placement_rule)

    def get_placement_rule(self, context: RequestContext, id: str, fields: Fields | None = None) -> Body:
        return self._call(context, "get_placement_rule", id=id, fields=fields)

    def get_placement_rules(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None
    ) -> list[Body]:
        return self._list(context, "get_placement_rules", filters=filters, fields=fields)

    def update_placement_rule(self, context: RequestContext, id: str, placement_rule: Body) -> Body:
        return self._call(context, "update_placement_rule", id=id, placement_rule=placement_rule)

    def delete_placement_rule(self, context: RequestContext, id: str) -> None:
        self._call(context, "delete_placement_rule", id=id)

    def move_vip(self, context: RequestContext, id: str, device_id: str | None = None) -> Body:
        """Begin to move a VIP, to a device or to whichever suits. Answers with the move."""
        return self._call(context, "move_vip", id=id, device_id=device_id)

    def evacuate_device(self, context: RequestContext, id: str) -> Body:
        """Drain a device and begin to move everything off it. Answers with how far it is."""
        return self._call(context, "evacuate_device", id=id)

    def cancel_evacuation(self, context: RequestContext, id: str) -> Body:
        return self._call(context, "cancel_evacuation", id=id)

    def get_evacuation(self, context: RequestContext, id: str) -> Body:
        return self._call(context, "get_evacuation", id=id)

    def write_off_device(self, context: RequestContext, id: str, force: bool = False) -> Body:
        """A disabled device is gone for good: settle what it has not removed. ``force``: though it seems to be there."""
        return self._call(context, "write_off_device", id=id, force=force)

    def get_move(self, context: RequestContext, resource_id: str) -> Body:
        """The last move of a resource."""
        return self._call(context, "get_move", resource_id=resource_id)

    def get_moves(
        self,
        context: RequestContext,
        device_id: str | None = None,
        states: Sequence[str] | None = None,
        marker: str | None = None,
        limit: int | None = None,
    ) -> list[Body]:
        """The last move of each resource, the oldest first, from after that of ``marker``; at most 1000 at a time."""
        return self._list(context, "get_moves", device_id=device_id, states=states, marker=marker, limit=limit)

    def rebalance(self, context: RequestContext, apply: bool = False, **arguments: Any) -> Body:
        """Plan moves that even out the load, or begin them. ``bound``, ``max_moves``, ``service``; ``moves``: a plan as shown."""
        return self._call(context, "rebalance", apply=apply, **arguments)

    def check_device(self, context: RequestContext, id: str) -> Body:
        """Ask a device now how it is."""
        return self._call(context, "check_device", id=id)

    def get_device_health(self, context: RequestContext, id: str) -> Body:
        return self._call(context, "get_device_health", id=id)

    def get_breaker(self, context: RequestContext) -> Body:
        """Whether automatic moves are frozen, and why."""
        return self._call(context, "get_breaker")

    def reset_breaker(self, context: RequestContext) -> Body:
        return self._call(context, "reset_breaker")
