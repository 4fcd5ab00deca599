"""Cases 21-27, 51-52, 54-55, 67-70, 82, 89, 91, 93, 96."""

from __future__ import annotations

import pytest

from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.requests import Owner, Selector
from lbaas_scheduler.allocator.core.states import Allocation, Claim, Pool
from lbaas_scheduler.errors import (
    InvalidConfig,
    InvalidRequest,
    NotAllocated,
    OutOfRange,
    Overlap,
    PoolBusy,
    PoolExhausted,
    ValueInUse,
)
from tests.allocator_side import V, X, lowest, vlan, vxlan


def pair(grant):
    return grant.value, grant.children[0].value


def test_case_21_22_defined_whole_and_removed_whole(allocator, driver):
    allocator.define(X, {"range": "7-7", "local_vlans": "3-3"})
    assert [stored.state.domain for stored in driver.read(Query(Claim))] == ["underlay:default/lvlan", "underlay:default/vni"]
    allocator.undefine(X)
    assert driver.read(Query(Pool)) == driver.read(Query(Claim)) == []


def test_case_23_24_26_a_pair_is_given_refused_and_comes_back(allocator, driver):
    allocator.define(X, {"range": "7-7", "local_vlans": "3-4"})
    grant = allocator.allocate(vxlan("n1"))
    assert pair(grant) in ((7, 3), (7, 4))
    stored = driver.read(Query(Allocation))
    assert len(stored) == 2
    with pytest.raises(PoolExhausted) as caught:
        allocator.allocate(vxlan("n2"))
    assert caught.value.message == "no vxlans available"
    assert allocator.release(grant.id, grant.generation) == 2
    assert driver.read(Query(Allocation)) == []


def test_case_25_without_a_local_vlan_no_vxlan_is_taken(allocator):
    allocator.define(X, {"range": "1-10", "local_vlans": "3-3", "capacity_check": "lazy"})
    allocator.allocate(vxlan("n1"))
    with pytest.raises(PoolExhausted) as caught:
        allocator.allocate(vxlan("n2"))
    assert caught.value.message == "no local vlans available"
    assert allocator.usage(X).used == 1
    assert len(allocator.list()) == 2


def test_case_27_numbers_and_local_vlans(allocator):
    allocator.define(X, lowest(range="1-148", local_vlans="1-18", capacity_check="lazy"))
    grants = [allocator.allocate(vxlan(f"n{number}", number)) for number in (1, 100, 101)]
    assert (allocator.usage(X).used, allocator.usage(X).allocated) == (3, "1, 100-101")
    assert [pair(grant)[1] for grant in grants] == [1, 2, 3]


def test_case_51_52_numbers_beyond_4095_with_vlans_beside_them(allocator):
    allocator.define(V, lowest(ranges="100-400,500-900"))
    allocator.define(X, lowest(range="10000-11000"))
    allocator.define(Selector("vxlan", "y"), lowest(range="11111-13000"))
    assert allocator.allocate(vlan()).value == 100
    assert pair(allocator.allocate(vxlan())) == (10000, 1)
    assert allocator.allocate(vxlan("n2", pool="y")).value == 11111


def test_case_54_given_and_freed(allocator):
    allocator.define(X, {"range": "15000-17000"})
    grant = allocator.allocate(vxlan())
    assert 0 not in pair(grant)
    assert allocator.release(grant.id) == 2


def test_case_55_no_local_vlan_is_left(allocator):
    allocator.define(V, {"ranges": "1-4094"})
    with pytest.raises(InvalidConfig) as caught:
        allocator.define(X, {"range": "10000-10001", "local_network": "default"})
    assert caught.value.message == "Available free local vlans (0) is less than possible vxlans (2)"
    assert [pool.kind for pool in allocator.pools()] == ["vlan"]


def test_the_range_must_find_a_local_vlan_for_each_number_off_by_none(allocator):
    with pytest.raises(InvalidConfig, match=r"Available free local vlans \(10\) is less than possible vxlans \(11\)"):
        allocator.define(X, {"range": "1-11", "local_vlans": "1-10"})
    allocator.define(X, {"range": "1-10", "local_vlans": "1-10"})


def test_local_vlans_are_promised_once(allocator):
    """The predecessor gave two tenants the same ones."""
    allocator.define(X, {"range": "1-6", "local_vlans": "1-10"})
    with pytest.raises(InvalidConfig, match=r"\(4\) is less than possible vxlans \(5\)"):
        allocator.define(Selector("vxlan", "y"), {"range": "11-15", "local_vlans": "1-10"})
    allocator.define(Selector("vxlan", "y"), {"range": "11-14", "local_vlans": "1-10"})
    grants = [allocator.allocate(vxlan(f"n{number}")) for number in range(6)]
    grants += [allocator.allocate(vxlan(f"m{number}", pool="y")) for number in range(4)]
    assert sorted(pair(grant)[1] for grant in grants) == list(range(1, 11))


