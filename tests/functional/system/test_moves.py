"""A VIP moves from one host's HAProxy to another's, under traffic."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from lbaas_scheduler.cmd.demo import traffic
from lbaas_scheduler.cmd.demo.backends import Backend
from lbaas_scheduler.cmd.demo.traffic import Tally
from lbaas_scheduler.db import counters
from tests.functional.system import hosts
from tests.functional.system.cluster import ADMIN, Cluster, Site, cluster
from tests.rig.daemon import Daemon
from tests.rig.fixtures import require

# kombu leaves the sockets of connections that were cut to the garbage collector.
pytestmark = [
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class TwoHosts(Cluster):
    """Each agent on a host of its own; the server here."""

    forwarded_port = 0

    def _process(self, name: str, module: str, environment: Mapping[str, str] | None = None) -> Daemon:
        if not name.startswith("agent-"):
            return super()._process(name, module, environment)
        spawn, values = self._spawn, self._values
        url = re.sub(r"127\.0\.0\.1:\d+", f"{hosts.HOME}:{self.forwarded_port}", values["transport_url"])
        self._values = {**values, "transport_url": url}
        self._spawn = lambda name, command, **more: spawn(name, [*hosts.on(name.removeprefix("agent-")), *command], **more)
        try:
            return super()._process(name, module, environment)
        finally:
            self._spawn, self._values = spawn, values


@pytest.fixture
def two_hosts(spawn: Callable[..., Daemon], folder: Path, database_url: str, rabbitmq_url: str) -> Iterator[TwoHosts]:
    require("network namespaces", hosts.missing())
    port = int(re.findall(r":(\d+)/", rabbitmq_url)[-1])
    with hosts.two_hosts():
        forwarder = hosts.Forwarder(port)
        made = TwoHosts(spawn, folder, database_url, rabbitmq_url)
        made.forwarded_port = forwarder.port
        try:
            yield made
        finally:
            made.purge()
            forwarder.close()


@pytest.fixture
def member() -> Iterator[Backend]:
    backend = Backend("web", hosts.HOME)
    yield backend
    backend.stop()


def test_no_request_fails_while_a_vip_moves_between_two_hosts(two_hosts: TwoHosts, member: Backend) -> None:
    member.start()
    two_hosts.server("server-1")
    agents = {name: two_hosts.agent(f"agent-{name}") for name in "ab"}
    two_hosts.wait_for_agents("agent-a", "agent-b")
    (first,) = two_hosts.register_devices(1, agent_host="agent-a")
    site = Site(two_hosts, hosts.VIPS)
    vip = site.wait_active(site.vip(site.pool({member.address: member.port}))["id"])
    (_, second) = (first, *two_hosts.register_devices(1, agent_host="agent-b"))
    hosts.lead_to("a")
    tally = traffic.send(vip["address"], vip["protocol_port"], 20)
    assert tally.failures == []

    two_hosts.devices.move_vip(ADMIN, vip["id"], second)
    moved_under_traffic(two_hosts, vip, tally, agents["b"].pid)

    assert tally.failures == []
    assert tally.sent > 60
    placement = two_hosts.devices.get_placement(ADMIN, vip["id"])
    assert (placement["device_id"], placement["agent_host"]) == (second, "agent-b")
    assert not hosts.listens(agents["a"].pid, vip["address"], vip["protocol_port"])
    assert hosts.listens(agents["b"].pid, vip["address"], vip["protocol_port"])
    assert two_hosts.used() == {first: 0, second: 1}
    assert counters.check(two_hosts.database) == []


def moved_under_traffic(cluster: Cluster, vip: dict, tally: Tally, target_pid: int) -> None:
    """Request after request until the move is done and a little longer; the network follows as soon as the target listens."""
    led, rest, deadline = False, 50, time.monotonic() + 60
    while rest and time.monotonic() < deadline:
        if not led and hosts.listens(target_pid, vip["address"], vip["protocol_port"]):
            hosts.lead_to("b")
            led = True
        tally.add(traffic.send(vip["address"], vip["protocol_port"], 1))
        if led and tally.sent % 10 == 0 and cluster.devices.get_moves(ADMIN)[0]["state"] == "done":
            rest -= 10
    assert led, "the target never listened"
    assert rest == 0, cluster.devices.get_moves(ADMIN)


@pytest.fixture
def one_host(spawn: Callable[..., Daemon], folder: Path, database_url: str, rabbitmq_url: str) -> Iterator[Cluster]:
    with cluster(spawn, folder, database_url, rabbitmq_url) as made:
        yield made


def test_a_vip_moves_between_two_devices_of_one_host_under_traffic(one_host: Cluster, backends: list[Backend]) -> None:
    one_host.server("server-1")
    one_host.agent("agent-1")
    one_host.wait_for_agents("agent-1")
    (first,) = one_host.register_devices(1)
    site = Site(one_host)
    pool_id = site.pool({backend.address: backend.port for backend in backends})
    vip = site.wait_active(site.vip(pool_id)["id"])
    (_, second) = (first, *one_host.register_devices(1))
    one_host.devices.move_vip(ADMIN, vip["id"], second)
    tally, deadline = Tally(), time.monotonic() + 60
    while one_host.devices.get_moves(ADMIN)[0]["state"] not in ("done", "failed") and time.monotonic() < deadline:
        tally.add(traffic.send(vip["address"], vip["protocol_port"], 5))
    (move,) = one_host.devices.get_moves(ADMIN)
    assert move["state"] == "done", move
    tally.add(traffic.send(vip["address"], vip["protocol_port"], 20))
    # One request at a time: at most the one that waits to be accepted when the source closes its socket.
    assert len(tally.failures) <= 1, tally.failures
    assert one_host.used() == {first: 0, second: 1}
