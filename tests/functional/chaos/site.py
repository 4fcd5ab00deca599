"""What is under test: two servers, an API under gunicorn, three agents; each with links of its own to broker, database and etcd.

The devices are the fake vendor's, on a small disk of their own that all agents reach, as they would reach an appliance.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lbaas_scheduler.db import migration
from lbaas_scheduler.db.session import Database
from tests.database import open_database
from tests.functional.chaos.client import Http
from tests.functional.chaos.links import Link, Mode
from tests.rig.daemon import Daemon, Server
from tests.rig.etcd import Etcd
from tests.rig.ports import free_port
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.waiting import wait_for

ROOT = Path(__file__).parents[3]

SERVERS, API, AGENTS = ("server-1", "server-2"), "api", ("agent-1", "agent-2", "agent-3")
DEVICES, VIPS_PER_DEVICE = 5, 12

BROKER, DATABASE, ETCD = "broker", "database", "etcd"

RACK_BYTES = 4 * 2**20

CONFIGURATION = """
[DEFAULT]
host = {name}
transport_url = {broker}
rpc_response_timeout = 10
graceful_shutdown_seconds = 10
debug = false

[database]
connection = {database}

[api]
bind_port = {port}
auth_strategy = noauth

[quotas]
quota_vip = 12
quota_pool = 30
quota_member = 60

[LoadBalancer]
device_handlers = fake
scheduling_algorithm = least_loaded

[allocator]
{allocator}
hold_ttl_seconds = 15
reconcile_interval_seconds = 5
owner_grace_delay_seconds = 5

[scheduler]
agent_down_seconds = 6
cast_deadline_seconds = 3
reconcile_interval_seconds = 1
max_backoff_seconds = 4
pending_timeout_seconds = 30
move_timeout_seconds = 30
check_interval_seconds = 3

[agent]
drivers = fake
report_interval_seconds = 1
stats_interval_seconds = 2
resync_interval_seconds = 0
state_path = {folder}/{name}

[fake]
state_path = {rack}

