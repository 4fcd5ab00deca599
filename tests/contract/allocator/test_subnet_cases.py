"""Cases 28-32, 57, 59, 73, 85-87, 95, 97 and dual stack: subnets and addresses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from lbaas_scheduler.allocator.core.requests import Owner, Selector
from lbaas_scheduler.errors import (
    InvalidConfig,
    InvalidRequest,
    OutOfRange,
    Overlap,
    PoolBusy,
    PoolExhausted,
    ValueInUse,
)
from tests.allocator_side import A, S, address, lowest, subnet

HOST_BITS = "has host bits set"


def test_case_28_30_31_32_a_pool_of_one_subnet(allocator):
    allocator.define(S, {"cidr": "1.2.3.0/24", "alloc_len": 24})
    grant = allocator.allocate(subnet("n1"))
    assert grant.value == "1.2.3.0/24"
    with pytest.raises(PoolExhausted) as caught:
        allocator.allocate(subnet("n2"))
    assert caught.value.message == "no subnets available."
    allocator.release(grant.id)
    assert allocator.allocate(subnet("n2")).value == "1.2.3.0/24"


def test_case_29_undefined_again(allocator):
    allocator.define(S, {"cidr": "1.2.3.0/24"})
    assert allocator.undefine(S)
    assert allocator.pools() == []


def test_subnets_of_a_pool_lie_side_by_side(allocator):
    allocator.define(S, lowest(cidr="11.1.0.0/16", alloc_len=24))
    values = [allocator.allocate(subnet(f"n{number}")).value for number in range(6)]
    assert values == [f"11.1.{number}.0/24" for number in range(6)]
    usage = allocator.usage(S)
    assert (usage.total, usage.used, usage.free) == (256, 6, 250)
    assert usage.allocated == "11.1.0.0/24-11.1.5.0/24"
    assert allocator.allocate(subnet("n9", "11.1.200.0/24")).value == "11.1.200.0/24"
    for value, error, text in (
        ("11.1.201.0/25", InvalidRequest, "Invalid subnet length. Exp: 24 Rcvd: 25"),
        ("11.1.201.1/24", InvalidRequest, "Invalid type for subnet value"),
        (24, InvalidRequest, "Invalid type for subnet value"),
        ("11.2.0.0/24", OutOfRange, "requested subnet not available"),
        ("11.1.5.0/24", ValueInUse, "requested subnet not available"),
    ):
        with pytest.raises(error, match=text):
            allocator.allocate(subnet("n10", value))


def test_subnets_are_given_back_by_value_in_their_own_length_only(allocator):
    allocator.define(S, lowest(cidr="11.1.0.0/16", alloc_len=24))
    allocator.allocate(subnet("n1"))
    owner = Owner("network", "n1")
    with pytest.raises(InvalidRequest) as caught:
        allocator.release_value(S, "11.1.0.0/25", owner)
    assert caught.value.message == "Invalid subnet length. Exp: 24 Rcvd: 25"
    with pytest.raises(InvalidRequest, match="Invalid type for subnet value"):
        allocator.release_value(S, "11.1.0.5/24", owner)
    assert allocator.release_value(S, "11.1.0.0/24", owner) == 1


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"cidr": "10.0.0.0/22", "alloc_len": 20}, "^AllocSubnetLen should be greater than or equal to SubnetPoolLen$"),
        ({"cidr": "11..5.0.0/16"}, "cidr"),
        ({"cidr": "10.0.0.1/16"}, HOST_BITS),
        ({"cidr": "10.0.0.0/33"}, "cidr"),
        ({"cidr": "10.0.0.0"}, "is no prefix"),
        ({"cidr": "0.0.0.0/0"}, "is everything"),
        ({"cidr": "10.0.0.0/16", "alloc_len": 33}, "alloc_len"),
        ({"cidr": "10.0.0.0/16", "alloc_len": "24"}, "alloc_len"),
        ({"cidr": "10.0.0.0/16", "alloc_len": True}, "alloc_len"),
        ({"cidr": None}, "cidr"),
        ({}, "cidr"),
    ],
)
def test_cases_57_59_a_wrong_pool_is_refused(allocator, config, text):
    with pytest.raises(InvalidConfig, match=text):
        allocator.define(S, config)
    assert allocator.pools() == []


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"cidr": "10.1.1.0/24", "gateway": "10.1.2.1"}, "gateway 10.1.2.1 is no host of 10.1.1.0/24"),
        ({"cidr": "10.1.1.0/24", "gateway": "10.1.1.255"}, "gateway 10.1.1.255 is no host"),
        ({"cidr": "10.1.1.0/24", "gateway": "10.1.1.0"}, "gateway 10.1.1.0 is no host"),
        ({"cidr": "10.1.1.0/24", "gateway": "fe80::1"}, "no host"),
        ({"cidr": "10.1.1.7/32"}, "single address"),
        ({"cidr": "2001:db8::7/128"}, "single address"),
        ({"cidr": "10.1.1.0/24", "ranges": "10.1.1.10-20/24"}, "is no IP address"),
        ({"cidr": "10.1.1.0/24", "ranges": "10.1.1.100-10.1.1.10"}, "is reversed"),
        ({"cidr": "10.1.1.0/26", "ranges": "10.1.1.10-10.1.1.100"}, "leaves 10.1.1.1-10.1.1.62"),
        ({"cidr": "10.1.1.0/24", "ranges": "10.1.1.1-10.1.1.9,10.1.1.9-10.1.1.20"}, "overlap at 10.1.1.9"),
        ({"cidr": "10.1.1.0/24", "reserved": "10.1.1.1"}, "give a list"),
        ({"cidr": "10.1.1.0/24", "gateway": "10.1.1.1", "reserved": ["10.1.1.1"]}, "given twice"),
        ({"cidr": "10.1.1.3/24"}, HOST_BITS),
        ({"cidr": "10.1.1.0/24", "address_scope": "a/b"}, "address_scope"),
    ],
)
def test_case_95_a_wrong_network_is_refused(allocator, config, text):
    with pytest.raises(InvalidConfig, match=text):
        allocator.define(A, config)
    assert allocator.pools() == []


def test_case_84_a_network_with_endpoints_stays(allocator):
    network = Selector("address", "network")
    allocator.define(network, {"cidr": "10.1.1.0/24", "gateway": "10.1.1.254"})
    ends = allocator.allocate_many([address(f"p{number}", pool="network") for number in range(2)])
    for left in (2, 1):
        with pytest.raises(PoolBusy, match=rf"address pool 'network' still has {left} allocation\(s\); release them"):
            allocator.undefine(network)
        allocator.release(ends[left - 1].id)
    assert allocator.undefine(network) is True, "the gateway is the network's own"
    assert allocator.list() == []


def test_case_85_the_gateway_is_an_allocation_as_all_others(allocator):
    allocator.define(A, lowest(cidr="10.1.1.0/24", gateway="10.1.1.254"))
    grants = [allocator.allocate(address(f"p{number}")) for number in range(1, 4)]
    assert allocator.usage(A).allocated == "10.1.1.1-10.1.1.3, 10.1.1.254"
    grants += [allocator.allocate(address(f"p{number}")) for number in range(4, 8)]
    for number in (3, 4, 6):
        allocator.release(grants[number - 1].id)
    assert allocator.usage(A).allocated == "10.1.1.1-10.1.1.2, 10.1.1.5, 10.1.1.7, 10.1.1.254"
    with pytest.raises(ValueInUse):
        allocator.allocate(address("p9", "10.1.1.254"))
    with pytest.raises(InvalidRequest, match="belongs to its pool"):
        allocator.release(next(grant.id for grant in allocator.list(A) if grant.owner.type == "pool"))


def test_network_broadcast_and_reserved_addresses_are_not_given(allocator):
    """The predecessor gave the DNS server's address to the first container."""
    allocator.define(A, lowest(cidr="10.1.1.0/29", gateway="10.1.1.1", reserved=["10.1.1.2", "10.1.1.5"]))
    values = [allocator.allocate(address(f"p{number}")).value for number in range(3)]
    assert values == ["10.1.1.3", "10.1.1.4", "10.1.1.6"]
    with pytest.raises(PoolExhausted, match="no addresses available"):
        allocator.allocate(address("p9"))
    for value in ("10.1.1.0", "10.1.1.7"):
        with pytest.raises(OutOfRange):
            allocator.allocate(address("p9", value))
    assert allocator.undefine(A, force=True), "the pool's own values go with it"
    assert allocator.list() == []


