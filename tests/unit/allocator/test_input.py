"""What people type: equal definitions are equal however they are written; what would silently mean something else is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lbaas_scheduler.allocator.api import AllocatorAPI
from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.allocator.core.resource import Definition
from lbaas_scheduler.allocator.core.states import Pool
from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from lbaas_scheduler.allocator.kinds.vlan import Vlan
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.errors import InvalidConfig, InvalidRequest, LBaaSError, NotAllocated, NotDefined
from tests.allocator_side import V, X, new_allocator, vlan, vxlan

NET = {"cidr": "10.0.0.0/24"}


@pytest.fixture
def allocator() -> ResourceAllocator:
    return new_allocator(MemoryDriver())


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("vlan", {"ranges": "100-199,300-399"}, {"ranges": " 300-399 , 0100-199"}),
        ("vlan", {"ranges": "5-100, 101-200"}, {"ranges": "5-200"}),
        ("vxlan", {"range": "100-199", "local_vlans": "1-99,100-4000"}, {"range": " 100-199 ", "local_vlans": "1-4000"}),
        ("subnet", {"cidr": "2001:DB8::/48"}, {"cidr": "2001:db8:0::/48"}),
        ("address", {**NET, "ranges": "10.0.0.5, 10.0.0.9-10.0.0.9"}, {**NET, "ranges": "10.0.0.9,10.0.0.5"}),
        ("address", {**NET, "automatic": "10.0.0.5-10.0.0.7,10.0.0.8"}, {**NET, "automatic": "10.0.0.5-10.0.0.8"}),
        ("address", {**NET, "automatic": "none"}, {**NET, "automatic": "none", "ranges": "", "gateway": None}),
        ("address", {**NET, "reserved": ["10.0.0.7", "10.0.0.6"]}, {**NET, "reserved": ["10.0.0.6", "10.0.0.7"]}),
    ],
)
def test_a_definition_written_in_another_way_is_the_same_one(allocator, kind, one, other):
    pool = Selector(kind, "p")
    made = allocator.define(pool, one)
    assert allocator.define(pool, other) == made
    assert allocator.define(pool, made.config) == made
    assert allocator.redefine(pool, other).generation == 1


@pytest.mark.parametrize(
    ("kind", "config", "text"),
    [
        *(("vlan", {"quotas": {tenant: 1}}, "quotas is") for tenant in ("", "\ud800", "\x00", "x" * 10_000, " anne")),
        ("address", {"cidr": "fe80::%eth0/64"}, "is no prefix"),
        ("address", {"cidr": "fe80::/64", "gateway": "fe80::1%eth0"}, "is no IP address"),
        ("address", {"cidr": "fe80::/64", "reserved": ["fe80::1%eth0"]}, "is no IP address"),
        ("address", {"cidr": "fe80::/64", "ranges": "fe80::1%1-fe80::9"}, "is no IP address"),
        ("address", {"cidr": "::/64"}, "holds IPv4 addresses; write them as IPv4"),
        ("subnet", {"cidr": "::ffff:10.0.0.0/104"}, "holds IPv4 addresses; write them as IPv4"),
    ],
)
def test_what_would_mean_something_else_is_no_definition(allocator, kind, config, text):
    with pytest.raises(InvalidConfig, match=text):
        allocator.define(Selector(kind, "p"), config)
    assert allocator.pools() == []


def test_a_scoped_address_is_no_value(allocator):
    allocator.define(Selector("address", "a"), {"cidr": "fe80::/64"})
    allocator.define(Selector("subnet", "s"), {"cidr": "2001:db8::/48", "alloc_len": 64})
    for kind, pool, value in (("address", "a", "fe80::5%eth0"), ("subnet", "s", "2001:db8::%eth0/64")):
        with pytest.raises(InvalidRequest, match="Invalid type for"):
            allocator.allocate(Request(kind, Owner("port", "p"), pool, value=value))
    assert allocator.list() == []


def test_the_local_vlan_of_a_vxlan_cannot_be_chosen(allocator):
    allocator.define(X, {"range": "100-109"})
    with pytest.raises(InvalidRequest, match="Invalid type for vxlan value"):
        allocator.allocate(vxlan("n1", {"vxlan": 100, "vlan": 7}))
    assert allocator.list() == []


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda it: it.pools(5), NotDefined, 'description: "5"'),
        (lambda it: it.pools({}), NotDefined, 'description: "{}"'),
        (lambda it: it.pool(Selector(None, "v")), NotDefined, 'description: "None"'),
        (lambda it: it.hold([vlan()], "5"), InvalidRequest, "ttl_seconds is '5'"),
        (lambda it: it.hold([vlan()], True), InvalidRequest, "ttl_seconds is True"),
        (lambda it: it.get(None), InvalidRequest, "The id of an allocation is a text, not None"),
        (lambda it: it.release(5), InvalidRequest, "The id of an allocation is a text, not 5"),
        (lambda it: it.allocate(vlan(), actor="a" * 256), InvalidRequest, "The actor has 256 characters"),
        (lambda it: it.redefine(V, {}, actor="a\nb"), InvalidRequest, "The actor 'a.*' holds characters"),
    ],
)
def test_a_wrong_argument_is_named(allocator, act, error, text):
    allocator.define(V, {"ranges": "5-9"})
    with pytest.raises(error, match=text):
        act(allocator)
    assert (allocator.list(), allocator.pool(V).generation) == ([], 1)


@pytest.mark.parametrize("children", [False, 0, "", {}])
def test_only_a_list_stands_for_children(allocator, children):
    allocator.define(V, {"ranges": "5-9"})
    request = {"kind": "vlan", "pool": "v", "owner": {"type": "network", "id": "n1"}}
    with pytest.raises(LBaaSError, match="give a list of requests"):
        AllocatorAPI(allocator).allocate([{**request, "children": children}])
    assert allocator.list() == []
    assert AllocatorAPI(allocator).allocate([{**request, "children": None}])


def test_a_request_id_whose_answer_was_given_back_says_so(allocator):
    allocator.define(V, {"ranges": "5-9"})
    grant = allocator.allocate(vlan(), request_id="r1")
    allocator.release(grant.id)
    with pytest.raises(NotAllocated, match=f"Request id 'r1' was answered with {grant.id}, which was given back since"):
        allocator.allocate(vlan(), request_id="r1")


class Wordy(Vlan):
    """A kind of somebody else's, whose domains have names of any length."""

    def define(self, pool: Pool, config: Mapping[str, Any]) -> Definition:
        definition = super().define(pool, {})
        part = replace(definition.main, domain="d" * config["length"])
        return replace(definition, config=dict(config), parts={"": part})


def test_a_kind_cannot_name_a_domain_that_a_store_would_cut_off():
    allocator = ResourceAllocator(MemoryDriver(), {"vlan": Wordy()})
    with pytest.raises(InvalidConfig, match="name of 192 characters; 191 are the most"):
        allocator.define(V, {"length": 192})
    assert allocator.define(V, {"length": 191}).state == "active"
