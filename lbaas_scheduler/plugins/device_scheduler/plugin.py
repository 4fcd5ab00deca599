"""The facade of the device scheduler: the fleet, its agents and the service types, and placing for any service.

It serves no service itself, but all of them: other plugins place their resources through :attr:`DeviceSchedulerPlugin.placer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from oslo_context.context import RequestContext

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.devices.tenants import TenantDevices
from lbaas_scheduler.errors import NotAuthorized
from lbaas_scheduler.networks.registry import NetworkRegistry
from lbaas_scheduler.plugins.agents import AgentDirectory
from lbaas_scheduler.plugins.base import Parts, ServicePluginBase
from lbaas_scheduler.plugins.casts import Casts
from lbaas_scheduler.plugins.device_scheduler.devices import Devices
from lbaas_scheduler.plugins.device_scheduler.endpoint import DeviceSchedulerEndpoint
from lbaas_scheduler.plugins.device_scheduler.explain import explanation_of, placement_of
from lbaas_scheduler.plugins.device_scheduler.placement_rules import PlacementRules
from lbaas_scheduler.plugins.device_scheduler.placer import Places
from lbaas_scheduler.plugins.device_scheduler.service_types import ServiceTypes, describe
from lbaas_scheduler.plugins.fleet.operations import FleetOperations
from lbaas_scheduler.sdk.networks import NetworkConnector

Document = dict[str, Any]
Filters = Mapping[str, Sequence[Any]]
Fields = Sequence[str]


class DeviceSchedulerPlugin(ServicePluginBase):
    """For administrators; service types may be read by everybody, and tenants may have devices of their own.

    :param default_service_type: name of the service type that is created at the first start.
    """

    service = "DeviceScheduler"

    def __init__(
        self,
        database: Database,
        registry: Registry,
        service_types: ServiceTypes,
        agents: AgentDirectory,
        placer: Places,
        caster: Casts,
        networks: NetworkRegistry,
        fleet: FleetOperations,
        default_service_type: str,
        rules: PlacementRules,
        tenants: TenantDevices,
        connector: NetworkConnector | None = None,
    ) -> None:
        self._database = database
        self.registry = registry
        self.service_types = service_types
        self.agents = agents
        self.placer = placer
        self.networks = networks
        self.fleet = fleet
        self.rules = rules
        self._connector = connector
        self._devices = Devices(registry, caster, tenants)
        self._default_service_type = default_service_type

    @classmethod
    def build(cls, parts: Parts) -> Self:
        return cls(
            database=parts.database,
            registry=parts.registry,
            service_types=parts.service_types,
            agents=parts.agents,
            placer=parts.placer,
            caster=parts.caster,
            networks=parts.networks,
            fleet=parts.fleet,
            default_service_type=parts.conf.default_service_type,
            rules=parts.rules,
            tenants=TenantDevices(parts.conf),
            connector=parts.connector,
        )

    def rpc_endpoints(self) -> Sequence[Any]:
        return [DeviceSchedulerEndpoint(self, self.networks, self.fleet)]

    def start(self) -> None:
        self.service_types.ensure_default(self._default_service_type)

    def create_device(self, context: RequestContext, device: Mapping[str, Any]) -> Document:
        """Register a device: see :meth:`Registry.enrol`; as a tenant, an own one: see :meth:`TenantDevices.accept`."""
        return self._devices.create(context, device)

    def get_device(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        """:raises DeviceNotFound: there is no such device, or it is not the tenant's own."""
        return _project(self._devices.get(context, id), fields)

    def get_devices(
        self,
        context: RequestContext,
        filters: Filters | None = None,
        fields: Fields | None = None,
        marker: str | None = None,
        limit: int | None = None,
    ) -> list[Document]:
        """Tenants see their own ones."""
        return [_project(it, fields) for it in self._devices.list(context, filters, marker, limit)]

    def update_device(self, context: RequestContext, id: str, device: Mapping[str, Any]) -> Document:
        """Change a device: see :meth:`Registry.update`. ``generation`` among the changes = change only that state."""
        return self._devices.update(context, id, device)

    def delete_device(self, context: RequestContext, id: str) -> None:
        """Remove a device: see :meth:`Registry.remove`."""
        self._devices.delete(context, id)
        if self._connector is not None:
            self._connector.forget_device(id)

    def create_service_type(self, context: RequestContext, service_type: Mapping[str, Any]) -> Document:
        _only_admins(context)
        return describe(self.service_types.create(service_type))

    def get_service_type(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        return _project(describe(self.service_types.get(id)), fields)

    def get_service_types(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None
    ) -> list[Document]:
        return [_project(describe(it), fields) for it in self.service_types.list(filters)]

    def update_service_type(self, context: RequestContext, id: str, service_type: Mapping[str, Any]) -> Document:
        _only_admins(context)
        return describe(self.service_types.update(id, service_type))

    def delete_service_type(self, context: RequestContext, id: str) -> None:
        _only_admins(context)
        self.service_types.delete(id)

    def create_placement_rule(self, context: RequestContext, placement_rule: Mapping[str, Any]) -> Document:
        """Write a rule: see :meth:`PlacementRules.create`."""
        _only_admins(context)
        return self.rules.create(placement_rule)

    def get_placement_rule(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        _only_admins(context)
        return _project(self.rules.get(id), fields)

    def get_placement_rules(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None
    ) -> list[Document]:
        """In the order in which they are tried."""
        _only_admins(context)
        return [_project(it, fields) for it in self.rules.list(filters)]

    def update_placement_rule(self, context: RequestContext, id: str, placement_rule: Mapping[str, Any]) -> Document:
        _only_admins(context)
        return self.rules.update(id, placement_rule)

    def delete_placement_rule(self, context: RequestContext, id: str) -> None:
        _only_admins(context)
        self.rules.delete(id)

    def get_agent(self, context: RequestContext, id: str, fields: Fields | None = None) -> Document:
        _only_admins(context)
        return _project(self.agents.get(id), fields)

    def get_agents(self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None) -> list[Document]:
        _only_admins(context)
        return [_project(it, fields) for it in self.agents.list(filters)]

    def update_agent(self, context: RequestContext, id: str, agent: Mapping[str, Any]) -> Document:
        _only_admins(context)
        return self.agents.update(id, agent)

    def delete_agent(self, context: RequestContext, id: str) -> None:
        _only_admins(context)
        self.agents.delete(id)

    def get_placement(self, context: RequestContext, resource_id: str) -> Document:
        """Where a resource is and why: device, agent, score, amounts and the trail of the decision.

        :raises NotFound: it is not placed.
        """
        _only_admins(context)
        return placement_of(self._database, resource_id)

    def explain(self, context: RequestContext, resource_id: str) -> Document:
        """Why a resource is where it is, in sentences: see :func:`~.explain.explanation_of`.

        :raises NotFound: it is not placed.
        """
        _only_admins(context)
        return explanation_of(self._database, resource_id)


def _only_admins(context: RequestContext) -> None:
    if not context.is_admin:
        raise NotAuthorized(reason="only administrators see and change devices, agents, service types and placement rules")


def _project(document: Document, fields: Fields | None) -> Document:
    return document if not fields else {name: document[name] for name in fields if name in document}
