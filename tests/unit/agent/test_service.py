"""The whole agent over the in-process bus."""

from __future__ import annotations

import time
import uuid

import oslo_messaging
import pytest

from lbaas_scheduler.agent.service import AgentService
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.agent_api import AgentAPI
from lbaas_scheduler.rpc.codec import encode_device
from lbaas_scheduler.rpc.server_api import ServerAPI
from lbaas_scheduler.rpc.transport import get_server, get_transport
from tests.agent_side import HOST, LocalDriver, Servers, StubDriver, bus_conf, deployment, device
from tests.rig.waiting import wait_for

DEVICE = encode_device(device(), "")


class Site:
    def __init__(self):
        self.conf = bus_conf(report_interval_seconds=1, stats_interval_seconds=1)
        self.conf.set_override("graceful_shutdown_seconds", 5)
        # In one process all in-process buses are one: an exchange of its own keeps tests apart.
        self.transport = get_transport(self.conf)
        self.conf.set_override("control_exchange", uuid.uuid4().hex)
        self.servers, self.driver = Servers(), StubDriver()
        self.rpc = get_server(self.transport, topics.SERVERS, "server-1", [self.servers])
        self.rpc.start()
        self.api = AgentAPI(self.transport)
        self.agent = AgentService(self.conf, self.transport, {"stub": self.driver}, Vault([]), HOST)

    def close(self):
        self.agent.stop()
        self.rpc.stop()
        self.rpc.wait()


@pytest.fixture
def site():
    made = Site()
    yield made
    made.close()


@pytest.fixture
def running(site):
    site.servers.assign(device())
    site.agent.start()
    wait_for(lambda: site.servers.states)
    return site


def test_an_agent_without_drivers_is_refused():
    with pytest.raises(ConfigurationError, match="at least one device driver"):
        AgentService(bus_conf(), None, {}, Vault([]), HOST)


def test_the_first_report_alone_carries_the_start_flag(running):
    wait_for(lambda: len(running.servers.states) >= 2)
    first, second = running.servers.states[:2]
    assert (first["start_flag"], second["start_flag"]) == (True, False)
    assert first["host"] == HOST
    assert first["agent_type"] == "Loadbalancer agent"
    assert first["configurations"]["device_drivers"] == ["stub"]
    assert wait_for(lambda: running.servers.states[-1]["configurations"]["devices"] == 1)


def test_the_report_counts_what_devices_had_lost_and_got_back(site):
    site.servers.assign(device())
    site.servers.want("d1", deployment("v1"))
    site.driver.content["d1"] = {"v1": Version(0, 0)}
    site.agent.start()
    wait_for(lambda: site.servers.states and site.servers.states[-1]["configurations"]["repaired_vips"] == 1)
    assert site.driver.content["d1"] == {"v1": Version(1, 1)}


def test_casts_are_carried_out_and_reported(running):
    servers, api = running.servers, running.api
    servers.want("d1", deployment("v1"))
    api.create_vip(HOST, DEVICE, deployment("v1"))
    assert wait_for(lambda: servers.last("v1")).ok
    servers.want("d1", deployment("v1", revision=2))
    api.update_vip(HOST, DEVICE, deployment("v1", revision=2))
    wait_for(lambda: servers.last("v1").version == Version(1, 2))
    servers.want_removed("d1", "v1", Version(1, 3))
    api.delete_vip(HOST, DEVICE, "v1", Version(1, 3))
    assert wait_for(lambda: servers.last("v1").removed)
    assert running.driver.content["d1"] == {}


def test_statistics_arrive(running):
    running.servers.want("d1", deployment("v1"))
    running.api.resync(HOST)
    wait_for(lambda: running.servers.stats.get("d1"))


def test_a_message_that_cannot_be_read_is_logged_and_harms_nothing(running, caplog):
    document = {"vip": {"id": "v1"}, "version": [1, 1]}
    running.api._client.prepare(server=HOST).cast({}, "create_vip", device=DEVICE, deployment=document)
    wait_for(lambda: "Deployment.vip.tenant_id is missing" in caplog.text)
    running.servers.want("d1", deployment("v2"))
    running.api.create_vip(HOST, DEVICE, deployment("v2"))
    assert wait_for(lambda: running.servers.last("v2")).ok


def test_a_disabled_agent_keeps_what_it_serves_and_catches_up_when_enabled(running):
    running.servers.want("d1", deployment("v1"))
    running.api.resync(HOST)
    wait_for(lambda: running.servers.last("v1"))
    running.api.agent_updated(HOST, False)
    running.servers.want("d1", deployment("v2"))
    running.api.agent_updated(HOST, True)
    wait_for(lambda: running.servers.last("v2"))
    assert set(running.driver.content["d1"]) == {"v1", "v2"}
    assert not running.driver.called("remove")


def test_stop_ends_in_time_stops_drivers_and_leaves_devices_alone(running):
    running.servers.want("d1", deployment("v1"))
    running.api.resync(HOST)
    wait_for(lambda: running.servers.last("v1"))
    began = time.monotonic()
    running.agent.stop()
    assert time.monotonic() - began < 5
    assert running.driver.stopped
    assert set(running.driver.content["d1"]) == {"v1"}


def test_an_agent_that_never_started_or_has_stopped_stops_at_once(site, caplog):
    began = time.monotonic()
    site.agent.stop()
    assert site.driver.stopped
    site.agent.stop()
    assert time.monotonic() - began < 2
    assert "left behind" not in caplog.text
    site.agent.wait()


def test_an_agent_that_hears_nothing_fences_its_devices_and_brings_its_own_back_when_it_hears_again(site):
    local = LocalDriver()
    site.agent = AgentService(site.conf, site.transport, {"local": local}, Vault([]), HOST)
    for name in ("kept", "lost"):
        site.servers.assign(device(name, "local"))
        site.servers.want(name, deployment(f"v-{name}"))
    site.agent.start()
    wait_for(lambda: local.content["kept"] and local.content["lost"])
    silence = pytest.MonkeyPatch()
    for method in ("_call", "_cast"):
        silence.setattr(ServerAPI, method, _silent)
    site.conf.set_override("fence_after_seconds", 1, group="agent")
    wait_for(lambda: {*local.content["kept"].values(), *local.content["lost"].values()} == {Version(0, 0)}, 15)
    site.servers.unassign("lost")
    silence.undo()
    wait_for(lambda: local.content["kept"] == {"v-kept": Version(1, 1)}, 15)
    wait_for(lambda: "lost" not in local.content)


def _silent(*_, **__):
    raise oslo_messaging.MessagingTimeout
