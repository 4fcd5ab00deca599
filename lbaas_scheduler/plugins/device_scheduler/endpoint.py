"""The device scheduler on the bus. Its client is :class:`lbaas_scheduler.rpc.lbaas_api.DeviceSchedulerClient`."""

from __future__ import annotations

import oslo_messaging

from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc import topics

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
)
"""Exactly what may be called from outside."""


class DeviceSchedulerEndpoint:
    """The methods of the plugin under their own names. Errors that a caller may cause are expected: no failures in the log."""

    target = oslo_messaging.Target(namespace=topics.DEVICES_NAMESPACE, version=topics.VERSION)

    def __init__(self, plugin: object) -> None:
        expected = oslo_messaging.expected_exceptions(LBaaSError)
        for name in METHODS:
            setattr(self, name, expected(getattr(plugin, name)))