[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 6
kombu_reconnect_delay = 0.5
rabbit_retry_backoff = 1
"""


@dataclass
class Stores:
    """The services of one run, all of its own."""

    broker: RabbitMQ
    database: Server
    database_url: str
    etcd: Etcd | None = None

    def services(self) -> dict[str, Server]:
        found: dict[str, Server] = {BROKER: self.broker, DATABASE: self.database}
        return found | ({ETCD: self.etcd} if self.etcd else {})


@dataclass
class Process:
    """One process of the product.

    :ivar links: service → the process's way to it.
    :ivar clock: the file that says by how many seconds its clock is wrong.
    :ivar wanted: whether it should run now.
    """

    name: str
    links: dict[str, Link]
    daemon: Daemon
    clock: Path
    wanted: bool = True
    ends: list[str] = field(default_factory=list)
    """How it ended in an orderly way, where that was wrong."""

    def pause(self) -> None:
        self.daemon.signal_group(signal.SIGSTOP)

    def go_on(self) -> None:
        self.daemon.signal_group(signal.SIGCONT)


class Site:
    """Starts everything.

    :param folder: short, and for the whole run.
    """

    def __init__(self, spawn: Callable[..., Daemon], folder: Path, stores: Stores) -> None:
        self._spawn = spawn
        self.folder = folder
        self.stores = stores
        self.rack = folder / "rack"
        self.bounded_disk = _mount(self.rack)
        self.database: Database = open_database(stores.database_url)
        migration.sync(self.database.engine)
        self.bus_url = stores.broker.create_vhost()
        self.namespace = stores.etcd.new_namespace() if stores.etcd else ""
        self.processes: dict[str, Process] = {}
        ports = {name: free_port() for name in (*SERVERS, API)}
        self.http = Http(list(ports.values()))
        for name in (*SERVERS, API, *AGENTS):
            self.processes[name] = self._start(name, ports.get(name, 0))

    def links(self) -> dict[str, Link]:
        """As they are named in a schedule: ``process to service``."""
        return {link.name: link for process in self.processes.values() for link in process.links.values()}

    def furnish(self, networks: int) -> list[str]:
        """Devices that agents drive, and networks of one subnet each. Returns the subnets' ids.

        Each network takes a VLAN on each device that has a VIP in it: a second thing that is given and given back.
        """
        body = {"service": "LoadBalancer", "device_type": "fake", "capacity": {"VIPS": VIPS_PER_DEVICE}}
        body["interfaces"] = [{"name": "eth1", "kind": "vlan", "max_vlans": networks}]
        wait_for(lambda: self.http.admin("GET", "/v2.0/agents").ok, 90, "the API to answer", interval=0.3)
        wait_for(lambda: self.alive_agents() >= set(AGENTS), 90, "the agents to report", interval=0.3)
        for number in range(DEVICES):
            self._create("devices", "device", {**body, "name": f"fake-{number}"})
        return [self._subnet(number) for number in range(networks)]

    def _subnet(self, number: int) -> str:
        network = self._create("networks", "network", {"name": f"front-{number}", "shared": True})
        body = {"network_id": network["id"], "cidr": f"10.20.{number}.0/24", "gateway_ip": f"10.20.{number}.1"}
        return str(self._create("subnets", "subnet", body)["id"])

    def alive_agents(self) -> set[str]:
        answer = self.http.admin("GET", "/v2.0/agents")
        return {agent["host"] for agent in answer.body["agents"] if agent["alive"]} if answer.ok else set()

    def close(self) -> None:
        for process in self.processes.values():
            process.go_on()
            process.daemon.kill()
        for link in self.links().values():
            link.close()
        self.database.dispose()
        if self.bounded_disk:
            subprocess.run(["umount", "-l", str(self.rack)], check=False)

    def _create(self, collection: str, noun: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.http.admin("POST", f"/v2.0/{collection}", {noun: body})
        assert answer.status == 201, answer
        return dict(answer.body[noun])

    def _start(self, name: str, port: int) -> Process:
        is_agent = name in AGENTS
        links = {service: self._link(name, service) for service in self.stores.services() if service == BROKER or not is_agent}
        config = self.folder / f"{name}.conf"
        config.write_text(CONFIGURATION.format(name=name, port=port, folder=self.folder, rack=self.rack, **self._urls(links)))
        clock = self.folder / f"{name}.clock"
        clock.write_text("0\n")
        command = [sys.executable, "-m", "tests.functional.chaos.skewed", str(clock), *_command(name, port, config)]
        environment = {**os.environ, "LBAAS_SCHEDULER_CONFIG_FILES": str(config), "PYTHONPATH": str(ROOT)}
        daemon = self._spawn(name, command, environment=environment)
        return Process(name, links, daemon, clock)

    def _link(self, name: str, service: str) -> Link:
        server: Any = self.stores.services()[service]
        return Link(f"{name} to {service}", server.ports[0])

    def _urls(self, links: dict[str, Link]) -> dict[str, str]:
        """What the configuration says of the services, with the links in place of the services' ports."""
        stores = self.stores

        def through(url: str, service: str, server: Any) -> str:
            port = links[service].port if service in links else 1
            return url.replace(f":{server.ports[0]}", f":{port}").replace("%", "%%")

        allocator = "driver = sql"
        if stores.etcd:
            endpoint = through(stores.etcd.url, ETCD, stores.etcd)
            allocator = f"driver = etcd\netcd_endpoints = {endpoint}\netcd_namespace = {self.namespace}"
        return {
            "broker": through(self.bus_url, BROKER, stores.broker),
            "database": through(stores.database_url, DATABASE, stores.database),
            "allocator": allocator,
        }


def _command(name: str, port: int, config: Path) -> list[str]:
    """A module and its arguments."""
    if name == API:
        words = ["--workers", "2", "--threads", "6", "--bind", f"127.0.0.1:{port}", "--timeout", "60", "--graceful-timeout", "10"]
        return ["gunicorn", "--no-control-socket", *words, "lbaas_scheduler.wsgi:application"]
    module = "agent" if name in AGENTS else "server"
    return [f"lbaas_scheduler.cmd.{module}", "--config-file", str(config)]


def _mount(folder: Path) -> bool:
    """A disk of its own that a test may fill; False where we may not mount any."""
    folder.mkdir()
    if os.geteuid() != 0:
        return False
    words = ["mount", "-t", "tmpfs", "-o", f"size={RACK_BYTES},mode=755", "rack", str(folder)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@contextmanager
def running(spawn: Callable[..., Daemon], folder: Path, stores: Stores) -> Iterator[Site]:
    site = Site(spawn, folder, stores)
    try:
        yield site
    finally:
        site.close()


__all__ = ["AGENTS", "API", "BROKER", "DATABASE", "ETCD", "SERVERS", "Mode", "Process", "Site", "Stores", "running"]
