"""Upgrades one side after the other: today's servers with agents of release 1.0, and the other way round."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import oslo_messaging
import pytest
import sqlalchemy as sa

from lbaas_scheduler.agent.service import AgentService
from lbaas_scheduler.cmd import wiring
from lbaas_scheduler.db import models
from lbaas_scheduler.devices.secrets import Vault, generate_key
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.errors import NoValidDevice
from lbaas_scheduler.rpc.lbaas_api import DeviceSchedulerClient, LoadBalancerClient
from lbaas_scheduler.rpc.transport import get_transport
from tests.agent_side import StubDriver, bus_conf
from tests.frozen.peers import FrozenAgent, FrozenServer
from tests.functional.system.cluster import ADMIN, TENANT
from tests.rig.waiting import wait_for

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kombu leaves sockets behind


class Server:
    """Today's server, on the bus only."""

    def __init__(self, database_url: str, bus: str) -> None:
        conf = bus_conf(bus)
        conf.set_override("connection", database_url, "database")
        conf.set_override("device_handlers", ["fake"], "LoadBalancer")
        conf.set_override("encryption_keys", [generate_key()], "security")
        conf.set_override("enabled", False, "api")
        conf.set_override("reconcile_interval_seconds", 1, "scheduler")
        conf.set_override("cast_deadline_seconds", 1, "scheduler")
        conf.set_override("max_backoff_seconds", 1, "scheduler")
        self.transport = get_transport(conf)
        self._server = wiring.build(conf, self.transport)
        self.database = self._server._database
        self.devices, self.balancers = DeviceSchedulerClient(self.transport), LoadBalancerClient(self.transport)
        self._server.start()

    def furnish(self) -> None:
        """A device, and a pool to make VIPs of."""
        self.device = self.devices.create_device(ADMIN, {"name": "box", "device_type": "fake"})["id"]
        network = self.devices.create_network(ADMIN, {"name": "front", "shared": True})["id"]
        self.subnet = self.devices.create_subnet(ADMIN, {"network_id": network, "cidr": "10.0.0.0/24"})["id"]
        wait_for(self.is_open, 20, "the device to be open for VIPs")

    def vip(self) -> str:
        pool = {"subnet_id": self.subnet, "protocol": "TCP", "lb_method": "ROUND_ROBIN"}
        pool_id = self.balancers.create_pool(TENANT, pool)["id"]
        vip = {"subnet_id": self.subnet, "protocol": "TCP", "protocol_port": 80, "pool_id": pool_id}
        return str(self.balancers.create_vip(TENANT, vip)["id"])

    def wait_active(self, vip_id: str) -> None:
        wait_for(lambda: self.balancers.get_vip(TENANT, vip_id)["status"] == "ACTIVE", 20, "the VIP to be ACTIVE")

    def agent(self, host: str) -> dict[str, Any] | None:
        return next((it for it in self.devices.get_agents(ADMIN) if it["host"] == host), None)

    def is_open(self) -> bool:
        flag = sa.select(models.device_load.c.schedulable).where(models.device_load.c.device_id == self.device)
        return bool(self.database.read(lambda conn: conn.scalar(flag)))

    def stop(self) -> None:
        self._server.stop()
        self.transport.cleanup()


@pytest.fixture
def server(sqlite_tables_url: str, rabbitmq_url: str) -> Iterator[Server]:
    made = Server(sqlite_tables_url, rabbitmq_url)
    yield made
    made.stop()


@pytest.fixture
def transport(rabbitmq_url: str) -> Iterator[oslo_messaging.Transport]:
    """Of the frozen side."""
    made = get_transport(bus_conf(rabbitmq_url))
    yield made
    made.cleanup()


@pytest.fixture
def host() -> str:
    return f"host-{uuid.uuid4().hex}"


Meets = Callable[..., FrozenAgent]


@pytest.fixture
def agent_of(server: Server, transport: oslo_messaging.Transport, host: str) -> Iterator[Meets]:
    """Start an agent of some version beside today's server, and let it report."""
    started: list[FrozenAgent] = []

    def start(version: str, **more: Any) -> FrozenAgent:
        for each in started:
            each.stop()
        started[:] = [FrozenAgent(transport, host, version, **more)]
        started[0].start()

        def heard() -> bool:
            started[0].report_state(utcnow().isoformat())
            return server.agent(host) is not None

        wait_for(heard, 20, "the server to hear of the agent", interval=0.3)
        return started[0]

    yield start
    for each in started:
        each.stop()