def test_a_pool_that_promises_nothing_counts_by_what_it_took_or_not_at_all(allocator):
    words, y = {"local_vlans": "1-10"}, Selector("vxlan", "y")
    for policy, free in (("lazy", 7), ("off", 10)):
        allocator.define(y, {"range": "101-200", "capacity_check": policy, **words})
        for number in range(3):
            allocator.allocate(vxlan(f"n{number}", pool="y"))
        with pytest.raises(InvalidConfig, match=rf"\({free}\) is less than possible vxlans \({free + 1}\)"):
            allocator.define(X, {"range": f"1-{free + 1}", **words})
        allocator.define(X, {"range": f"1-{free}", **words})
        for pool in (X, y):
            allocator.undefine(pool, force=True)


def test_local_vlans_stay_apart_from_the_uplinks(allocator):
    allocator.define(V, {"ranges": "100-200"})
    with pytest.raises(Overlap):
        allocator.define(X, {"range": "1-10", "local_network": "default"})
    allocator.define(X, {"range": "1-10", "local_network": "default", "local_vlans": "1-99"})
    with pytest.raises(Overlap):
        allocator.redefine(V, {"ranges": "99-200"})


@pytest.mark.parametrize("text", ["10000-16000", "1-16001"])
def test_case_67_one_range_is_fine(allocator, text):
    allocator.define(X, {"range": text, "capacity_check": "lazy"})


@pytest.mark.parametrize(
    "text", ["10000-16000, 17000-18000", "101-75535", "8000-7999", "1-100000", "1-20000", "0-10", "", "5", "abcd"]
)
def test_cases_68_69_70_93_a_wrong_range_is_refused(allocator, text):
    with pytest.raises(InvalidConfig, match="Invalid vxlan resource config: range"):
        allocator.define(X, {"range": text, "capacity_check": "lazy"})
    assert allocator.pools() == []


def test_numbers_without_local_vlans_go_up_to_24_bits(allocator):
    allocator.define(X, {"range": f"1-{2**24 - 1}", "local_vlan": "none"})
    assert allocator.allocate(vxlan("n1", 2**24 - 1)).children == ()
    assert 1 <= allocator.allocate(vxlan("n2")).value < 2**24
    with pytest.raises(InvalidConfig):
        allocator.define(Selector("vxlan", "y"), {"range": f"1-{2**24}", "local_vlan": "none", "underlay": "other"})


def test_local_vlans_per_host_are_each_hosts_own(allocator):
    allocator.define(X, lowest(range="1-100", local_vlan="per_host", local_vlans="1-2"))
    assert pair(allocator.allocate(vxlan("n1", host="a"))) == (1, 1)
    assert pair(allocator.allocate(vxlan("n2", host="b"))) == (2, 1)
    assert pair(allocator.allocate(vxlan("n3", host="a"))) == (3, 2)
    assert allocator.allocate(vxlan("n4")).children == ()
    with pytest.raises(PoolExhausted, match="no local vlans available"):
        allocator.allocate(vxlan("n5", host="a"))
    assert pair(allocator.allocate(vxlan("n1", host="b"))) == (1, 2), "the same number, on another host"
    assert allocator.usage(X).used == 4


def test_case_82_a_requested_number_must_be_in_the_range(allocator):
    allocator.define(X, {"range": "1001-2000"})
    for number in (2001, 3001):
        with pytest.raises(OutOfRange) as caught:
            allocator.allocate(vxlan("n1", number))
        assert caught.value.message == "requested vxlan not available"
    with pytest.raises(OutOfRange) as below:
        allocator.allocate(vxlan("n1", 1000))
    assert below.value.message == "requested vxlan is out of range"
    assert allocator.allocate(vxlan("n1", 2000)).value == 2000
    with pytest.raises(ValueInUse) as taken:
        allocator.allocate(vxlan("n2", 2000))
    assert taken.value.message == "requested vxlan not available"


