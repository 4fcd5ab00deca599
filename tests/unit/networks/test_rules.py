"""The arithmetic of subnets."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbaas_scheduler.errors import InvalidIpForSubnet
from lbaas_scheduler.networks.rules import Subnet, parse_cidr, usable


def _subnet(cidr: str, gateway: str | None, *pools: tuple[str, str]) -> Subnet:
    numbers = tuple((int(ipaddress.ip_address(first)), int(ipaddress.ip_address(last))) for first, last in pools)
    return Subnet("s", "n", ipaddress.ip_network(cidr), ipaddress.ip_address(gateway) if gateway else None, numbers)


@pytest.mark.parametrize(
    ("cidr", "first", "last"),
    [
        ("10.0.0.0/24", "10.0.0.1", "10.0.0.254"),
        ("10.0.0.0/30", "10.0.0.1", "10.0.0.2"),
        ("10.0.0.0/31", "10.0.0.0", "10.0.0.1"),
        ("10.0.0.7/32", "10.0.0.7", "10.0.0.7"),
        ("127.87.0.0/30", "127.87.0.1", "127.87.0.2"),
        ("2001:db8::/64", "2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"),
        ("2001:db8::/127", "2001:db8::", "2001:db8::1"),
    ],
)
def test_what_one_host_may_have(cidr: str, first: str, last: str) -> None:
    assert usable(parse_cidr(cidr)) == (int(ipaddress.ip_address(first)), int(ipaddress.ip_address(last)))


@given(st.integers(1, 254), st.integers(1, 254), st.integers(1, 254))
def test_the_ranges_are_the_pool_without_the_gateway(one: int, other: int, gateway: int) -> None:
    first, last = sorted((one, other))
    subnet = _subnet("10.0.0.0/24", f"10.0.0.{gateway}", (f"10.0.0.{first}", f"10.0.0.{last}"))
    numbers = [number for start, end in subnet.ranges() for number in range(start, end + 1)]
    base = int(ipaddress.ip_address("10.0.0.0"))
    assert numbers == [base + number for number in range(first, last + 1) if number != gateway]


@given(st.ip_addresses())
def test_an_address_is_usable_exactly_inside(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    subnet = _subnet("10.0.0.0/8", None)
    if address.version == 4 and address in subnet.cidr and str(address) not in ("10.0.0.0", "10.255.255.255"):
        assert subnet.check_usable(str(address)) == address
    else:
        with pytest.raises(InvalidIpForSubnet):
            subnet.check_usable(str(address))
