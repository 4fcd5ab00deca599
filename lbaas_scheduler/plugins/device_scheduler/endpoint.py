"""The device scheduler on the bus. Its client is :class:`lbaas_scheduler.rpc.lbaas_api.DeviceSchedulerClient`."""

from __future__ import annotations

import oslo_messaging

from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.dispatching import expecting

METHODS = (
    "create_device",
    "get_device",
    "get_devices",
    "update_device",
    "delete_device",
    "create_service_type",
    "get_service_type",
    "get_service_types",
    "update_service_type",
    "delete_service_type",
    "get_agent",
    "get_agents",
    "update_agent",
    "delete_agent",
    "get_placement",
    "explain",
    "create_placement_rule",
    "get_placement_rule",
    "get_placement_rules",
    "update_placement_rule",
    "delete_placement_rule",
)
NETWORK_METHODS = (
    "create_network",
    "get_network",
    "get_networks",
    "update_network",
    "delete_network",
    "create_subnet",
    "get_subnet",
    "get_subnets",
    "update_subnet",
    "delete_subnet",
)
FLEET_METHODS = (
    "move_vip",
    "evacuate_device",
    "cancel_evacuation",
    "get_evacuation",
    "write_off_device",
    "get_move",
    "get_moves",
    "rebalance",
    "check_device",
    "get_device_health",
    "get_breaker",
    "reset_breaker",
)
"""Exactly what may be called from outside: of the plugin, of its registry of networks, and of its fleet operations."""


class DeviceSchedulerEndpoint:
    """The methods of the plugin under their own names. Errors that a caller may cause are expected: no failures in the log."""

    target = oslo_messaging.Target(namespace=topics.DEVICES_NAMESPACE, version=topics.VERSION)

    def __init__(self, plugin: object, networks: object, fleet: object) -> None:
        expected = expecting(LBaaSError)
        for target, names in ((plugin, METHODS), (networks, NETWORK_METHODS), (fleet, FLEET_METHODS)):
            for name in names:
                setattr(self, name, expected(getattr(target, name)))