def test_case_89_a_range_is_changed_while_it_is_in_use(allocator):
    allocator.define(X, lowest(range="1-4000"))
    locals_ = [pair(allocator.allocate(vxlan(f"n{number}", number)))[1] for number in (1000, 1001, 2000)]
    allocator.redefine(X, lowest(range="1000-2500"))
    with pytest.raises(ValueInUse):
        allocator.redefine(X, lowest(range="2000-5000"))
    locals_.append(pair(allocator.allocate(vxlan("n4", 2200)))[1])
    with pytest.raises(ValueInUse, match=r"^2200 "):
        allocator.redefine(X, lowest(range="1000-2000"))
    assert locals_ == [1, 2, 3, 4]
    assert allocator.usage(X).allocated == "1000-1001, 2000, 2200"


def test_case_91_numbers_and_their_local_vlans_in_order(allocator):
    allocator.define(X, lowest(range="1-2000"))
    assert pair(allocator.allocate(vxlan("n1"))) == (1, 1)
    assert pair(allocator.allocate(vxlan("n2"))) == (2, 2)
    assert pair(allocator.allocate(vxlan("n3", 1000))) == (1000, 3)


def test_case_96_what_a_network_in_use_depends_on_does_not_change(allocator):
    allocator.define(X, {"range": "1-100"})
    grant = allocator.allocate(vxlan())
    with pytest.raises(PoolBusy) as caught:
        allocator.redefine(X, {"range": "1-100", "underlay": "other"})
    assert caught.value.message == "Unable to update vxlan pool 'x' due to existing 1 vxlans"
    allocator.release(grant.id)
    allocator.redefine(X, {"range": "1-100", "underlay": "other"})
    allocator.define(Selector("vxlan", "y"), {"range": "1-100"})


def test_a_wrong_pair_cannot_be_given_back(allocator):
    allocator.define(X, lowest(range="1-100"))
    owner = Owner("network", "n1")
    allocator.allocate(vxlan("n1"))
    with pytest.raises(NotAllocated, match="vxlan 1 has no local vlan 2"):
        allocator.release_value(X, {"vxlan": 1, "vlan": 2}, owner)
    for wrong in ({"vxlan": 1}, "1", None):
        with pytest.raises(InvalidRequest, match="Invalid type for vxlan-vlan pair"):
            allocator.release_value(X, wrong, owner)
    assert allocator.release_value(X, {"vxlan": 1, "vlan": 1}, owner) == 2


def test_a_value_outside_the_range_given_back_neither_fails_strangely_nor_grows_the_pool(allocator):
    """The predecessor computed 1 − 1000 = 2^64 − 999 and panicked."""
    allocator.define(X, lowest(range="1000-1099"))
    for number in (1, 999, 1100, 2**63):
        with pytest.raises(OutOfRange):
            allocator.release_value(X, number, Owner("network", "n1"))
    assert allocator.usage(X).total == 100


def test_local_vlans_are_narrowed_around_those_in_use(allocator):
    """Beside another pool's in the same domain, which do not count."""
    lazy = lowest(range="1-10", local_vlans="1-18", capacity_check="lazy")
    allocator.define(X, lazy)
    allocator.define(Selector("vxlan", "y"), {**lazy, "range": "11-20"})
    allocator.allocate(vxlan("mine"))
    allocator.allocate(vxlan("theirs", pool="y"))
    last = allocator.allocate(vxlan("last"))
    assert [child.value for child in last.children] == [3]

    with pytest.raises(ValueInUse, match="3 of vxlan pool 'x' would be outside but is in use"):
        allocator.redefine(X, {**lazy, "local_vlans": "1-1"})
    allocator.release(last.id)
    allocator.redefine(X, {**lazy, "local_vlans": "1-1"})
    with pytest.raises(PoolExhausted, match="no local vlans available"):
        allocator.allocate(vxlan("last"))


def test_local_vlans_of_hosts_are_narrowed_when_none_is_in_use(allocator):
    per_host = lowest(range="1-10", local_vlan="per_host", local_vlans="1-9")
    allocator.define(X, per_host)
    grant = allocator.allocate(vxlan(host="h1"))
    with pytest.raises(ValueInUse, match="would be outside but is in use"):
        allocator.redefine(X, {**per_host, "local_vlans": "1-5"})
    allocator.release(grant.id)
    allocator.redefine(X, {**per_host, "local_vlans": "1-5"})


def test_a_range_is_narrowed_around_the_numbers_in_use(allocator):
    whole = lowest(range="1-20", local_vlans="1-20")
    allocator.define(X, whole)
    allocator.allocate(vxlan("low"))
    allocator.allocate(vxlan("high", 15))
    with pytest.raises(ValueInUse, match="15 of vxlan pool 'x' would be outside but is in use"):
        allocator.redefine(X, {**whole, "range": "1-10"})
    allocator.redefine(X, {**whole, "range": "1-15"})
