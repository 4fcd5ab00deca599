"""Several requests of one transaction that meet: in one subnet, in one slot, in one tree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbaas_scheduler.allocator.core.requests import Owner, Request
from lbaas_scheduler.errors import InvalidRequest
from tests.allocator_side import S, V, X, lowest, new_allocator, vlan, vxlan

SUBNET = Request("subnet", Owner("network", "n1"), "s")
OPTIONS = {"gateway": "10.0.0.1", "pick": "lowest"}


def inside(owner: str, **more: object) -> Request:
    return Request("address", Owner("vip", owner), within=SUBNET, options=OPTIONS, **more)


def test_two_addresses_share_the_subnet_that_comes_with_them(allocator):
    allocator.define(S, lowest(cidr="10.0.0.0/16", alloc_len=24))
    nested = inside("vip-1", children=(inside("vip-2"),))
    *three, subnet = allocator.allocate_many([nested, inside("vip-3"), SUBNET])
    values = [three[0].value, three[0].children[0].value, three[1].value]
    assert sorted(values) == ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
    assert {it.within.id for it in (*three, three[0].children[0])} == {subnet.id}
    assert [pool.parent_allocation_id for pool in allocator.pools("address")] == [subnet.id]
    again = allocator.allocate_many([nested, inside("vip-3"), SUBNET])
    assert [it.created for it in again] == [False] * 3
    assert (len(allocator.list()), allocator.check()) == (5, [])


def test_the_subnet_is_there_and_its_addresses_are_not(allocator):
    allocator.define(S, lowest(cidr="10.0.0.0/16", alloc_len=24))
    subnet = allocator.allocate(SUBNET)
    found = allocator.allocate_many([inside("vip-1"), inside("vip-2")])
    assert {it.within.id for it in found} == {subnet.id}
    assert len(allocator.pools("address")) == 1


def test_the_same_request_twice_gets_the_same_value(allocator):
    allocator.define(V, lowest(ranges="5-9"))
    one, other = allocator.allocate_many([vlan("n1"), vlan("n1")], request_id="r1")
    assert (one.id, one.value) == (other.id, 5)
    assert [it.id for it in allocator.allocate_many([vlan("n1"), vlan("n1")], request_id="r1")] == [one.id, one.id]
    assert allocator.usage(V).used == 1


@pytest.mark.parametrize(
    "requests",
    [
        [vlan("n1", 5), vlan("n1", 6)],
        [vlan("n1"), vlan("n1", tenant_id="anne")],
        [vlan("n1", children=(vlan("n1"),))],
        [vlan("n2", children=(vlan("n1"),)), vlan("n1")],
        [inside("vip-1"), replace(SUBNET, value="10.0.7.0/24")],
    ],
    ids=["values", "tenants", "itself", "parents", "subnets"],
)
def test_two_different_wishes_for_one_slot_are_refused_in_words(allocator, requests):
    allocator.define(V, lowest(ranges="5-9"))
    allocator.define(S, lowest(cidr="10.0.0.0/16", alloc_len=24))
    with pytest.raises(InvalidRequest, match=r"network n1 asks twice for slot '' of (vlan|subnet) pool '[vs]'; give"):
        allocator.allocate_many(requests)
    assert allocator.list() == []


@pytest.mark.parametrize("before", ["shared", "per_host", "none"])
@pytest.mark.parametrize("after", ["shared", "per_host", "none"])
def test_local_vlans_follow_the_definition_that_holds_and_not_the_one_remembered(allocator, driver, clock, before, after):
    other = new_allocator(driver, clock)
    allocator.define(X, lowest(range="100-109", local_vlan=before))
    other.release(other.allocate(vxlan("n1", host="h1")).id)
    allocator.redefine(X, lowest(range="100-109", local_vlan=after, quarantine_seconds=1))
    grant = other.allocate(vxlan("n2", host="h1"))
    assert [child.part for child in grant.children] == ([] if after == "none" else ["local"])
    allocator.redefine(X, lowest(range="100-108", local_vlan=after, quarantine_seconds=1))
    assert allocator.check() == []


def test_what_another_one_took_by_a_newer_definition_can_be_given_back(allocator, driver, clock):
    other = new_allocator(driver, clock)
    allocator.define(X, lowest(range="100-109", local_vlan="none"))
    other.release(other.allocate(vxlan("n1")).id)
    allocator.redefine(X, lowest(range="100-109"))
    grant = allocator.allocate(vxlan("n2"))
    assert other.release(grant.id) == 2
    assert (allocator.list(), allocator.check()) == ([], [])