def test_a_gateway_can_be_moved_but_not_onto_somebodys_address(allocator):
    allocator.define(A, lowest(cidr="10.1.1.0/24", gateway="10.1.1.254"))
    allocator.allocate(address("p1", "10.1.1.7"))
    with pytest.raises(ValueInUse, match=r"gateway 10\.1\.1\.7 is in use by port p1"):
        allocator.redefine(A, lowest(cidr="10.1.1.0/24", gateway="10.1.1.7"))
    allocator.redefine(A, lowest(cidr="10.1.1.0/24", gateway="10.1.1.1"))
    assert allocator.usage(A).allocated == "10.1.1.1, 10.1.1.7"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10.1.0.0/16", "10.1.1.0/24"),
        ("10.1.1.0/24", "10.1.0.0/16"),
        ("2001:db8::/48", "2001:db8:0:1::/64"),
        ("10.1.1.0/24", "10.1.1.0/24"),
    ],
)
def test_case_86_networks_of_one_tenant_do_not_overlap_and_those_of_two_may(allocator, one, other):
    for kind in ("address", "subnet"):
        allocator.define(Selector(kind, "a", "tenant:blue"), {"cidr": one})
        with pytest.raises(Overlap):
            allocator.define(Selector(kind, "b", "tenant:blue"), {"cidr": other})
        allocator.define(Selector(kind, "b", "tenant:red"), {"cidr": other})


