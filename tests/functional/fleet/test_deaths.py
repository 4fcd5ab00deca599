"""Servers and agents are killed at each step of a move, as processes, with SIGKILL.

Each time, with nobody's hand but another process in their place: the VIP is on a device at every moment, on one alone at the
end, and the claims are what the placements say.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest

from lbaas_scheduler.db import counters, models
from lbaas_scheduler.errors import LBaaSError
from tests.functional.system.cluster import ADMIN, Cluster, Site, Spawn
from tests.rig.daemon import Daemon
from tests.rig.waiting import wait_for

SOAK = os.environ.get("LBAAS_TEST_SOAK") == "1"

# kombu leaves the sockets of connections that were cut to the garbage collector.
pytestmark = [pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"), pytest.mark.timeout(300)]

CONFIGURATION = """
[DEFAULT]
host = {host}
transport_url = {transport_url}
rpc_response_timeout = 10
graceful_shutdown_seconds = 5

[api]
enabled = false

[database]
connection = {database_url}

[LoadBalancer]
device_handlers = fake

[scheduler]
agent_down_seconds = 60
cast_deadline_seconds = 2
reconcile_interval_seconds = 1
max_backoff_seconds = 2
move_timeout_seconds = 60

[agent]
drivers = fake
report_interval_seconds = 1
state_path = {state}

[fake]
state_path = {devices}

