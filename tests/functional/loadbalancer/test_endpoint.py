"""The plugin on the bus: the client's calls arrive, and errors come back as themselves."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.plugins.loadbalancer.base import LoadBalancerPluginBase
from lbaas_scheduler.plugins.loadbalancer.endpoint import METHODS, LoadBalancerEndpoint
from lbaas_scheduler.rpc import topics, transport
from lbaas_scheduler.rpc.lbaas_api import LoadBalancerClient
from tests.agent_side import bus_conf
from tests.functional.loadbalancer.lab import Lab, tenant


@pytest.fixture
def client(lab: Lab) -> Iterator[LoadBalancerClient]:
    bus = transport.get_transport(bus_conf())
    server = transport.get_server(bus, topics.PLUGINS, "server-1", lab.plugin.rpc_endpoints())
    server.start()
    yield LoadBalancerClient(bus)
    server.stop()
    server.wait()
    bus.cleanup()


def _public(thing: object) -> set[str]:
    return {name for name, value in inspect.getmembers(thing) if name[0] != "_" and inspect.isroutine(value)}


def test_the_endpoint_has_what_the_client_calls_and_nothing_else(lab: Lab) -> None:
    (endpoint,) = lab.plugin.rpc_endpoints()
    assert set(METHODS) == _public(LoadBalancerClient)
    assert _public(endpoint) == set(METHODS)
    assert LoadBalancerEndpoint.target.version == topics.VERSION


@pytest.mark.parametrize("name", METHODS)
def test_client_and_plugin_name_their_arguments_alike(name: str) -> None:
    sent = list(inspect.signature(getattr(LoadBalancerClient, name)).parameters)
    taken = list(inspect.signature(getattr(LoadBalancerPluginBase, name)).parameters)
    assert sent == [argument for argument in taken if argument != "page"]


def test_a_whole_workflow_over_the_bus(lab: Lab, client: LoadBalancerClient) -> None:
    me = lab.me
    pool = client.create_pool(me, {"subnet_id": lab.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN", "name": "负载"})
    member = client.create_member(me, {"pool_id": pool["id"], "address": "10.1.0.1", "protocol_port": "80"})
    monitor = client.create_health_monitor(me, {"type": "PING", "delay": 5, "timeout": 2, "max_retries": 3})
    assert client.create_pool_health_monitor(me, monitor["id"], pool["id"]) == {"health_monitor": [monitor["id"]]}
    body = {"subnet_id": lab.subnet["id"], "protocol": "HTTP", "protocol_port": 80, "pool_id": pool["id"]}
    vip = client.create_vip(me, body)
    assert client.get_vip(me, vip["id"], fields=["status"]) == {"status": "PENDING_CREATE"}
    lab.confirm(vip["id"])
    assert client.update_member(me, member["id"], {"weight": 5})["status"] == "PENDING_UPDATE"
    assert client.get_pool_health_monitor(me, monitor["id"], pool["id"])["status"] == "ACTIVE"
    assert client.stats(me, pool["id"])["stats"]["bytes_in"] == 0
    assert [each["name"] for each in client.get_pools(me, filters={"name": ["负载"]})] == ["负载"]
    client.delete_pool_health_monitor(me, monitor["id"], pool["id"])
    client.delete_health_monitor(me, monitor["id"])
    client.delete_member(me, member["id"])
    client.delete_vip(me, vip["id"])
    lab.confirm(vip["id"], removed=True)
    client.delete_pool(me, pool["id"])
    assert client.get_vips(me) == client.get_pools(me) == client.get_members(me) == client.get_health_monitors(me) == []


def test_who_calls_is_known_on_the_other_side(lab: Lab, client: LoadBalancerClient) -> None:
    pool = lab.pool()
    with pytest.raises(errors.PoolNotFound):
        client.get_pool(tenant("stranger"), pool["id"])


def test_what_a_caller_may_cause_is_no_failure_of_the_server(
    lab: Lab, client: LoadBalancerClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(errors.InvalidRequest) as caught:
        client.create_pool(lab.me, {"protocol": "UDP"})
    assert "'lb_method'" in caught.value.message
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
