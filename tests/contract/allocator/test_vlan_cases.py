"""Cases 15-20, 48-56, 58, 62-66, 82-83, 88, 90, 92-94 of vlan and vxlan."""

from __future__ import annotations

import pytest

from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.requests import Owner, Selector
from lbaas_scheduler.allocator.core.states import Allocation, Claim, Pool
from lbaas_scheduler.errors import InvalidConfig, InvalidRequest, OutOfRange, Overlap, PoolExhausted, ValueInUse
from tests.allocator_side import R, V, X, lowest, slot, vlan, vxlan


def test_case_15_16_a_definition_is_written_whole_and_removed_whole(allocator, driver):
    allocator.define(V, {"ranges": "1-1"})
    assert [(pool.state.name, pool.state.config["ranges"]) for pool in driver.read(Query(Pool))] == [("v", "1-1")]
    assert len(driver.read(Query(Claim))) == 1
    allocator.undefine(V)
    assert driver.read(Query(Pool)) == driver.read(Query(Claim)) == driver.read(Query(Allocation)) == []


def test_case_17_18_19_the_only_value_is_given_refused_and_given_again(allocator):
    allocator.define(V, {"ranges": "7-7"})
    grant = allocator.allocate(vlan("n1"))
    assert grant.value == 7
    with pytest.raises(PoolExhausted) as caught:
        allocator.allocate(vlan("n2"))
    assert caught.value.message == "no vlans available"
    assert [grant.owner.id for grant in allocator.list()] == ["n1"]
    allocator.release(grant.id)
    assert allocator.allocate(vlan("n2")).value == 7


def test_zero_is_a_value_and_none_means_any(allocator):
    """Of a fifth kind: 0 is reserved among VLANs."""
    allocator.define(R, {"first": 0, "last": 3})
    assert allocator.allocate(slot("c1", 0)).value == 0
    assert allocator.allocate(slot("c2", None)).value == 1
    with pytest.raises(ValueInUse):
        allocator.allocate(slot("c3", 0))


def test_case_20_values_in_use_are_listed_as_people_write_them(allocator):
    allocator.define(V, {"ranges": "1-19"})
    allocator.allocate_many([vlan("n1", 1), vlan("n2", 2), vlan("n3", 19)])
    usage = allocator.usage(V)
    assert (usage.used, usage.allocated) == (3, "1-2, 19")
    assert (usage.free, usage.free_ranges, usage.total) == (16, "3-18", 19)


def test_case_48_no_range_stands_for_all(allocator):
    allocator.define(V, lowest(ranges=""))
    assert allocator.allocate(vlan()).value == 1
    assert allocator.usage(V).total == 4094


def test_case_49_several_ranges_begin_with_the_first(allocator):
    allocator.define(V, lowest(ranges="200-300,1000-1500"))
    assert allocator.allocate(vlan()).value == 200
    assert allocator.usage(V).total == 602


def test_case_50_where_only_vxlans_are_defined_no_vlan_is_given(allocator):
    allocator.define(X, lowest(range="10000-10099"))
    grant = allocator.allocate(vxlan())
    assert grant.value == 10000
    assert grant.children[0].value == 1
    with pytest.raises(Exception, match='No resource found for description: "vlan"'):
        allocator.allocate(vlan())


def test_case_53_given_and_freed(allocator):
    allocator.define(V, lowest(ranges="1-10"))
    grant = allocator.allocate(vlan())
    assert grant.value == 1
    assert allocator.release(grant.id, grant.generation) == 1


@pytest.mark.parametrize(
    "ranges",
    ["1-5000", "0-4094", "1", "1?2", "abcd", "5--100, 101-200", "5-100, 101-5000", "200-101", "5-100,,101-200",
     "100-400,900-500", "100", "1-10, 5-20", "1-4095", " ", "1-2;3-4", "١-٢", "1 - 2"],
)  # fmt: skip
def test_cases_56_58_63_to_66_93_a_wrong_range_is_refused_and_nothing_is_written(allocator, ranges):
    with pytest.raises(InvalidConfig, match="Invalid vlan resource config: ranges"):
        allocator.define(V, {"ranges": ranges})
    assert allocator.pools() == []
    assert allocator.history() == []


def test_case_62_neighbouring_ranges_are_fine(allocator):
    allocator.define(V, {"ranges": "5-100, 101-200"})
    assert allocator.usage(V).total == 196


def test_case_83_a_requested_value_must_be_in_the_range_and_free(allocator):
    allocator.define(V, {"ranges": "11-1000"})
    for number in (1200, 1501, 10, 0):
        with pytest.raises(OutOfRange) as caught:
            allocator.allocate(vlan("n1", number))
        assert caught.value.message == f"requested vlan not available - vlan:{number}"
    assert allocator.allocate(vlan("n1", 12)).value == 12
    with pytest.raises(ValueInUse) as taken:
        allocator.allocate(vlan("n2", 12))
    assert taken.value.message == "requested vlan not available - vlan:12"