@pytest.mark.parametrize(
    ("version", "more"),
    [("1.0", {}), ("1.3", {"since_1_3": {"new": [1]}})],
    ids=["the first release", "a release to come"],
)
def test_servers_may_be_upgraded_before_or_after_agents_of(version: str, more: Any, server: Server, agent_of: Meets) -> None:
    agent = agent_of(version, **more)
    server.furnish()
    vip_id = server.vip()
    server.wait_active(vip_id)
    server.balancers.update_vip(TENANT, vip_id, {"name": "new"})
    server.wait_active(vip_id)
    assert [it["id"] for it in agent.get_devices()] == [server.device]
    server.balancers.delete_vip(TENANT, vip_id)
    wait_for(lambda: not server.balancers.get_vips(TENANT), 20, "the VIP to be gone")
    assert agent.mistaken == []


def test_an_agent_of_another_major_version_is_named_once_serves_on_and_gets_nothing_new(
    server: Server, agent_of: Meets, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent_of("1.0")
    server.furnish()
    vip_id = server.vip()
    server.wait_active(vip_id)

    with caplog.at_level(logging.WARNING):
        old = agent_of("0.9")
        wait_for(lambda: not server.is_open(), 20, "the device to be closed")
        for _ in range(3):
            old.report_state(utcnow().isoformat(), start_flag=False)
        with pytest.raises(oslo_messaging.RemoteError, match="UnsupportedVersion"):
            old.get_devices()
        found = server.agent(host)
    assert found is not None
    assert found["alive"]
    assert found["configurations"]["incompatible_version"] == "0.9"
    told = [record.getMessage() for record in caplog.records if "version 0.9" in record.getMessage()]
    assert len(told) == 1
    assert host in told[0]
    assert not [record for record in caplog.records if record.exc_info], "no tracebacks"

    with pytest.raises(NoValidDevice):
        server.vip()
    assert server.balancers.get_vip(TENANT, vip_id)["status"] == "ACTIVE"
    server.balancers.update_vip(TENANT, vip_id, {"name": "new"})

    agent_of("1.0")
    server.wait_active(vip_id)
    wait_for(server.is_open, 20, "the device to be open again")


@pytest.fixture
def todays_agent(rabbitmq_url: str, host: str) -> Iterator[Callable[[], StubDriver]]:
    started: list[AgentService] = []
    conf = bus_conf(rabbitmq_url, report_interval_seconds=1)
    transport = get_transport(conf)

    def start() -> StubDriver:
        driver = StubDriver()
        started.append(AgentService(conf, transport, {"stub": driver}, Vault([generate_key()]), host))
        started[0].start()
        return driver

    yield start
    for each in started:
        each.stop()
    transport.cleanup()


@pytest.mark.parametrize(
    ("version", "more"),
    [("1.0", {}), ("1.3", {"since_1_3": {"new": [1]}})],
    ids=["the first release", "a release to come"],
)
def test_agents_may_be_upgraded_before_or_after_servers_of(
    version: str, more: Any, transport: oslo_messaging.Transport, host: str, todays_agent: Callable[[], StubDriver]
) -> None:
    server = FrozenServer(transport, host, version, **more)
    server.start()
    try:
        driver = todays_agent()
        wait_for(lambda: driver.content["device-1"] == {"vip-1": Version(1, 1)}, 20, "the VIP to be on its device")
        server.tell("update_vip")
        wait_for(lambda: driver.content["device-1"] == {"vip-1": Version(1, 2)}, 20, "the VIP to be changed")
        server.tell("delete_vip")
        wait_for(lambda: any(it["removed"] for it in server.results), 20, "the VIP to be removed")
        assert server.states
        assert server.mistaken == []
    finally:
        server.stop()


def test_a_server_of_another_major_version_is_named_once_and_devices_serve_on(
    transport: oslo_messaging.Transport,
    host: str,
    todays_agent: Callable[[], StubDriver],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = FrozenServer(transport, host, "2.0")
    server.start()
    try:
        with caplog.at_level(logging.WARNING):
            driver = todays_agent()
            driver.content["device-1"] = {"vip-1": Version(1, 1)}
            wait_for(lambda: "does not understand messages of version 1.0" in caplog.text, 20, "the refusal to be named")
            for _ in range(3):
                server.tell("delete_vip")
            wait_for(lambda: "A server speaks version 2.0" in caplog.text, 20, "the version to be named")
            server.tell("resync")
        ours = [record for record in caplog.records if record.name.startswith("lbaas_scheduler.agent")]
        assert len([it for it in ours if "version" in it.getMessage()]) == 2
        assert not [record for record in ours if record.exc_info], "no tracebacks"
        assert driver.content["device-1"] == {"vip-1": Version(1, 1)}
        assert not driver.called("remove")
    finally:
        server.stop()
