"""What a service plugin is to the server that loads it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from oslo_config import cfg

from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.networks.registry import NetworkRegistry
from lbaas_scheduler.scheduler.services import Service
from lbaas_scheduler.sdk.networks import NetworkConnector

if TYPE_CHECKING:
    from lbaas_scheduler.plugins.agents import AgentDirectory
    from lbaas_scheduler.plugins.casts import Casts
    from lbaas_scheduler.plugins.device_scheduler.placement_rules import PlacementRules
    from lbaas_scheduler.plugins.device_scheduler.placer import Places
    from lbaas_scheduler.plugins.device_scheduler.service_types import ServiceTypes
    from lbaas_scheduler.plugins.fleet.operations import FleetOperations
    from lbaas_scheduler.plugins.fleet.starting import Requests
    from lbaas_scheduler.plugins.quotas import Quotas


@dataclass(frozen=True, slots=True)
class Parts:
    """What a server has, and hands to each plugin that it loads. ``services``: the installed ones by name."""

    conf: cfg.ConfigOpts
    database: Database
    services: Mapping[str, Service]
    placer: Places
    registry: Registry
    service_types: ServiceTypes
    agents: AgentDirectory
    caster: Casts
    networks: NetworkRegistry
    connector: NetworkConnector
    fleet: FleetOperations
    quotas: Quotas
    rules: PlacementRules
    allocator: ResourceAllocator


class ServicePluginBase(ABC):
    """One service of the server. Registered under ``lbaas_scheduler.service_plugins``, chosen by ``[DEFAULT] service_plugins``.

    A plugin gets all that it needs by its constructor. It answers calls from any thread between :meth:`start` and :meth:`stop`.
    """

    service: str
    """Name of the service, as service types and devices spell it."""

    @classmethod
    @abstractmethod
    def build(cls, parts: Parts) -> Self:
        """The plugin, not started, made of what the server has.

        :raises ConfigurationError: its options are wrong.
        """

    @classmethod
    def requests(cls, parts: Parts) -> Requests | None:  # noqa: ARG003
        """How a placed resource of the service asks for a device anew, so that it can be moved. None: none can be moved."""
        return None

    @abstractmethod
    def rpc_endpoints(self) -> Sequence[Any]:
        """The ``oslo.messaging`` endpoints that the server exposes for this plugin."""

    def start(self) -> None:
        """Begin what runs in the background. Called once, before the first call."""

    def stop(self) -> None:
        """End it, and return once it has ended. May be called without :meth:`start`, and twice."""