def test_networks_of_two_tenants_in_one_address_scope_do_not_overlap(allocator):
    allocator.define(Selector("address", "a", "tenant:blue"), {"cidr": "10.1.0.0/16", "address_scope": "campus"})
    with pytest.raises(Overlap):
        allocator.define(Selector("address", "a", "tenant:red"), {"cidr": "10.1.1.0/24", "address_scope": "campus"})


def test_case_87_ranges_of_one_network_may_meet_but_not_overlap(allocator):
    first, second = Selector("address", "a"), Selector("address", "b")
    allocator.define(first, {"cidr": "10.1.1.0/24", "ranges": "10.1.1.10-10.1.1.45"})
    with pytest.raises(Overlap, match=r"at 10\.1\.1\.45"):
        allocator.define(second, {"cidr": "10.1.1.0/24", "ranges": "10.1.1.45-10.1.1.100"})
    allocator.define(second, {"cidr": "10.1.1.0/24", "ranges": "10.1.1.46-10.1.1.100"})


def test_case_97_a_groups_own_addresses_are_carved_out_of_the_networks(allocator):
    group, other = Selector("address", "web"), Selector("address", "db")
    allocator.define(A, lowest(cidr="10.1.1.0/24", gateway="10.1.1.254"))
    allocator.define(group, lowest(cidr="10.1.1.0/24", ranges="10.1.1.1-10.1.1.2", parent="a"))
    with pytest.raises(Overlap):
        allocator.define(other, lowest(cidr="10.1.1.0/24", ranges="10.1.1.2-10.1.1.5", parent="a"))
    grants = [allocator.allocate(address(f"p{number}", pool="web")) for number in range(2)]
    assert [grant.value for grant in grants] == ["10.1.1.1", "10.1.1.2"]
    with pytest.raises(PoolExhausted):
        allocator.allocate(address("p9", pool="web"))
    assert allocator.allocate(address("p9")).value == "10.1.1.3", "the parent passes over what it gave away"
    with pytest.raises(OutOfRange):
        allocator.allocate(address("p8", "10.1.1.1"))
    allocator.release(grants[0].id)
    assert allocator.allocate(address("p9", pool="web")).value == "10.1.1.1"
    with pytest.raises(PoolBusy):
        allocator.undefine(group)
    allocator.undefine(group, force=True)
    assert allocator.allocate(address("p7")).value == "10.1.1.1", "the parent has it back"


