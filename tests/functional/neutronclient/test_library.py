"""The newest python-neutronclient as a library, and openstacksdk, without authentication."""

from __future__ import annotations

import openstack
import pytest
from keystoneauth1.loading import get_plugin_loader
from keystoneauth1.session import Session
from neutronclient.common import exceptions
from neutronclient.v2_0.client import Client

from tests.demo import Demo
from tests.rig.ports import free_port
from tests.rig.waiting import wait_for

pytestmark = [pytest.mark.xdist_group("neutronclient"), pytest.mark.filterwarnings("ignore")]


def test_the_newest_python_neutronclient_leads_a_vip_through_its_life(demo: Demo) -> None:
    auth = get_plugin_loader("none").load_from_options(endpoint=demo.url)
    client = Client(session=Session(auth=auth), endpoint_override=demo.url)
    (subnet,) = client.list_subnets(name="front")["subnets"]
    body = {"name": "lib", "subnet_id": subnet["id"], "protocol": "TCP", "lb_method": "ROUND_ROBIN"}
    pool = client.create_pool({"pool": body})["pool"]
    listener = {"protocol": "TCP", "protocol_port": free_port(), "subnet_id": subnet["id"], "pool_id": pool["id"]}
    vip = client.create_vip({"vip": listener})["vip"]
    wait_for(lambda: client.show_vip(vip["id"])["vip"]["status"] == "ACTIVE", 30, "the VIP to be ACTIVE")
    assert client.update_vip(vip["id"], {"vip": {"name": "renamed"}})["vip"]["name"] == "renamed"
    with pytest.raises(exceptions.Conflict):
        client.delete_pool(pool["id"])
    client.delete_vip(vip["id"])
    wait_for(lambda: client.list_vips()["vips"] == [], 30, "the VIP to go")
    client.delete_pool(pool["id"])
    with pytest.raises(exceptions.NotFound):
        client.show_vip(vip["id"])


def test_openstacksdk_finds_its_way_about(demo: Demo) -> None:
    network = openstack.connection.Connection(auth_type="none", auth={"endpoint": demo.url}).network
    assert network.find_subnet("front").cidr == "127.87.0.0/24"
    assert [it.name for it in network.networks()] == ["front"]
    assert [it.host for it in network.agents()] == ["demo"]
    assert {it.name for it in network.service_providers()} == {"any", "fast"}
    assert "lbaas" in [it.alias for it in network.extensions()]
    assert network.get_quota("tess")["pool"] == 10
    assert network.get("/lb/vips").json() == {"vips": []}
