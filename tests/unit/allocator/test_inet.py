"""Cases 71-76, 78: addresses and prefixes as numbers."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from lbaas_scheduler.allocator.kinds import inet
from lbaas_scheduler.allocator.kinds.vxlan import parse_range
from lbaas_scheduler.errors import InvalidConfig


@pytest.mark.parametrize(
    ("network", "number", "address"),
    [("11.2.1.0/24", 5, "11.2.1.5"), ("10.123.16.0/22", 513, "10.123.18.1"), ("172.12.0.0/16", 261, "172.12.1.5")],
)
def test_case_71_hosts_are_numbered(network, number, address):
    assert inet.host(ip_network(network), number) == ip_address(address)
    assert inet.host_number(ip_network(network), ip_address(address)) == number


@pytest.mark.parametrize(("network", "number"), [("11.2.1.1/32", 5), ("10.123.16.0/22", 1025), ("10.123.16.0/22", 0)])
def test_case_72_a_host_outside_is_refused(network, number):
    with pytest.raises(InvalidConfig, match=f"has no host {number}"):
        inet.host(ip_network(network), number)


@pytest.mark.parametrize(
    ("pool", "length", "number", "prefix"), [("11.1.0.0/16", 24, 5, "11.1.5.0/24"), ("10.0.0.0/8", 24, 5, "10.0.5.0/24"),
        ("2001:db8::/32", 48, 5, "2001:db8:5::/48")],
)  # fmt: skip
def test_case_73_subnets_are_numbered(pool, length, number, prefix):
    assert inet.subnet(ip_network(pool), length, number) == ip_network(prefix)
    assert inet.subnet_number(ip_network(pool), ip_network(prefix)) == number
    with pytest.raises(InvalidConfig):
        inet.subnet(ip_network(pool), length, 2**length)
    with pytest.raises(InvalidConfig):
        inet.subnet_number(ip_network(pool), ip_network("192.168.0.0/24"))


@pytest.mark.parametrize(("text", "network"), [("11.2.1.10-11.2.1.100", "11.2.1.0/24"), ("10.123.16.66", "10.123.16.64/26")])
def test_case_74_ranges_inside_their_network(text, network):
    assert len(inet.ranges("address", "ranges", text, ip_network(network))) == 1


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.0/0", "10.0.0.0/-1", "10.0.0.0/a", "10.0.0.0"])
def test_case_75_no_such_prefix(text):
    with pytest.raises(InvalidConfig):
        inet.network("address", "cidr", text)


def test_case_75_a_range_that_leaves_its_network():
    with pytest.raises(InvalidConfig, match="leaves"):
        inet.ranges("address", "ranges", "10.1.1.10-10.1.1.100", ip_network("10.1.1.0/26"))


def test_case_76_the_network_of_a_range():
    assert ip_network("10.1.1.70/26", strict=False).network_address == ip_address("10.1.1.64")
    assert inet.span(ip_network("10.1.1.64/26")).lo == inet.to_number(ip_address("10.1.1.64"))


@pytest.mark.parametrize(
    ("one", "other", "expected"), [("10.36.0.1/32", "10.36.0.0/24", True), ("20.20.5.20/32", "20.20.0.0/24", False)]
)
def test_case_78_overlap(one, other, expected):
    first, second = inet.span(ip_network(one)), inet.span(ip_network(other))
    assert (first.lo <= second.hi and second.lo <= first.hi) is expected


def test_both_families_sort_together_and_come_back():
    texts = ["10.0.0.1", "255.255.255.255", "2001:db8::1", "::1"]
    numbers = {text: inet.to_number(ip_address(text)) for text in texts}
    assert len(set(numbers.values())) == 4
    assert [str(inet.to_address(number)) for number in numbers.values()] == texts


def test_hosts_of_the_smallest_networks():
    def usable(text):
        lo, hi = inet.hosts(ip_network(text))
        return str(inet.to_address(lo)), str(inet.to_address(hi))

    assert usable("10.0.0.0/31") == ("10.0.0.0", "10.0.0.1")
    assert usable("10.0.0.0/30") == ("10.0.0.1", "10.0.0.2")
    assert usable("2001:db8::/127") == ("2001:db8::", "2001:db8::1")
    assert usable("2001:db8::/126") == ("2001:db8::1", "2001:db8::3")


def test_case_67_to_70_ranges_of_network_identifiers():
    assert parse_range("10000-16000", paired=True).size == 6001
    for text in ("1-2, 5-6", "101-75535", "8000-7999"):
        with pytest.raises(InvalidConfig):
            parse_range(text, paired=True)
