"""What the bus does with errors, with large messages, and while the broker is away."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from urllib.parse import quote

import oslo_messaging
import pytest

from lbaas_scheduler.errors import NoValidDevice, VipNotFound
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.agent_api import AgentAPI
from lbaas_scheduler.rpc.codec import encode_device
from lbaas_scheduler.rpc.lbaas_api import LoadBalancerClient
from lbaas_scheduler.rpc.server_api import ServerAPI
from lbaas_scheduler.rpc.transport import get_server, get_transport, service_context
from tests.agent_side import HOST, bus_conf, deployment, device
from tests.functional.agent.conftest import Site
from tests.rig.fixtures import require
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.run import Run
from tests.rig.waiting import wait_for
from tests.troubled_server import ERRORS_OF_OTHERS, troubled_server

pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
"""A library that loses its broker leaves sockets to the garbage collector, which complains of them."""


@pytest.fixture(autouse=True)
def _collect() -> Iterator[None]:
    """Have it complain here, and not in some later test."""
    yield
    gc.collect()


outages = pytest.mark.xdist_group("outages-of-the-broker")
"""Tests that share one broker, which takes longer to start than most tests last."""


@pytest.fixture(scope="module")
def stopped_at_will(rig: Run) -> Iterator[RabbitMQ]:
    require(RabbitMQ.name, RabbitMQ.missing())
    broker = rig.private(RabbitMQ, "bus-rabbitmq")
    yield broker
    broker.end()


@pytest.fixture
def broker(stopped_at_will: RabbitMQ) -> RabbitMQ:
    """One that a test may stop and start, whatever the test before left of it."""
    if not stopped_at_will.daemon.running:
        stopped_at_will.start()
    return stopped_at_will


class _Plugin:
    target = oslo_messaging.Target(namespace=topics.LOADBALANCER_NAMESPACE, version=topics.VERSION)

    def get_vip(self, context, id, fields=None):
        raise VipNotFound(id=id)

    def create_vip(self, context, vip):
        raise NoValidDevice(resource_id="v1", summary="2 × capacity.VIPS.", trail={"dropped": {"capacity.VIPS": 2}})


def test_errors_arrive_as_what_they_were_with_their_facts_and_without_the_servers_traceback(transport):
    server = get_server(transport, topics.PLUGINS, "server-1", [_Plugin()])
    server.start()
    try:
        client = LoadBalancerClient(transport)
        with pytest.raises(VipNotFound) as absent:
            client.get_vip(service_context(), "v1")
        with pytest.raises(NoValidDevice) as full:
            client.create_vip(service_context(), {})
    finally:
        server.stop()
        server.wait()
    assert absent.value.message == "Vip v1 could not be found."
    assert full.value.details["trail"] == {"dropped": {"capacity.VIPS": 2}}
    assert "Traceback" not in full.value.message


def test_queues_of_agents_are_quorum_queues(site, rabbitmq_server, rabbitmq_url):
    site.start_agent()
    types = {queue["name"]: queue["type"] for queue in rabbitmq_server.queues(rabbitmq_url)}
    assert types[f"{topics.AGENTS}.{HOST}"] == "quorum"


def test_a_vip_of_ten_thousand_members_fits_through(site):
    one = site.give("d1")
    site.start_agent()
    site.create(one, deployment("v1", members=10_000))
    assert wait_for(lambda: site.servers.last("v1"), 30).ok


@pytest.mark.parametrize("queue", [f"{topics.AGENTS}.{HOST}", topics.SERVERS])
def test_a_queue_that_vanishes_comes_back_with_its_reader(site, rabbitmq_server, rabbitmq_url, queue):
    one = site.give("d1")
    agent = site.start_agent()
    vhost = quote(rabbitmq_url.rsplit("/", 1)[1], safe="")
    rabbitmq_server.call("DELETE", f"/api/queues/{vhost}/{queue}")
    wait_for(lambda: queue in {it["name"] for it in rabbitmq_server.queues(rabbitmq_url)}, 60, f"{queue} to be back")
    site.wait_agent(agent)
    site.create(one, deployment("v1"))
    assert wait_for(lambda: site.servers.last("v1"), 60).ok


def test_any_number_of_casts_and_calls_needs_no_more_connections(site):
    one = site.give("d1")
    site.start_agent()
    site.create(one, deployment("v1"))
    wait_for(lambda: site.servers.last("v1"))
    client = ServerAPI(site.transport)
    counts = []
    for _ in range(3):
        for revision in range(200):
            site.api.create_vip(HOST, encode_device(one, ""), deployment("v1", revision=revision))
        for _call in range(20):
            client.get_devices(HOST)
        counts.append(len(os.listdir("/proc/self/fd")))
    # Other threads of the process open one now and then; one for each of 220 messages would be seen.
    assert counts[-1] - counts[0] < 20, f"file descriptors after each round: {counts}"


@outages
def test_a_cast_while_the_broker_is_away_fails_soon(broker):
    url = broker.create_vhost()
    transport = get_transport(bus_conf(url))
    api, document = AgentAPI(transport), encode_device(device(), "")
    api.create_vip(HOST, document, deployment("v1"))
    broker.stop()
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(oslo_messaging.MessageDeliveryFailure):
            api.create_vip(HOST, document, deployment("v1"))
        assert time.monotonic() - began < 10
    broker.start()  # with a broker, the library closes what it has open
    transport.cleanup()


@outages
def test_an_agent_that_starts_before_its_broker_serves_once_it_is_there(broker, tmp_path, spawn):
    url = broker.create_vhost()
    site = Site(url, tmp_path, spawn)
    one = site.give("d1")
    agent = site.start_agent()
    agent.kill()
    broker.stop()
    agent.start()
    wait_for(lambda: "starts, drivers" in agent.tail(4000))
    broker.start()
    site.wait_agent(agent)
    wait_for(lambda: site.calls("d1"), 90)
    site.create(one, deployment("v1"))
    assert wait_for(lambda: site.servers.last("v1"), 60).ok
    site.close()


@outages
def test_results_that_fall_into_an_outage_are_delivered_after_it(broker, tmp_path, spawn):
    url = broker.create_vhost()
    site = Site(url, tmp_path, spawn)
    one = site.give("d1", hang=["apply"], hang_seconds=3)
    agent = site.start_agent()
    wait_for(lambda: site.calls("d1"))
    site.create(one, deployment("v1"))
    wait_for(lambda: ("apply", ["v1"]) in site.calls("d1"))
    broker.stop()
    wait_for(lambda: site.deployed("d1") == {"v1": (1, 1)})
    broker.start()
    assert wait_for(lambda: site.servers.last("v1"), 120).ok
    broker.stop()
    agent.signal(signal.SIGTERM)
    assert agent.wait(20) == 0, "an agent whose broker is away still ends in time"
    broker.start()  # with a broker, the library closes what it has open
    site.close()


@pytest.mark.parametrize("error", ERRORS_OF_OTHERS, ids=lambda it: type(it).__name__)
def test_an_error_of_a_server_is_no_sign_that_the_broker_is_away(error: Exception, rabbitmq_url: str) -> None:
    transport = get_transport(bus_conf(rabbitmq_url))
    with troubled_server(transport, error) as server, pytest.raises(type(error), match="theirs"):
        server.report_results("agent-1", {})
    transport.cleanup()
