"""A real agent process with the fake vendor's devices, and the servers' side of the bus in the test."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest

from lbaas_scheduler.devices.secrets import generate_key
from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.agent_api import AgentAPI
from lbaas_scheduler.rpc.codec import encode_device
from lbaas_scheduler.rpc.transport import get_server, get_transport
from tests.agent_side import HOST, Servers, bus_conf, device
from tests.rig.daemon import Daemon
from tests.rig.waiting import wait_for

CONFIGURATION = """
[DEFAULT]
host = {host}
transport_url = {url}
graceful_shutdown_seconds = 8
debug = true
[agent]
drivers = fake
report_interval_seconds = 1
stats_interval_seconds = 1
apply_timeout_seconds = {timeout}
[security]
encryption_keys = {key}
[fake]
state_path = {devices}
"""
KEY = generate_key()


class Site:
    """Servers, their bus, and agents that can be killed and started again."""

    def __init__(self, url: str, folder: Path, spawn: Callable[..., Daemon]) -> None:
        self.devices = folder / "devices"
        self.servers = Servers()
        self.transport = get_transport(bus_conf(url))
        self.api = AgentAPI(self.transport)
        self._rpc = get_server(self.transport, topics.SERVERS, "server-1", [self.servers])
        self._rpc.start()
        self._url, self._folder, self._spawn = url, folder, spawn

    def start_agent(self, timeout: int = 30) -> Daemon:
        path = self._folder / "agent.conf"
        path.write_text(CONFIGURATION.format(host=HOST, url=self._url, timeout=timeout, devices=self.devices, key=KEY))
        command = [sys.executable, "-m", "lbaas_scheduler.cmd.agent", "--config-file", str(path)]
        agent = self._spawn("agent", command)
        self.wait_agent(agent)
        return agent

    def wait_agent(self, agent: Daemon) -> None:
        """Until it listens on the bus."""
        known = len(self.servers.states)
        wait_for(lambda: agent.must_run() or len(self.servers.states) > known, 30, "the agent's first report")

    def give(self, name: str, **extra: Any) -> Device:
        """A device of the agent's that goes wrong as ``extra`` says."""
        made = device(name, "fake", extra=extra)
        self.servers.assign(made)
        return made

    def create(self, on: Device, deployment: Deployment) -> None:
        self.servers.want(on.id, deployment)
        self.api.create_vip(HOST, encode_device(on, ""), deployment)

    def delete(self, on: Device, vip_id: str, version: Version) -> None:
        self.servers.want_removed(on.id, vip_id, version)
        self.api.delete_vip(HOST, encode_device(on, ""), vip_id, version)

    def deployed(self, device_id: str) -> dict[str, tuple[int, int]]:
        """What is on a device, read from the device."""
        return {vip_id: tuple(vip["version"]) for vip_id, vip in self._stored(device_id)["vips"].items()}

    def calls(self, device_id: str) -> list[tuple[str, list[str]]]:
        return [(name, ids) for name, ids in self._stored(device_id)["calls"]]

    def put(self, device_id: str, vips: dict[str, Version]) -> None:
        """Put VIPs on a device behind the agent's back."""
        self.devices.mkdir(exist_ok=True)
        document = {"pool": {"members": [], "health_monitors": []}}
        stored = {key: {"version": list(version), "document": document, "wiring": {}} for key, version in vips.items()}
        (self.devices / f"{device_id}.json").write_text(json.dumps({"vips": stored, "calls": []}))

    def close(self) -> None:
        # A broker that a test stopped may keep it waiting; the thread ends with the process then.
        closing = threading.Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(10)

    def _close(self) -> None:
        self._rpc.stop()
        self._rpc.wait()
        self.transport.cleanup()

    def _stored(self, device_id: str) -> dict[str, Any]:
        path = self.devices / f"{device_id}.json"
        return json.loads(path.read_bytes()) if path.exists() else {"vips": {}, "calls": []}


@pytest.fixture
def site(rabbitmq_url: str, tmp_path: Path, spawn: Callable[..., Daemon]) -> Iterator[Site]:
    made = Site(rabbitmq_url, tmp_path, spawn)
    yield made
    made.close()


@pytest.fixture
def transport(rabbitmq_url: str) -> Iterator[oslo_messaging.Transport]:
    made = get_transport(bus_conf(rabbitmq_url))
    yield made
    made.cleanup()