def test_a_pool_inside_another_stays_inside(allocator):
    allocator.define(A, {"cidr": "10.1.1.0/24", "ranges": "10.1.1.10-10.1.1.99"})
    with pytest.raises(InvalidConfig, match="does not lie inside"):
        allocator.define(Selector("address", "web"), {"cidr": "10.1.1.0/24", "ranges": "10.1.1.90-10.1.1.110", "parent": "a"})
    with pytest.raises(Exception, match='and id: "nowhere"'):
        allocator.define(
            Selector("address", "web"), {"cidr": "10.1.1.0/24", "ranges": "10.1.1.90-10.1.1.91", "parent": "nowhere"}
        )
    allocator.define(Selector("address", "web"), {"cidr": "10.1.1.0/24", "ranges": "10.1.1.90-10.1.1.99", "parent": "a"})
    with pytest.raises(InvalidConfig, match="carved out"):
        allocator.redefine(A, {"cidr": "10.1.1.0/24", "ranges": "10.1.1.10-10.1.1.95"})
    with pytest.raises(Exception, match="carries 1"):
        allocator.undefine(A)


def test_the_gateway_goes_where_its_pool_goes(allocator):
    config = lowest(cidr="10.1.1.0/24", gateway="10.1.1.1")
    allocator.define(A, {**config, "address_scope": "one"})
    allocator.redefine(A, {**config, "address_scope": "other"})
    assert allocator.allocate(address("p1")).value == "10.1.1.2"
    assert allocator.check() == []


def test_what_is_in_use_is_not_carved_out(allocator):
    allocator.define(A, {"cidr": "10.1.1.0/24"})
    allocator.allocate(address("p1", "10.1.1.50"))
    with pytest.raises(ValueInUse, match=r"10\.1\.1\.50 of address pool 'a' is in use"):
        allocator.define(Selector("address", "web"), {"cidr": "10.1.1.0/24", "ranges": "10.1.1.50-10.1.1.60", "parent": "a"})
    assert allocator.usage(A).total == 254


def test_case_98_counts_are_exact_after_much_at_once(allocator):
    allocator.define(A, {"cidr": "10.1.0.0/24"})

    def churn(number):
        for turn in range(4):
            grant = allocator.allocate(address(f"p{number}-{turn}"))
            if turn % 2:
                allocator.release(grant.id)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(churn, range(6)))
    assert allocator.usage(A).used == len(allocator.list(A)) == 12
    assert allocator.check() == []


def test_ipv6_addresses_are_numbers_as_all_others(allocator):
    allocator.define(A, lowest(cidr="2001:db8::/64", gateway="2001:db8::1"))
    assert allocator.allocate(address("p1")).value == "2001:db8::2"
    assert allocator.allocate(address("p2", "2001:db8::ffff:ffff:ffff:ffff")).value == "2001:db8::ffff:ffff:ffff:ffff"
    assert allocator.usage(A).total == 2**64 - 1
    with pytest.raises(OutOfRange):
        allocator.allocate(address("p3", "2001:db8::"))


