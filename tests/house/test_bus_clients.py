"""What the clients of the bus send, the servers behind it take.

Methods and arguments are named by texts between them, which no checker of types compares.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from lbaas_scheduler.networks.registry import NetworkRegistry
from lbaas_scheduler.plugins import resource_endpoint
from lbaas_scheduler.plugins.device_scheduler import endpoint as devices_endpoint
from lbaas_scheduler.plugins.device_scheduler.plugin import DeviceSchedulerPlugin
from lbaas_scheduler.plugins.fleet.operations import FleetOperations
from lbaas_scheduler.plugins.loadbalancer import endpoint as balancers_endpoint
from lbaas_scheduler.plugins.loadbalancer.plugin import LoadBalancerPlugin
from lbaas_scheduler.plugins.resources import Resources
from lbaas_scheduler.rpc.allocator_api import AllocatorClient
from lbaas_scheduler.rpc.lbaas_api import DeviceSchedulerClient, LoadBalancerClient

Server = tuple[type, Collection[str]]

PAIRS: list[tuple[type, list[Server]]] = [
    (LoadBalancerClient, [(LoadBalancerPlugin, balancers_endpoint.METHODS)]),
    (
        DeviceSchedulerClient,
        [
            (DeviceSchedulerPlugin, devices_endpoint.METHODS),
            (NetworkRegistry, devices_endpoint.NETWORK_METHODS),
            (FleetOperations, devices_endpoint.FLEET_METHODS),
        ],
    ),
    (AllocatorClient, [(Resources, resource_endpoint.METHODS)]),
]


class Bus:
    """Remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def call(self, _context: object, method: str, **arguments: Any) -> Any:
        self.sent.append((method, arguments))
        return {}


def _public(kind: type) -> Iterator[str]:
    return (name for name, value in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_"))


def _behind(servers: list[Server]) -> dict[str, Any]:
    return {name: getattr(cls, name) for cls, names in servers for name in names}


@pytest.mark.parametrize(("kind", "servers"), PAIRS, ids=lambda it: getattr(it, "__name__", ""))
def test_a_client_has_a_method_for_each_of_the_servers_and_no_other(kind: type, servers: list[Server]) -> None:
    assert set(_public(kind)) == set(_behind(servers))


@pytest.mark.parametrize(("kind", "servers"), PAIRS, ids=lambda it: getattr(it, "__name__", ""))
def test_a_server_takes_each_argument_that_its_client_sends(kind: type, servers: list[Server]) -> None:
    taken = _behind(servers)
    for name in _public(kind):
        client, bus = object.__new__(kind), Bus()
        client._client = bus
        parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
        words = [it.name for it in parameters if it.kind is not it.VAR_KEYWORD]
        getattr(client, name)(**{word: [] for word in words})
        ((method, arguments),) = bus.sent
        inspect.signature(taken[method]).bind(None, None, **arguments)