[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 6
kombu_reconnect_delay = 0.5
rabbit_retry_backoff = 1
"""

STARTER = "lbaas_scheduler.plugins.fleet.starting:Starter"
DRIVER = "lbaas_scheduler.vendors.fake.driver:FakeDriver"

SERVER_STEPS = {
    "a server, with the claim made and not committed": (f"{STARTER}._write", "after"),
    "a server, with the claim committed and nothing cast": (f"{STARTER}._place", "after"),
    "a server, with the target's report written and not committed": ("lbaas_scheduler.db.moves:arrive", "after"),
    "a server, with the switch committed and the agent not answered": (
        "lbaas_scheduler.plugins.callbacks:AgentCallbacks._apply",
        "after",
    ),
    "a server, with the removal taken and not cast": ("lbaas_scheduler.plugins.reconciler:Reconciler._claim", "after"),
    "a server, with the source's claim given back and not committed": ("lbaas_scheduler.db.moves:leave", "after"),
}
AGENT_STEPS = {
    "the target's agent, before it applies": ("b", f"{DRIVER}.apply", "before"),
    "the target's agent, with the VIP applied and not reported": ("b", f"{DRIVER}.apply", "after"),
    "the source's agent, before it removes": ("a", f"{DRIVER}.remove", "before"),
    "the source's agent, with the VIP removed and not reported": ("a", f"{DRIVER}.remove", "after"),
}
SHORT = {
    "a server, with the claim committed and nothing cast",
    "a server, with the switch committed and the agent not answered",
    "the target's agent, with the VIP applied and not reported",
}

_DATABASES = ["postgresql", "mariadb"] if SOAK else ["postgresql"]
on_databases = pytest.mark.parametrize("database_url", _DATABASES, indirect=True)


def steps(of: dict[str, Any]) -> Any:
    chosen = [pytest.param(*value, id=name) for name, value in of.items() if SOAK or name in SHORT]
    return pytest.mark.parametrize(("step", "moment") if of is SERVER_STEPS else ("name", "step", "moment"), chosen)


class FakeCluster(Cluster):
    """Agents whose devices are files that outlive them: what a device serves can be read at any moment."""

    def __init__(self, spawn: Spawn, folder: Path, database_url: str, transport_url: str) -> None:
        super().__init__(spawn, folder, database_url, transport_url)
        self.devices_folder = folder / "devices"
        self.devices_folder.mkdir()
        self.mortal: dict[str, tuple[str, str, str]] = {}

    def _process(self, name: str, module: str, environment: Mapping[str, str] | None = None) -> Daemon:
        config = self._folder / f"{name}.conf"
        state = self._folder / name
        config.write_text(CONFIGURATION.format(host=name, state=state, devices=self.devices_folder, **self._values))
        words = [*self.mortal[name]] if name in self.mortal else []
        command = [sys.executable, "-m", "tests.functional.fleet.mortal" if words else module, *words]
        return self._spawn(name, [*command, "--config-file", str(config)], environment=environment)

    def purge(self) -> None:
        self.agents = {}
        super().purge()

    def holders(self, vip_id: str) -> list[str]:
        """Ids of the devices that serve the VIP now."""
        files = self.devices_folder.glob("*.json")
        return sorted(path.stem for path in files if vip_id in json.loads(path.read_bytes())["vips"])


class Watch:
    """Looks all the time whether the VIP is on a device."""

    def __init__(self, cluster: FakeCluster, vip_id: str) -> None:
        self.gaps = self.looks = 0
        self._cluster, self._vip_id = cluster, vip_id
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.looks += 1
            # A move from one file to another may be missed between reading the one and the other: look twice.
            if not self._cluster.holders(self._vip_id) and not self._cluster.holders(self._vip_id):
                self.gaps += 1
            time.sleep(0.01)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self.looks > 10
        assert self.gaps == 0


@pytest.fixture
def fakes(spawn: Callable[..., Daemon], tmp_path: Path, database_url: str, rabbitmq_url: str) -> Iterator[FakeCluster]:
    made = FakeCluster(spawn, tmp_path, database_url, rabbitmq_url)
    yield made
    made.purge()


def furnish(fakes: FakeCluster) -> tuple[dict[str, str], str]:
    """Devices a and b with an agent each, and an ACTIVE VIP on a. :returns: name → device id; id of the VIP."""
    fakes.wait_for_agents("agent-a", "agent-b")
    ids = {}
    for name in "ab":
        body = {"name": name, "device_type": "fake", "agent_host": f"agent-{name}", "capacity": {"VIPS": 10}}
        ids[name] = fakes.devices.create_device(ADMIN, body)["id"]
        wait_for(lambda: len(fakes.open_devices()) == len(ids), 30, "the device to be open", interval=0.2)
        if name == "a":
            site = Site(fakes)
            vip_id = site.vip(site.pool({"192.0.2.1": 80}))["id"]
            site.wait_active(vip_id)
    return ids, vip_id


def move(fakes: FakeCluster, vip_id: str, target_id: str) -> threading.Thread:
    """In a thread: whoever serves the call may never answer."""

    def call() -> None:
        with suppress(LBaaSError, oslo_messaging.MessagingException):
            fakes.devices.move_vip(ADMIN, vip_id, target_id)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def converges(fakes: FakeCluster, vip_id: str, ids: dict[str, str], watch: Watch) -> None:
    """The VIP ends on b; where the move was lost with its server before the commit, it is asked for again."""

    def arrived() -> bool:
        found = fakes.devices.get_moves(ADMIN)
        if not found:
            fakes.devices.move_vip(ADMIN, vip_id, ids["b"])
        return bool(found) and found[0]["state"] == "done"

    wait_for(arrived, 90, "the move to be done", interval=0.3, ignore=(LBaaSError, oslo_messaging.MessagingException))
    wait_for(lambda: fakes.holders(vip_id) == [ids["b"]], 30, "the VIP to be on its target alone")
    watch.end()
    assert set(fakes.vip_statuses().values()) == {"ACTIVE"}
    assert (fakes.count(models.placements), fakes.count(models.deployments)) == (1, 1)
    assert fakes.used() == {ids["a"]: 0, ids["b"]: 1}
    assert counters.check(fakes.database) == []


@on_databases
@steps(SERVER_STEPS)
def test_a_server_that_dies_at_a_step_of_a_move(fakes: FakeCluster, step: str, moment: str) -> None:
    server = fakes.server("server-1")
    for name in ("agent-a", "agent-b"):
        fakes.agent(name)
    ids, vip_id = furnish(fakes)
    server.stop()
    watch = Watch(fakes, vip_id)
    fakes.mortal["server-2"] = ("server", step, moment)
    mortal = fakes.server("server-2")
    asked = move(fakes, vip_id, ids["b"])
    assert mortal.wait(90) == 128 + 9
    fakes.server("server-3")
    asked.join(60)
    converges(fakes, vip_id, ids, watch)


@on_databases
@steps(AGENT_STEPS)
def test_an_agent_that_dies_at_a_step_of_a_move(fakes: FakeCluster, name: str, step: str, moment: str) -> None:
    fakes.server("server-1")
    fakes.mortal[f"agent-{name}"] = ("agent", step, moment)
    agents = {each: fakes.agent(f"agent-{each}") for each in "ab"}
    ids, vip_id = furnish(fakes)
    watch = Watch(fakes, vip_id)
    move(fakes, vip_id, ids["b"]).join(60)
    assert agents[name].wait(90) == 128 + 9
    del fakes.mortal[f"agent-{name}"]
    fakes.agent(f"agent-{name}")
    converges(fakes, vip_id, ids, watch)
