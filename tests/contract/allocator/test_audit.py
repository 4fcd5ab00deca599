"""The audit finds what somebody did to the rows by hand, or a bug did: each rule on its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.requests import Selector
from lbaas_scheduler.allocator.core.states import Allocation, Claim, Pool
from tests.allocator_side import A, S, V, X, address, lowest, new_allocator, subnet, vlan, vxlan

W = Selector("vlan", "w")


@pytest.fixture
def used(allocator):
    """Something of everything, and all of it in order."""
    allocator.define(V, lowest(ranges="1-9"))
    allocator.define(W, lowest(ranges="10-19"))
    allocator.define(X, lowest(range="1-8", local_network="default", local_vlans="20-29"))
    allocator.define(Selector("vxlan", "y"), lowest(range="11-12", local_network="default", local_vlans="20-29"))
    allocator.define(S, lowest(cidr="10.0.0.0/16", alloc_len=24))
    allocator.define(A, lowest(cidr="10.1.0.0/24", gateway="10.1.0.1"))
    allocator.define(Selector("address", "web"), lowest(cidr="10.1.0.0/24", ranges="10.1.0.9-10.1.0.20", parent="a"))
    allocator.allocate_many([vlan(), vxlan(), address(), subnet("n2"), address("p2", pool="", within=subnet("n1"))])
    assert allocator.check() == []
    return allocator


def tamper(driver, found, **values):
    txn = driver.begin()
    if values:
        txn.replace(found, replace(found.state, **values))
    else:
        txn.delete(found)
    txn.commit()


def first(driver, cls, **where):
    return driver.read(Query(cls, where=tuple(where.items())))[0]


@pytest.mark.parametrize(
    ("rules", "find", "values"),
    [
        (["out_of_range"], {"cls": Allocation, "kind": "vlan"}, {"pool": W}),
        (["wrong_domain"], {"cls": Pool, "name": "v"}, {"config": {"ranges": "1-9", "physical_network": "q"}}),
        (["missing_part"], {"cls": Pool, "name": "x"}, {"config": {"range": "1-9", "local_vlan": "none"}}),
        (["duplicate"], {"cls": Pool, "name": "s"}, {"config": {"cidr": "10.0.0.0/16", "alloc_len": 23}}),
        (["overlap"], {"cls": Pool, "name": "web"}, {"scope": "tenant:t"}),
        (["bad_definition"], {"cls": Pool, "name": "v"}, {"config": {"ranges": "all"}}),
        (["no_subnet", "lost"], {"cls": Allocation, "owner_id": "n1", "kind": "subnet"}, {}),
        (["no_claim"], {"cls": Claim, "lo": f"{1:032x}", "domain": "physnet:default/vlan"}, {}),
        (["cycle"], {"cls": Allocation, "kind": "vlan"}, {"parent": "itself"}),
        (["no_parent"], {"cls": Allocation, "kind": "vlan"}, {"parent_id": "gone"}),
        (["lost"], {"cls": Allocation, "kind": "vlan"}, {}),
    ],
    ids=lambda it: it[0] if isinstance(it, list) else "",
)
def test_what_is_wrong_is_found(used, driver, clock, rules, find, values):
    find = dict(find)
    found = first(driver, find.pop("cls"), **find)
    if "pool" in values:
        values = {"pool_id": used.pool(values["pool"]).id}
    if "parent" in values:
        values = {"parent_id": found.state.id}
    if "scope" in values:
        tamper(driver, found)
        txn = driver.begin()
        txn.insert(replace(found.state, config={**found.state.config, "address_scope": "cluster", "parent": ""}, **values))
        txn.commit()
    else:
        tamper(driver, found, **values)
    seen = {finding.rule for finding in new_allocator(driver, clock).check()}
    assert set(rules) <= seen
    assert all(finding.text for finding in used.check())


def test_what_was_given_back_and_is_there_again_is_found(used, driver):
    stored = first(driver, Allocation, kind="vlan")
    used.release(stored.state.id)
    txn = driver.begin()
    txn.insert(stored.state)
    txn.commit()
    assert [(finding.rule, finding.text) for finding in used.check()] == [
        ("released", "vlan 1 of network n1 was given back, and is there")
    ]
