"""What went wrong elsewhere, each as a test. The numbers are the reports' of the allocator's predecessor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.allocator.core.states import Allocation
from lbaas_scheduler.errors import (
    ConfigurationError,
    DependencyInUse,
    Exhausted,
    InvalidConfig,
    InvalidRequest,
    OutOfRange,
    Overlap,
    PoolBusy,
    PoolExhausted,
    StoreUnavailable,
    Unavailable,
    ValueInUse,
)
from tests.allocator_side import A, R, S, V, X, address, lowest, new_allocator, slot, subnet, vlan, vxlan

BLUE, RED = "tenant:blue", "tenant:red"


def test_8_every_host_sees_the_same_allocations(allocator, driver, clock):
    other = new_allocator(driver, clock)
    allocator.define(V, {"ranges": "1-2"})
    assert {allocator.allocate(vlan("n1")).value, other.allocate(vlan("n2")).value} == {1, 2}
    assert allocator.list() == other.list()


def test_38_local_vlans_do_not_reach_the_uplink(allocator):
    allocator.define(V, {"ranges": "1-10"})
    allocator.define(X, {"range": "1-10"})
    allocator.allocate(vlan("n1", 1))
    local = allocator.allocate(vxlan("n2")).children[0]
    domains = {grant.id: grant for grant in allocator.list()}
    assert domains[local.id].part == "local"
    with pytest.raises(Overlap):
        allocator.define(Selector("vxlan", "y"), {"range": "11-20", "local_network": "default"})


def test_39_two_tenants_never_get_the_same_local_vlan(allocator):
    for scope, numbers in ((BLUE, "1-5"), (RED, "6-10")):
        allocator.define(Selector("vxlan", "x", scope), {"range": numbers})
    grants = [allocator.allocate(vxlan(f"n{number}", scope=scope)) for number in range(5) for scope in (BLUE, RED)]
    assert len({grant.children[0].value for grant in grants}) == 10


def test_46_540_what_goes_takes_everything_with_it(allocator, driver):
    allocator.define(S, {"cidr": "10.0.0.0/16", "alloc_len": 24})
    allocator.define(X, {"range": "1-10"})
    within = subnet("n1")
    allocator.allocate_many([vxlan("n1"), Request("address", Owner("network", "n1"), within=within, options={"gateway": None})])
    allocator.release_owner(Owner("network", "n1"), force=True)
    for selector in (S, X):
        allocator.undefine(selector)
    assert driver.read(Query(Allocation)) == []
    assert allocator.pools() == allocator.check() == []


def test_208_215_giving_back_a_strange_value_is_an_error_with_a_name(allocator):
    allocator.define(X, lowest(range="1000-1009"))
    allocator.allocate(vxlan("n1"))
    for value in (0, 999, 1010, 2**64 - 1):
        with pytest.raises(OutOfRange):
            allocator.release_value(X, value, Owner("network", "n1"))
    assert allocator.release_value(X, 1000, Owner("network", "n1")) == 2


def test_214_a_tag_outside_the_tenants_range_is_refused(allocator):
    allocator.define(Selector("vlan", "v", BLUE), {"ranges": "100-199"})
    with pytest.raises(OutOfRange):
        allocator.allocate(vlan("n1", 200, scope=BLUE))


def test_216_508_a_number_above_4095_is_a_number(allocator):
    allocator.define(X, {"range": "5000-6000"})
    grant = allocator.allocate(vxlan("n1", 5555))
    assert (grant.value, grant.children[0].value <= 4094) == (5555, True)


def test_312_a_burst_is_served_or_refused_for_good_reason(allocator):
    allocator.define(A, {"cidr": "10.1.0.0/26"})

    def take(number):
        try:
            return allocator.allocate(address(f"p{number}")).value
        except PoolExhausted:
            return None

    with ThreadPoolExecutor(8) as threads:
        values = list(threads.map(take, range(70)))
    assert len({value for value in values if value}) == 62
    assert values.count(None) == 8
    assert issubclass(PoolExhausted, Exhausted)
    assert not issubclass(PoolExhausted, Unavailable)


def test_366_997_a_network_counts_what_is_there_and_nothing_else(allocator):
    allocator.define(A, {"cidr": "10.1.0.0/24", "gateway": "10.1.0.1"})
    grant = allocator.allocate(address("p1"))
    with pytest.raises(PoolBusy) as caught:
        allocator.undefine(A)
    assert caught.value.kwargs["count"] == 1, "without the gateway"
    allocator.release(grant.id)
    assert allocator.undefine(A)


def test_375_597_1133_a_failed_creation_leaves_its_vlan_free(allocator):
    allocator.define(V, {"ranges": "5-5"})
    allocator.define(R, {"first": 0, "last": 0})
    allocator.allocate(slot("taken"))
    with pytest.raises(PoolExhausted):
        allocator.allocate(vlan("n1", children=(slot("c1"),)))
    assert allocator.allocate(vlan("n2")).value == 5


def test_379_one_vlan_id_in_several_sites(allocator):
    for site in ("north", "south"):
        allocator.define(Selector("vlan", site), {"ranges": "1-100", "physical_network": site})
        assert allocator.allocate(vlan("n1", 7, pool=site)).value == 7


def test_385_a_store_that_is_away_is_a_class_of_error():
    assert issubclass(StoreUnavailable, Unavailable)
    assert not issubclass(StoreUnavailable, ConfigurationError)


def test_389_726_871_901_958_stale_owners_are_cleared_with_a_trace(allocator):
    allocator.define(A, {"cidr": "10.1.0.0/24"})
    allocator.allocate(address("stale"))
    assert allocator.release_owner(Owner("port", "stale"), force=True, actor="admin") == 1
    event = allocator.history(owner=Owner("port", "stale"))[0]
    assert (event.op, event.actor) == ("release", "admin")
    allocator.undefine(A)


def test_413_ranges_are_shown_in_their_own_numbers(allocator):
    allocator.define(X, lowest(range="10000-10009"))
    allocator.allocate(vxlan("n1"))
    usage = allocator.usage(X)
    assert (usage.allocated, usage.free_ranges) == ("10000", "10001-10009")


def test_440_subnets_of_a_tenant_do_not_overlap(allocator):
    allocator.define(Selector("subnet", "s", BLUE), {"cidr": "10.0.0.0/8"})
    with pytest.raises(Overlap):
        allocator.define(Selector("subnet", "t", BLUE), {"cidr": "10.1.0.0/16"})


def test_456_two_tenants_do_not_share_a_vlan_of_an_interface(allocator):
    allocator.define(Selector("vlan", "v", BLUE), {"ranges": "1-100", "physical_network": "device-1.eth0"})
    with pytest.raises(Overlap):
        allocator.define(Selector("vlan", "v", RED), {"ranges": "100-200", "physical_network": "device-1.eth0"})


def test_547_infrastructure_has_its_addresses_for_itself(allocator):
    allocator.define(A, lowest(cidr="10.1.0.0/29", gateway="10.1.0.1", reserved=["10.1.0.2"]))
    assert allocator.allocate(address("first")).value == "10.1.0.3"
    with pytest.raises(ValueInUse):
        allocator.allocate(address("second", "10.1.0.2"))


def test_710_764_a_group_has_addresses_of_its_own(allocator):
    allocator.define(A, lowest(cidr="10.1.0.0/24"))
    allocator.define(Selector("address", "web"), lowest(cidr="10.1.0.0/24", ranges="10.1.0.10-10.1.0.11", parent="a"))
    assert allocator.allocate(address("p1", pool="web")).value == "10.1.0.10"


def test_797_a_local_vlan_is_taken_only_where_one_is_needed(allocator):
    allocator.define(X, {"range": "1-10", "local_vlan": "none"})
    assert allocator.allocate(vxlan("n1")).children == ()


def test_1165_values_without_a_living_owner_are_reported(allocator, clock):
    allocator.define(A, {"cidr": "10.1.0.0/24"})
    allocator.allocate_many([address(f"p{number}") for number in range(10)])

    def probe(owner):
        return int(owner.id[1:]) >= 4

    allocator.reconcile(probe, dry_run=False)
    clock.forward(4000)
    assert len(allocator.reconcile(probe).leaked) == 4
    assert allocator.usage(A).used == 10


@pytest.mark.parametrize("value", ["2001-2005", "?", "", "auto"])
def test_install_182_183_a_strange_tag_does_not_become_any(allocator, value):
    allocator.define(V, {"ranges": "1-4094"})
    with pytest.raises(InvalidRequest):
        allocator.allocate(vlan("n1", value))


def test_sand_51_uniqueness_comes_from_the_store_and_not_from_a_lock(allocator, driver, clock):
    """Two that know nothing of each other and choose the same way."""
    other = new_allocator(driver, clock)
    allocator.define(X, lowest(range="1-50", local_vlan="none"))

    def take(number):
        return (allocator, other)[number % 2].allocate(vxlan(f"n{number}")).value

    with ThreadPoolExecutor(4) as threads:
        values = list(threads.map(take, range(30)))
    assert len(set(values)) == 30


def test_a_partial_definition_does_not_stay(allocator):
    """A tenant's pools were defined one after the other; the refused one left those before it, and the retry failed on them."""
    allocator.define(V, {"ranges": "1-4000"})
    with pytest.raises(InvalidConfig):
        allocator.define(X, {"range": "1-4095"})
    allocator.define(V, {"ranges": "1-4000"})
    allocator.define(X, {"range": "1-4094"})


def test_a_dependent_subnet_is_not_pulled_away(allocator):
    allocator.define(S, {"cidr": "10.0.0.0/24"})
    grant = allocator.allocate(Request("address", Owner("port", "p1"), within=subnet("n1")))
    with pytest.raises(DependencyInUse):
        allocator.release(grant.within.id)
