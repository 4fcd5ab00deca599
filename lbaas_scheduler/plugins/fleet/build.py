"""Puts the fleet's operations together."""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.assignments import Assignments
from lbaas_scheduler.devices.breaker import CircuitBreaker
from lbaas_scheduler.devices.monitor import Monitor
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.plugins.callbacks import Reports
from lbaas_scheduler.plugins.casts import Casts
from lbaas_scheduler.plugins.fleet.balancing import Balancing
from lbaas_scheduler.plugins.fleet.mover import Mover
from lbaas_scheduler.plugins.fleet.operations import FleetOperations
from lbaas_scheduler.plugins.fleet.starting import PlacesResources, Requests, Starter
from lbaas_scheduler.plugins.fleet.writing_off import WritingOff
from lbaas_scheduler.sdk.handlers import DeviceHandler


def build_fleet(
    conf: cfg.ConfigOpts,
    database: Database,
    placer: PlacesResources,
    caster: Casts,
    registry: Registry,
    assignments: Assignments,
    handlers: Mapping[tuple[str, str], DeviceHandler],
    requests: Mapping[str, Requests],
    reports: Reports,
) -> FleetOperations:
    """:param handlers: (service, device type) → handler.
    :param reports: what becomes of the word that something is gone from a device.
    :param requests: service → its :data:`Requests`; may be filled later, as services are loaded.
    """
    breaker = CircuitBreaker(database, conf)
    starter = Starter(database, placer, requests, assignments.heard_since, conf)
    mover = Mover(database, starter, caster, registry, breaker, assignments.heard_since, conf)

    def tell(device_id: str) -> None:
        caster.tell_of(device_id, registry.agent_host(device_id))

    vault = Vault(conf.security.encryption_keys)
    monitor = Monitor(database, handlers, vault, assignments.heard_since, tell, conf)
    writing_off = WritingOff(database, registry, reports, assignments.heard_since)
    return FleetOperations(database, mover, Balancing(database, requests), monitor, breaker, registry, writing_off)
