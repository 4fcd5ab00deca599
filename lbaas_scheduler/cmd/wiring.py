"""A server, put together: what ``lbaas-scheduler-server`` runs, and the demo beside its agent."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.rpc.server import RPCServer

from lbaas_scheduler import extensions
from lbaas_scheduler.allocator import api as allocator_api
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.api import app as rest_api
from lbaas_scheduler.api.app import Wsgi
from lbaas_scheduler.api.health import Health
from lbaas_scheduler.api.metrics import MeteredAgents, MeteredPlacer, Meters
from lbaas_scheduler.api.operations import Ping, Services
from lbaas_scheduler.api.server import RestServer
from lbaas_scheduler.db import migration
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.assignments import Assignments
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.domain.clock import DATABASE_CLOCK
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.networks.local import LocalConnector
from lbaas_scheduler.networks.registry import NetworkRegistry
from lbaas_scheduler.networks.upkeep import OwnerProbe, Upkeep
from lbaas_scheduler.plugins.agents import AgentDirectory
from lbaas_scheduler.plugins.base import Parts, ServicePluginBase
from lbaas_scheduler.plugins.callbacks import AgentCallbacks
from lbaas_scheduler.plugins.casts import Caster
from lbaas_scheduler.plugins.device_scheduler.build import build_gates, build_placer, handlers_of
from lbaas_scheduler.plugins.device_scheduler.placement_rules import PlacementRules
from lbaas_scheduler.plugins.device_scheduler.plugin import DeviceSchedulerPlugin
from lbaas_scheduler.plugins.device_scheduler.service_types import ServiceTypes
from lbaas_scheduler.plugins.fleet.build import build_fleet
from lbaas_scheduler.plugins.fleet.starting import Requests
from lbaas_scheduler.plugins.foreign_agents import ForeignAgents
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.plugins.loadbalancer.finishing import Finishing
from lbaas_scheduler.plugins.loadbalancer.plugin import LoadBalancerPlugin
from lbaas_scheduler.plugins.loadbalancer.reports import Reports
from lbaas_scheduler.plugins.outbox import Outbox
from lbaas_scheduler.plugins.quotas import Quotas
from lbaas_scheduler.plugins.reconciler import Reconciler
from lbaas_scheduler.plugins.resource_endpoint import AllocatorEndpoint
from lbaas_scheduler.plugins.resources import Resources
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.agent_api import AgentAPI
from lbaas_scheduler.rpc.pinger import Pinger
from lbaas_scheduler.rpc.transport import get_server, listen
from lbaas_scheduler.scheduler.gate import HandlerGate
from lbaas_scheduler.sdk.bounded import run_within
from lbaas_scheduler.sdk.networks import NetworkConnector

LOG = logging.getLogger(__name__)

Plugin = TypeVar("Plugin", bound=ServicePluginBase)

MakesOutbox = Callable[[Caster, MeteredAgents, Callable[[str, int], None]], Outbox]


class Worker(Protocol):
    """What a server does from time to time, in a thread of its own."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Server:
    """Service plugins and the endpoint for agents on the bus, the reconciler and the REST API. ``start`` and ``stop`` once each.

    ``rest``: None if it is served elsewhere. ``more_endpoints``: beside those of the plugins.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: oslo_messaging.Transport,
        database: Database,
        plugins: Sequence[ServicePluginBase],
        callbacks: AgentCallbacks,
        foreign: ForeignAgents,
        workers: Sequence[Worker],
        rest: RestServer | None = None,
        more_endpoints: Sequence[object] = (),
    ) -> None:
        self.rest = rest
        self._plugins = plugins
        self._database = database
        self._workers = workers
        self._graceful_seconds: float = conf.graceful_shutdown_seconds
        endpoints = [*(endpoint for plugin in plugins for endpoint in plugin.rpc_endpoints()), *more_endpoints]
        self._buses = [
            partial(get_server, transport, topics.PLUGINS, conf.host, endpoints),
            partial(get_server, transport, topics.SERVERS, conf.host, [callbacks], foreign.note),
        ]
        self._listening: list[RPCServer] = []

    def start(self) -> None:
        for plugin in self._plugins:
            plugin.start()
        if self.rest is not None:
            self.rest.start()
        for bus in self._buses:
            # Blocks for as long as the broker is away; the others must not wait for it.
            threading.Thread(target=self._listen, args=(bus,), name="bus-start", daemon=True).start()
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        """Take nothing more, and finish what is under way, as far as ``graceful_shutdown_seconds`` allow."""
        deadline = time.monotonic() + self._graceful_seconds
        if self.rest is not None:
            run_within(deadline, "rest-stop", self.rest.stop)
        for worker in self._workers:
            run_within(deadline, "worker-stop", worker.stop)
        # One that still waits for its broker has nothing to finish, and would not stop before it is there.
        for bus in self._listening:
            run_within(deadline, "bus-stop", partial(_close, bus))
        for plugin in self._plugins:
            plugin.stop()
        self._database.dispose()

    def _listen(self, bus: Callable[[], RPCServer]) -> None:
        self._listening.append(listen(bus))


def _close(bus: RPCServer) -> None:
    bus.stop()
    bus.wait()


@dataclass(frozen=True, slots=True)
class Plant:
    """What all processes that serve requests are made of, nothing of it started."""

    parts: Parts
    plugins: Sequence[ServicePluginBase]
    assignments: Assignments
    meters: Meters
    resources: Resources
    outbox: Outbox


def build(conf: cfg.ConfigOpts, transport: oslo_messaging.Transport) -> Server:
    """The server that ``conf`` describes, not started.

    :raises ConfigurationError: says what is wrong: an option, a plugin, or a database that was not migrated.
    """
    plant = assemble(conf, AgentAPI(transport))
    parts = plant.parts
    reports = Reports(parts.connector)
    cast = parts.caster.cast
    callbacks = AgentCallbacks(parts.database, parts.agents, reports, documents.load, parts.connector.wirings, cast=cast)
    fleet = parts.fleet
    finishing = Finishing(parts.database, parts.connector, parts.caster)
    reconciler = Reconciler(
        parts.database,
        parts.caster,
        plant.assignments,
        reports,
        conf,
        breaker=fleet.breaker,
        more=(*fleet.mover.steps(), *_upkeep(parts), finishing.finish_what_nobody_answers_for),
    )
    rest = RestServer(conf, rest_application(plant, Pinger(transport).ping)) if conf.api.enabled else None
    endpoints = [AllocatorEndpoint(plant.resources)]
    # The outbox last: what the others begin before they end is still sent.
    workers: list[Worker] = [reconciler, fleet.monitor, plant.outbox]
    foreign = ForeignAgents(parts.agents.report)
    return Server(conf, transport, parts.database, plant.plugins, callbacks, foreign, workers, rest, endpoints)


def rest_application(plant: Plant, ping: Ping) -> Wsgi:
    """The REST API on top of the plugins, for whatever WSGI server.

    :raises ConfigurationError: a service plugin that it serves is not loaded, or what checks tokens cannot be set up.
    """
    parts = plant.parts
    clock_trouble = lambda: DATABASE_CLOCK.trouble(parts.conf.scheduler.max_clock_difference_seconds)  # noqa: E731
    return rest_api.build(
        Services(
            conf=parts.conf,
            database=parts.database,
            balancers=_loaded(plant.plugins, LoadBalancerPlugin),
            devices=_loaded(plant.plugins, DeviceSchedulerPlugin),
            networks=parts.networks,
            quotas=parts.quotas,
            allocator=parts.allocator,
            resources=plant.resources,
            meters=plant.meters,
            health=Health(parts.database, ping, plant.assignments.heard_since, clock_trouble),
            heard_since=plant.assignments.heard_since,
        )
    )


def assemble(conf: cfg.ConfigOpts, control: AgentAPI, make_outbox: MakesOutbox = Outbox) -> Plant:
    """:param control: how agents are reached.
    :param make_outbox: what sends to them without waiting for it.

    :raises ConfigurationError: as :func:`build`.
    """
    database = Database.open(conf)
    migration.require_current(database, extensions.migration_folders())
    kinds = extensions.load_resources(conf)
    allocator = allocator_api.build(conf, extensions.load_state_driver(conf), kinds, database)
    gates = build_gates(conf)
    meters = Meters()
    metered = MeteredAgents(control, meters)
    connector = _connector(conf, database, allocator)
    caster = Caster(database, metered, documents.load, connector.wirings)
    outbox = make_outbox(caster, metered, meters.count_dropped)
    assignments = Assignments(database, conf.scheduler.agent_down_seconds)
    directory = AgentDirectory(database, assignments, outbox, outbox, conf.scheduler.agent_down_seconds)
    classes = _plugin_classes(conf)
    quotas = Quotas(database, conf)
    placer = MeteredPlacer(build_placer(conf, database, gates, connector), meters)
    services = {cls.service: name for name, cls in classes.items()}
    registry = _registry(conf, database, gates, assignments, quotas)
    requests: dict[str, Requests] = {}
    reports = Reports(connector)
    parts = Parts(
        conf=conf,
        database=database,
        services=extensions.load_services(),
        placer=placer,
        registry=registry,
        service_types=ServiceTypes(database, _device_types(gates), services, placer.algorithms()),
        rules=PlacementRules(database, services, placer.algorithms()),
        agents=directory,
        caster=outbox,
        networks=NetworkRegistry(database, allocator, conf.allocator.address_pick),
        connector=connector,
        quotas=quotas,
        allocator=allocator,
        fleet=build_fleet(conf, database, placer, outbox, registry, assignments, handlers_of(gates), requests, reports),
    )
    requests |= {cls.service: asked for cls in classes.values() if (asked := cls.requests(parts)) is not None}
    plugins = [DeviceSchedulerPlugin.build(parts), *(cls.build(parts) for cls in classes.values())]
    resources = Resources(allocator_api.AllocatorAPI(allocator), conf, OwnerProbe(database))
    return Plant(parts, plugins, assignments, meters, resources, outbox)


def _connector(conf: cfg.ConfigOpts, database: Database, allocator: ResourceAllocator) -> NetworkConnector:
    options = conf.allocator
    kind = extensions.load_network_connector(conf, NetworkConnector)
    return kind(database, allocator, options.hold_ttl_seconds, options.address_pick)  # type: ignore[call-arg]


def _upkeep(parts: Parts) -> Sequence[Callable[[], None]]:
    """What the allocator is asked to do from time to time, if its values are given by this package's own connector."""
    connector = parts.connector
    if not isinstance(connector, LocalConnector):
        return ()
    return Upkeep(parts.allocator, connector.segments, parts.database, parts.conf).steps()


def _loaded(plugins: Sequence[ServicePluginBase], kind: type[Plugin]) -> Plugin:
    found = next((plugin for plugin in plugins if isinstance(plugin, kind)), None)
    if found is None:
        raise ConfigurationError(
            reason=f"the REST API serves {kind.service}, which [DEFAULT] service_plugins does not list; "
            "add it, or set [api] enabled to false"
        )
    return found


def _plugin_classes(conf: cfg.ConfigOpts) -> Mapping[str, type[ServicePluginBase]]:
    """What ``[DEFAULT] service_plugins`` lists, by the names there."""
    return {name: extensions.load_service_plugin(name, ServicePluginBase) for name in conf.service_plugins}


def _registry(
    conf: cfg.ConfigOpts, database: Database, gates: Mapping[str, HandlerGate], assignments: Assignments, quotas: Quotas
) -> Registry:
    vault = Vault(conf.security.encryption_keys)
    timeout = conf.scheduler.handler_timeout_seconds
    return Registry(database, handlers_of(gates), vault, assignments, timeout, quotas.reserve)


def _device_types(gates: Mapping[str, HandlerGate]) -> Mapping[str, list[str]]:
    return {service: sorted(gate.handlers) for service, gate in gates.items()}