def test_both_families_in_one_transaction(allocator):
    six = Selector("address", "a6")
    allocator.define(A, lowest(cidr="10.1.1.0/30"))
    allocator.define(six, lowest(cidr="2001:db8::/64"))

    def both(owner):
        return [grant.value for grant in allocator.allocate_many([address(owner), address(owner, pool="a6")])]

    assert both("p1") == ["10.1.1.1", "2001:db8::1"]
    assert both("p2") == ["10.1.1.2", "2001:db8::2"]
    with pytest.raises(PoolExhausted):
        both("p3")
    assert allocator.usage(six).used == 2, "without the one, not the other either"


def test_case_77_the_next_address_after_the_last_one(allocator):
    allocator.define(A, {"cidr": "fd00::/64", "pick": "next_fit"})
    assert allocator.allocate(address("p1")).value == "fd00::1"
    assert allocator.allocate(address("p2")).value == "fd00::2"
    assert allocator.allocate(address("p3", "fd00::4:ffff:ffff")).value == "fd00::4:ffff:ffff"


def test_case_77_the_next_address_wraps_around(allocator):
    allocator.define(A, {"cidr": "fd00::/124", "pick": "next_fit"})
    values = [allocator.allocate(address(f"p{number}")).value for number in range(15)]
    assert values[-1] == "fd00::f"
    for number in (2, 6):
        allocator.release_owner(Owner("port", f"p{number}"))
    assert allocator.allocate(address("q1")).value == "fd00::3"


def test_case_79_80_81_a_range_is_marked_and_given_back_in_parts(allocator):
    allocator.define(A, lowest(cidr="10.36.1.0/24"))

    def mark(first, last):
        return [address("host", f"10.36.1.{number}", slot=str(number)) for number in range(first, last + 1)]

    allocator.allocate_many(mark(1, 10))
    usage = allocator.usage(A)
    assert (usage.allocated, usage.free_ranges) == ("10.36.1.1-10.36.1.10", "10.36.1.11-10.36.1.254")
    allocator.allocate_many(mark(5, 12))
    assert allocator.usage(A).allocated == "10.36.1.1-10.36.1.12", "who marks it again has it"
    with pytest.raises(ValueInUse, match=r"10\.36\.1\.12"):
        allocator.allocate_many([address("other", f"10.36.1.{number}", slot=str(number)) for number in (12, 13)])
    with pytest.raises(OutOfRange):
        allocator.allocate(address("host", "10.36.2.1", slot="x"))
    for number in range(4, 7):
        allocator.release_value(A, f"10.36.1.{number}", Owner("port", "host"))
    usage = allocator.usage(A)
    assert usage.allocated == "10.36.1.1-10.36.1.3, 10.36.1.7-10.36.1.12"
    assert usage.free_ranges == "10.36.1.4-10.36.1.6, 10.36.1.13-10.36.1.254"


def test_addresses_outside_of_the_automatic_ranges_are_for_those_who_ask(allocator):
    config = lowest(cidr="10.1.1.0/28", gateway="10.1.1.5", automatic="10.1.1.4-10.1.1.6")
    allocator.define(A, config)
    assert [allocator.allocate(address(f"p{number}")).value for number in range(2)] == ["10.1.1.4", "10.1.1.6"]
    with pytest.raises(PoolExhausted):
        allocator.allocate(address("p3"))
    assert allocator.allocate(address("p3", "10.1.1.9")).value == "10.1.1.9"
    assert allocator.holder(A, "10.1.1.9").owner.id == "p3"
    assert allocator.holder(A, "10.1.1.8") is None
    allocator.redefine(A, config | {"automatic": "10.1.1.12-10.1.1.12"})
    assert allocator.allocate(address("p4")).value == "10.1.1.12"
    allocator.redefine(A, config | {"automatic": "none"})
    with pytest.raises(PoolExhausted):
        allocator.allocate(address("p5"))
    with pytest.raises(InvalidConfig, match="leaves the ranges"):
        allocator.redefine(A, config | {"ranges": "10.1.1.1-10.1.1.13", "automatic": "10.1.1.12-10.1.1.14"})
