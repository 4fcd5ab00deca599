"""The product as operators run it: servers and agents as processes, a real broker, a real database, real HAProxy."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_messaging.opts import list_opts as messaging_opts

from lbaas_scheduler.conf import loading
from lbaas_scheduler.db import migration, models
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.rpc.allocator_api import AllocatorClient
from lbaas_scheduler.rpc.lbaas_api import DeviceSchedulerClient, LoadBalancerClient
from lbaas_scheduler.rpc.transport import get_transport
from lbaas_scheduler.vendors.haproxy.driver import HaproxyDriver
from tests.agent_side import bus_conf
from tests.rig.daemon import Daemon
from tests.rig.ports import free_port
from tests.rig.waiting import wait_for

ADMIN = RequestContext(project_id="operator", is_admin=True, overwrite=False)
TENANT = RequestContext(project_id="tenant", is_admin=False, overwrite=False)

CONFIGURATION = """
[DEFAULT]
host = {host}
transport_url = {transport_url}
rpc_response_timeout = 20
graceful_shutdown_seconds = 10

[database]
connection = {database_url}

[api]
enabled = false

[quotas]
quota_vip = -1
quota_pool = -1

[LoadBalancer]
device_handlers = haproxy
scheduling_algorithm = least_loaded

[scheduler]
agent_down_seconds = 4
cast_deadline_seconds = 2
reconcile_interval_seconds = 1
max_backoff_seconds = 3
pending_timeout_seconds = 60

[agent]
drivers = haproxy
report_interval_seconds = 1
stats_interval_seconds = 1
state_path = {state}

[haproxy]
state_path = {state}/haproxy

