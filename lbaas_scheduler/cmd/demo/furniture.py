"""What stands in the demo before anybody does anything: devices, service types, a network with its subnet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oslo_context.context import RequestContext

from lbaas_scheduler.rpc.lbaas_api import DeviceSchedulerClient

ADMIN = RequestContext(project_id="operator", is_admin=True, overwrite=False)

NETWORK_CIDR = "127.87.0.0/24"
"""Loopback addresses for the VIPs: on Linux all of 127.0.0.0/8 is there, for every user."""

VIPS_PER_DEVICE = 10


def register_devices(devices: DeviceSchedulerClient, device_types: Sequence[str], count: int) -> None:
    """:param device_types: those with a data plane on this host; the devices are of each in turn."""
    for number in range(count):
        device_type = device_types[number % len(device_types)]
        body = {
            "name": f"{device_type}-{number + 1}",
            "service": "LoadBalancer",
            "device_type": device_type,
            "capacity": {"VIPS": VIPS_PER_DEVICE},
        }
        devices.create_device(ADMIN, device=body)


def define_service_types(devices: DeviceSchedulerClient, device_types: Sequence[str]) -> str:
    """``any``, which the server has made the default at its start, and ``fast``.

    :returns: the device type that ``fast`` asks for.
    """
    fastest = device_types[0]
    default = devices.get_service_types(ADMIN, filters={"name": ["any"]})[0]
    devices.update_service_type(ADMIN, default["id"], service_type=_service_type("any", None))
    devices.create_service_type(ADMIN, service_type=_service_type("fast", fastest))
    return fastest


def _service_type(name: str, driver: str | None) -> dict[str, Any]:
    definition = {"service": "LoadBalancer", "plugin": "LoadBalancer", "driver": driver}
    return {"name": name, "description": f"Balancers on {driver or 'whatever fits'}", "service_definitions": [definition]}


def create_subnet(devices: DeviceSchedulerClient) -> dict[str, Any]:
    """The shared network ``front`` and its subnet ``front``."""
    network = devices.create_network(ADMIN, network={"name": "front", "shared": True})
    subnet = {"network_id": network["id"], "name": "front", "cidr": NETWORK_CIDR, "gateway_ip": None}
    return devices.create_subnet(ADMIN, subnet=subnet)
