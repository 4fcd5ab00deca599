"""A server's LoadBalancer service on a real database, with a fleet made of rows and an agent made of reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from oslo_context.context import RequestContext

from lbaas_scheduler.allocator.drivers.sql import SqlDriver
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import deployments, placements
from lbaas_scheduler.db.allocator_models import allocator_allocations
from lbaas_scheduler.db.candidates import SqlCandidates
from lbaas_scheduler.db.models import device_load
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.deployments import Result, Version, VipStats
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.networks.local import VIP, LocalConnector
from lbaas_scheduler.networks.registry import NetworkRegistry
from lbaas_scheduler.plugins.device_scheduler.placement_rules import PlacementRules
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from lbaas_scheduler.plugins.device_scheduler.service_types import ServiceTypes
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.plugins.loadbalancer.plugin import LoadBalancerPlugin
from lbaas_scheduler.plugins.loadbalancer.reports import Reports
from lbaas_scheduler.scheduler.algorithms.least_loaded import LeastLoaded
from lbaas_scheduler.scheduler.algorithms.most_loaded import MostLoaded
from lbaas_scheduler.scheduler.framework import Scheduler
from lbaas_scheduler.scheduler.gate import HandlerGate
from lbaas_scheduler.scheduler.services import LoadBalancerService
from tests.allocator_side import KINDS
from tests.factories import add_agent, add_devices, new_device
from tests.fakes import ScriptedHandler

TENANT = "tenant"
DEVICE = "device"

Body = dict[str, Any]

addresses = sa.select(allocator_allocations).where(allocator_allocations.c.owner_type == VIP).subquery("addresses")
"""What VIPs have; what subnets have for themselves, their gateways, is left out."""


def tenant(project_id: str = TENANT) -> RequestContext:
    return RequestContext(project_id=project_id, is_admin=False)


def admin() -> RequestContext:
    return RequestContext(project_id="operator", is_admin=True)


class RecordingCaster:
    def __init__(self) -> None:
        self.casts: list[list[str]] = []

    def cast(self, vip_ids: Collection[str]) -> None:
        if vip_ids:
            self.casts.append(sorted(vip_ids))


class Lab:
    """``plugin`` is what is tested; the rest is around it."""

    def __init__(self, database: Database, allocator: ResourceAllocator | None = None) -> None:
        self.database = database
        self.caster = RecordingCaster()
        self.allocator = allocator or ResourceAllocator(SqlDriver(database), KINDS)
        self.connector = LocalConnector(database, self.allocator)
        self.networks = NetworkRegistry(database, self.allocator)
        self.reports = Reports(self.connector)
        services, algorithms = {"LoadBalancer": "LoadBalancer"}, {"LoadBalancer": ["least_loaded", "most_loaded"]}
        self.service_types = ServiceTypes(database, {"LoadBalancer": ["fake"]}, services, algorithms)
        self.rules = PlacementRules(database, services, algorithms)
        self.placer = self.new_placer()
        self.plugin = self.new_plugin()
        self.me = tenant()

    def new_placer(self) -> Placer:
        gate = HandlerGate({"fake": ScriptedHandler()}, 5.0)
        scheduler = Scheduler(
            gate, {"least_loaded": LeastLoaded(), "most_loaded": MostLoaded()}, "least_loaded", page_size=8, max_rounds=4
        )
        return Placer(self.database, SqlCandidates(self.database, 600), {"LoadBalancer": scheduler}, self.connector)

    def new_plugin(self) -> LoadBalancerPlugin:
        return LoadBalancerPlugin(
            database=self.database,
            placer=self.placer,
            caster=self.caster,
            connector=self.connector,
            service=LoadBalancerService(),
            service_types=self.service_types,
            cast_deadline_seconds=10,
            rules=self.rules,
        )

    def furnish(self) -> None:
        """An agent, a device, the default service type, a network and a subnet."""
        add_agent(self.database)
        self.add_device(DEVICE)
        self.default_service_type_id = self.add_service_type("default", default=True)
        self.network = self.networks.create_network(self.me, {"name": "net"})
        self.subnet = self.networks.create_subnet(self.me, {"network_id": self.network["id"], "cidr": "10.0.0.0/24"})

    def add_device(self, name: str, *, vips: int = 1000, without: Collection[str] = (), **fields: Any) -> None:
        add_devices(self.database, new_device(name, vips=vips, traits=traits.STANDARD - set(without), **fields))

    def add_service_type(self, name: str, **attributes: Any) -> str:
        return self.service_types.create({"name": name, **attributes}).id

    def only(self, device_id: str) -> None:
        """No other device takes anything new."""
        closed = sa.update(device_load).where(device_load.c.device_id != device_id).values(schedulable=0, open=0)
        self.database.write(lambda conn: conn.execute(closed))

    def fill(self) -> None:
        """No device takes anything new: all are full."""
        full = sa.update(device_load).values(vips_used=device_load.c.vips_max, open=0)
        self.database.write(lambda conn: conn.execute(full))

    # --- what tenants do ---

    def pool(self, **attributes: Any) -> Body:
        body = {"subnet_id": self.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN", **attributes}
        return self.plugin.create_pool(self.me, body)

    def vip(self, pool: Body | None = None, **attributes: Any) -> Body:
        pool = pool or self.pool(protocol=attributes.get("protocol", "HTTP"))
        body = {"subnet_id": self.subnet["id"], "protocol": pool["protocol"], "protocol_port": 80, "pool_id": pool["id"]}
        return self.plugin.create_vip(self.me, {**body, **attributes})

    def member(self, pool: Body, address: str = "10.1.0.1", **attributes: Any) -> Body:
        body = {"pool_id": pool["id"], "address": address, "protocol_port": 8080, **attributes}
        return self.plugin.create_member(self.me, body)

    def monitor(self, pool: Body | None = None, **attributes: Any) -> Body:
        body = {"type": "HTTP", "delay": 5, "timeout": 2, "max_retries": 3, **attributes}
        monitor = self.plugin.create_health_monitor(self.me, body)
        if pool is not None:
            self.plugin.create_pool_health_monitor(self.me, monitor["id"], pool["id"])
        return monitor

    def active_vip(self, pool: Body | None = None, **attributes: Any) -> Body:
        vip = self.vip(pool, **attributes)
        self.confirm(vip["id"])
        return self.plugin.get_vip(self.me, vip["id"])

    # --- what the agent does ---

    def version(self, vip_id: str) -> Version:
        row = self.deployment(vip_id)
        assert row is not None
        return row.version

    def deployment(self, vip_id: str) -> deployments.DeploymentRow | None:
        rows = self.database.read(lambda conn: deployments.for_resources(conn, [vip_id]))
        return rows[0] if rows else None

    def confirm(self, vip_id: str, version: Version | None = None, **outcome: Any) -> list[str]:
        """The agent reports success for what is desired now, or for ``version``."""
        return self.report(Result(vip_id, version or self.version(vip_id), **outcome))

    def report(self, *results: Result, device_id: str = DEVICE) -> list[str]:
        gone = self.database.write(lambda conn: self.reports.apply_reports(conn, [(device_id, it) for it in results])).gone
        self.reports.dispose(gone)
        return list(gone)

    def report_stats(self, stats: Mapping[str, VipStats]) -> None:
        self.database.write(lambda conn: self.reports.apply_stats(conn, stats))

    # --- what is in the database ---

    def document(self, vip_id: str) -> Vip:
        return self.database.read(lambda conn: documents.load(conn, [vip_id]))[vip_id]

    def placement(self, vip_id: str) -> placements.Placement | None:
        return self.database.read(lambda conn: placements.get(conn, vip_id))

    def used(self, resource_class: str = "vips", device_id: str = DEVICE) -> int:
        column = device_load.c[f"{resource_class}_used"]
        query = sa.select(column).where(device_load.c.device_id == device_id)
        return int(self.database.read(lambda conn: conn.execute(query).scalar_one()))

    def count(self, table: sa.FromClause) -> int:
        return int(self.database.read(lambda conn: conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()))