@pytest.mark.parametrize("value", ["12", "2001-2005", "?", "", 1.5, True, -1, [12], {"vlan": 1}])
def test_what_is_no_number_is_not_taken_for_any(allocator, value):
    allocator.define(V, {"ranges": "11-1000"})
    with pytest.raises(InvalidRequest, match="Invalid type for vlan value"):
        allocator.allocate(vlan("n1", value))
    assert allocator.list() == []


def test_case_88_a_range_is_changed_while_it_is_in_use(allocator):
    allocator.define(V, {"ranges": "1-1000"})
    allocator.allocate_many([vlan("n1", 10), vlan("n2", 11), vlan("n3", 300)])
    allocator.redefine(V, {"ranges": "9-301"})
    for ranges, inside in (("50-301", "10-11"), ("1-200", "300")):
        with pytest.raises(ValueInUse, match=rf"^{inside} of vlan pool 'v' would be outside but is in use"):
            allocator.redefine(V, {"ranges": ranges})
    allocator.redefine(V, {"ranges": "1-800"})
    assert allocator.allocate(vlan("n4", 700)).value == 700
    with pytest.raises(ValueInUse):
        allocator.allocate(vlan("n5", 10))
    with pytest.raises(OutOfRange):
        allocator.allocate(vlan("n5", 802))


def test_several_ranges_are_judged_one_by_one_at_a_resize(allocator):
    """The predecessor looked at the first range and at the smallest and largest value in use only."""
    allocator.define(V, {"ranges": "1-100, 200-300"})
    allocator.allocate_many([vlan("n1", 50), vlan("n2", 250)])
    allocator.redefine(V, {"ranges": "40-60, 240-260"})
    with pytest.raises(ValueInUse, match=r"^250 "):
        allocator.redefine(V, {"ranges": "40-60, 251-260"})


def test_what_is_outside_after_a_draining_resize_is_kept_until_it_is_given_back(allocator):
    allocator.define(V, {"ranges": "1-100"})
    kept, _ = allocator.allocate_many([vlan("n1", 99), vlan("n2", 5)])
    allocator.redefine(V, {"ranges": "1-50"}, drain=True)
    assert [finding.rule for finding in allocator.check()] == ["out_of_range"]
    assert allocator.get(kept.id).value == 99
    allocator.release(kept.id)
    assert allocator.check() == []
    with pytest.raises(OutOfRange):
        allocator.allocate(vlan("n1", 99))


def test_case_90_the_same_tag_again_after_its_network_is_gone(allocator):
    allocator.define(X, lowest(range="1-2000"))
    first = allocator.allocate(vxlan("n1", 1000))
    allocator.release_owner(Owner("network", "n1"))
    again = allocator.allocate(vxlan("n1", 1000))
    assert again.value == 1000
    assert again.children[0].value == first.children[0].value


def test_case_92_the_same_tag_twice(allocator):
    allocator.define(V, {"ranges": "1-100"})
    allocator.allocate(vlan("n1", 5))
    with pytest.raises(ValueInUse):
        allocator.allocate(vlan("n2", 5))
    with pytest.raises(ValueInUse):
        allocator.allocate_many([vlan("n3", 6), vlan("n4", 6)])
    assert [grant.value for grant in allocator.list()] == [5]


def test_case_94_what_was_cut_off_is_not_given(allocator):
    allocator.define(V, {"ranges": "1-4094"})
    allocator.define(X, {"range": "1-2500"})
    allocator.redefine(V, {"ranges": "100-1000"})
    allocator.redefine(X, {"range": "1001-2000"})
    for request in (vlan("n1", 99), vlan("n1", 1001), vxlan("n1", 1000), vxlan("n1", 2001)):
        with pytest.raises(OutOfRange):
            allocator.allocate(request)


def test_overlapping_ranges_in_one_physical_network_are_refused_whoever_asks(allocator):
    blue, red = Selector("vlan", "v", "tenant:blue"), Selector("vlan", "v", "tenant:red")
    allocator.define(blue, {"ranges": "100-200"})
    with pytest.raises(Overlap, match=r"overlaps vlan pool 'tenant:blue/v' at 200, both in physnet:default/vlan"):
        allocator.define(red, {"ranges": "200-300"})
    allocator.define(red, {"ranges": "201-300"})
    with pytest.raises(Overlap):
        allocator.redefine(red, {"ranges": "150-300"})


def test_the_same_tag_serves_two_sites(allocator):
    allocator.define(V, {"ranges": "100-200", "physical_network": "north"})
    allocator.define(Selector("vlan", "w"), {"ranges": "100-200", "physical_network": "south"})
    assert allocator.allocate(vlan("n1", 150)).value == 150
    assert allocator.allocate(vlan("n1", 150, pool="w")).value == 150
