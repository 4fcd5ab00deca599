"""What setup.cfg promises is there."""

from __future__ import annotations

import configparser
import importlib
import inspect

import pytest

from lbaas_scheduler import extensions
from lbaas_scheduler.allocator.core.drivers import StateDriver
from lbaas_scheduler.allocator.core.resource import Resource
from lbaas_scheduler.plugins.base import ServicePluginBase
from lbaas_scheduler.scheduler.algorithms.base import Algorithm
from lbaas_scheduler.scheduler.services import Service
from lbaas_scheduler.sdk.drivers import AgentDriver
from lbaas_scheduler.sdk.handlers import DeviceHandler
from lbaas_scheduler.sdk.networks import NetworkConnector
from tests.house.sources import ROOT

INTERFACES = {
    extensions.SERVICE_PLUGINS: ServicePluginBase,
    extensions.SERVICES: Service,
    f"{extensions.ALGORITHMS}.LoadBalancer": Algorithm,
    f"{extensions.DEVICE_HANDLERS}.LoadBalancer": DeviceHandler,
    extensions.AGENT_DRIVERS: AgentDriver,
    extensions.NETWORK_CONNECTORS: NetworkConnector,
    extensions.RESOURCES: Resource,
    extensions.STATE_DRIVERS: StateDriver,
}


def _declared() -> list[tuple[str, str, str]]:
    """(namespace, name, target) of each entry point. Read from setup.cfg, as an old installation would tell old names."""
    config = configparser.ConfigParser(delimiters=("=",))
    config.optionxform = str  # type: ignore[assignment,method-assign]
    config.read(ROOT / "setup.cfg")
    return [
        (namespace, *(part.strip() for part in line.split("=", 1)))  # type: ignore[misc]
        for namespace, lines in config["options.entry_points"].items()
        for line in lines.strip().splitlines()
    ]


@pytest.mark.parametrize(("namespace", "name", "target"), _declared())
def test_each_entry_point_leads_to_what_its_namespace_is_for(namespace, name, target):
    module, attribute = target.split(":")
    loaded = getattr(importlib.import_module(module), attribute)
    if namespace in INTERFACES:
        assert issubclass(loaded, INTERFACES[namespace])
        assert not inspect.isabstract(loaded), f"{name} lacks {', '.join(loaded.__abstractmethods__)}"
    else:
        assert callable(loaded)


@pytest.mark.parametrize("namespace", INTERFACES)
def test_each_extension_point_ships_an_implementation(namespace):
    assert [name for space, name, _ in _declared() if space == namespace]


# A service's whole API is its plugin's interface, which cannot be small.
@pytest.mark.parametrize("interface", [cls for cls in INTERFACES.values() if cls is not ServicePluginBase])
def test_an_interface_is_small_enough_to_be_implemented_in_an_afternoon(interface):
    assert len(interface.__abstractmethods__) <= 5
    undocumented = [name for name in interface.__abstractmethods__ if not inspect.getdoc(getattr(interface, name))]
    assert undocumented == []