[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 6
kombu_reconnect_delay = 0.5
rabbit_retry_backoff = 1
"""

Spawn = Callable[..., Daemon]


class Cluster:
    """Starts processes of the product by name, and speaks to them over the bus."""

    more = ""
    """Further lines of their configuration."""

    def __init__(self, spawn: Spawn, folder: Path, database_url: str, transport_url: str) -> None:
        self._spawn = spawn
        self._folder = folder
        self._values = {"database_url": database_url.replace("%", "%%"), "transport_url": transport_url}
        conf = bus_conf(transport_url)
        conf.register_opts(dict(messaging_opts())[None])
        conf.set_override("rpc_response_timeout", 20)
        conf.set_override("connection", database_url, group="database")
        self.database = Database.open(conf)
        migration.sync(self.database.engine)
        self._transport = get_transport(conf)
        self.balancers = LoadBalancerClient(self._transport)
        self.devices = DeviceSchedulerClient(self._transport)
        self.allocator = AllocatorClient(self._transport)
        self.agents: dict[str, Path] = {}
        self._daemons: list[Daemon] = []

    def server(
        self, name: str, module: str = "lbaas_scheduler.cmd.server", environment: Mapping[str, str] | None = None
    ) -> Daemon:
        return self._process(name, module, environment)

    def agent(self, name: str, module: str = "lbaas_scheduler.cmd.agent") -> Daemon:
        self.agents[name] = self._folder / name
        return self._process(name, module)

    def _process(self, name: str, module: str, environment: Mapping[str, str] | None = None) -> Daemon:
        config = self._folder / f"{name}.conf"
        config.write_text(CONFIGURATION.format(host=name, state=self._folder / name, **self._values) + self.more)
        daemon = self._spawn(name, [sys.executable, "-m", module, "--config-file", str(config)], environment=environment)
        self._daemons.append(daemon)
        return daemon

    def register_devices(self, count: int, vips: int = -1, **fields: Any) -> list[str]:
        """Devices that live agents drive, all of them ready for VIPs."""
        body = {"service": "LoadBalancer", "device_type": "haproxy", "capacity": {"VIPS": vips}, **fields}
        ids = [self.devices.create_device(ADMIN, {**body, "name": f"haproxy-{n}"})["id"] for n in range(count)]
        wait_for(lambda: len(self.open_devices()) >= count, 30, "all devices to be open for VIPs")
        return ids

    def open_devices(self) -> list[str]:
        load = models.device_load
        return self.database.read(lambda conn: list(conn.scalars(sa.select(load.c.device_id).where(load.c.open == 1))))

    def wait_for_agents(self, *names: str) -> None:
        def alive() -> bool:
            hosts = {agent["host"] for agent in self.devices.get_agents(ADMIN) if agent["alive"]}
            return hosts >= set(names)

        wait_for(alive, 40, f"agents {names} to report", ignore=(Exception,), interval=0.3)

    def count(self, table: sa.Table, *where: Any) -> int:
        statement = sa.select(sa.func.count()).select_from(table).where(*where)
        return self.database.read(lambda conn: conn.scalar(statement)) or 0

    def vip_statuses(self) -> dict[str, str]:
        """Id → status of every VIP that was accepted, whether or not its creator got the answer."""
        columns = sa.select(models.vips.c.id, models.vips.c.status)
        return {row.id: row.status for row in self.database.read(lambda conn: conn.execute(columns).all())}

    def used(self) -> dict[str, int]:
        """Device id → VIPs that it counts."""
        columns = sa.select(models.device_load.c.device_id, models.device_load.c.vips_used)
        return {row.device_id: row.vips_used for row in self.database.read(lambda conn: conn.execute(columns).all())}

    def device_folders(self) -> list[Path]:
        return [folder for state in self.agents.values() for folder in (state / "haproxy").glob("*") if folder.is_dir()]

    def purge(self) -> None:
        """End the data planes that a test left running: they outlive their agents by design."""
        for daemon in self._daemons:  # first: an agent that lives brings back what is ended here
            daemon.kill()
        for name in self.agents:
            driver = HaproxyDriver(self._agent_conf(name))
            for device_id in driver.local_devices():
                driver.purge(device_id)
        self.database.dispose()
        self._transport.cleanup()
        gc.collect()  # so that what kombu left open is not found, and complained of, in some later test

    def _agent_conf(self, name: str) -> cfg.ConfigOpts:
        conf = cfg.ConfigOpts()
        HaproxyDriver.register_opts(conf)
        loading.read(conf, ["--config-file", str(self._folder / f"{name}.conf")], "tests")
        return conf


class Site:
    """A tenant's network and pools on it, in few words."""

    def __init__(self, cluster: Cluster, cidr: str = "127.90.0.0/20") -> None:
        self.cluster = cluster
        network = cluster.devices.create_network(ADMIN, {"name": "front", "shared": True})
        subnet = {"network_id": network["id"], "cidr": cidr, "gateway_ip": None}
        self.subnet_id = cluster.devices.create_subnet(ADMIN, subnet)["id"]

    def pool(self, members: Mapping[str, int], **fields: Any) -> str:
        """A pool of HTTP members: address → port."""
        balancers = self.cluster.balancers
        body = {"protocol": "HTTP", "lb_method": "ROUND_ROBIN", "subnet_id": self.subnet_id, **fields}
        pool_id = balancers.create_pool(TENANT, body)["id"]
        for address, port in members.items():
            balancers.create_member(TENANT, {"pool_id": pool_id, "address": address, "protocol_port": port})
        return str(pool_id)

    def monitor(self, pool_id: str) -> str:
        body = {"type": "HTTP", "delay": 1, "timeout": 1, "max_retries": 2}
        monitor_id = self.cluster.balancers.create_health_monitor(TENANT, body)["id"]
        self.cluster.balancers.create_pool_health_monitor(TENANT, monitor_id, pool_id)
        return str(monitor_id)

    def vip(self, pool_id: str, **fields: Any) -> dict[str, Any]:
        body = {"subnet_id": self.subnet_id, "protocol": "HTTP", "protocol_port": free_port(), "pool_id": pool_id, **fields}
        return self.cluster.balancers.create_vip(TENANT, body)

    def wait_active(self, vip_id: str, timeout: float = 60) -> dict[str, Any]:
        def active() -> dict[str, Any] | None:
            vip = self.cluster.balancers.get_vip(TENANT, vip_id)
            return vip if vip["status"] == "ACTIVE" else None

        return wait_for(active, timeout, f"VIP {vip_id} to be ACTIVE", interval=0.1)


@contextmanager
def cluster(spawn: Spawn, folder: Path, database_url: str, transport_url: str) -> Iterator[Cluster]:
    made = Cluster(spawn, folder, database_url, transport_url)
    try:
        yield made
    finally:
        made.purge()
