"""The arithmetic of subnets: pure functions over what is stored of one."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lbaas_scheduler.errors import InvalidIpForSubnet, InvalidRequest

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Range = tuple[int, int]
"""First and last address, as numbers."""

_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
"""IPv4 addresses as IPv6 ones (RFC 4291, section 2.5.5.2): the same to whoever reads them."""

_NO_HOSTS: Mapping[Network, str] = {
    ipaddress.ip_network(cidr): why
    for cidr, why in (
        ("0.0.0.0/8", "addresses that mean 'this network'"),
        ("169.254.0.0/16", "link-local addresses"),
        ("224.0.0.0/4", "multicast addresses"),
        ("240.0.0.0/4", "reserved addresses"),
        ("::/128", "the unspecified address"),
        ("fe80::/10", "link-local addresses"),
        ("ff00::/8", "multicast addresses"),
    )
}
"""Blocks without an address that can be one host's, beyond its link (RFC 6890, RFC 4291), and what they have."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """``pools`` ascending and apart from each other."""

    id: str
    network_id: str
    cidr: Network
    gateway: Address | None
    pools: tuple[Range, ...]

    @classmethod
    def of(cls, row: Any) -> Subnet:
        """From a row of ``subnets``."""
        gateway = None if row.gateway_ip is None else ipaddress.ip_address(row.gateway_ip)
        pools = tuple((int(ipaddress.ip_address(first)), int(ipaddress.ip_address(last))) for first, last in row.allocation_pools)
        return cls(row.id, row.network_id, ipaddress.ip_network(row.cidr), gateway, pools)

    def ranges(self) -> Iterator[Range]:
        """Where addresses may be chosen: the allocation pools without the gateway."""
        for first, last in self.pools:
            gateway = None if self.gateway is None else int(self.gateway)
            if gateway is None or not first <= gateway <= last:
                yield first, last
                continue
            if first < gateway:
                yield first, gateway - 1
            if gateway < last:
                yield gateway + 1, last

    def check_usable(self, address: str) -> Address:
        """:raises InvalidIpForSubnet: outside of the subnet, or its network or broadcast address."""
        parsed = ipaddress.ip_address(address)
        first, last = usable(self.cidr)
        if parsed.version != self.cidr.version or not first <= int(parsed) <= last:
            raise InvalidIpForSubnet(address=address, subnet_id=self.id, cidr=str(self.cidr))
        return parsed

    def text(self, number: int) -> str:
        """An address as text."""
        return str(type(self.cidr.network_address)(number))


def usable(cidr: Network) -> Range:
    """First and last address that one host may have: all but IPv4's network and broadcast and IPv6's subnet-router anycast."""
    first, last = int(cidr.network_address), int(cidr.broadcast_address)
    if cidr.prefixlen >= cidr.max_prefixlen - 1:
        return first, last
    return first + 1, last - 1 if cidr.version == 4 else last


def parse_cidr(text: str) -> Network:
    """:raises InvalidRequest: no network, or one with host bits, which says that somebody mistook an address for it."""
    try:
        return _checked(ipaddress.ip_network(text))
    except ValueError:
        pass
    try:
        meant = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise InvalidRequest(reason=f"cidr {text!r} is no network; write it like 10.0.0.0/24", attribute="cidr") from None
    raise InvalidRequest(reason=f"cidr {text!r} has host bits set; did you mean {meant}?", attribute="cidr")


def _checked(cidr: Network) -> Network:
    if cidr.prefixlen == 0:
        raise InvalidRequest(reason=f"cidr {cidr} is every address there is; write a network", attribute="cidr")
    if cidr.version == 6 and cidr.overlaps(_MAPPED):
        raise InvalidRequest(reason=f"cidr {cidr} has IPv4 addresses in it ({_MAPPED}); write the IPv4 network", attribute="cidr")
    for block, what in _NO_HOSTS.items():
        if block.version == cidr.version and cidr.overlaps(block):
            reason = f"cidr {cidr} has {what} in it ({block}), which no host can have; write a network of unicast addresses"
            raise InvalidRequest(reason=reason, attribute="cidr")
    return cidr


def parse_gateway(text: str | None, cidr: Network) -> Address | None:
    """:raises InvalidRequest: not a usable address of the subnet."""
    if text is None:
        return None
    gateway = ipaddress.ip_address(text)
    first, last = usable(cidr)
    if gateway.version != cidr.version or not first <= int(gateway) <= last:
        raise InvalidRequest(reason=f"gateway_ip {text} is not a usable address of {cidr}", attribute="gateway_ip")
    return gateway


def parse_pools(pools: Sequence[Any], cidr: Network) -> list[list[str]]:
    """Allocation pools, checked and in ascending order, as they are stored.

    :raises InvalidRequest: a pool that is reversed, lies outside of the subnet, or overlaps another one.
    """
    first_usable, last_usable = usable(cidr)
    ranges = sorted((ipaddress.ip_address(pool["start"]), ipaddress.ip_address(pool["end"])) for pool in _one_family(pools, cidr))
    for start, end in ranges:
        if int(start) > int(end):
            raise InvalidRequest(reason=f"allocation pool {start} - {end} ends before it starts", attribute="allocation_pools")
        if int(start) < first_usable or int(end) > last_usable:
            reason = f"allocation pool {start} - {end} reaches beyond the usable addresses of {cidr}"
            raise InvalidRequest(reason=reason, attribute="allocation_pools")
    for (_, end), (start, _) in pairwise(ranges):
        if int(start) <= int(end):
            raise InvalidRequest(reason=f"allocation pools overlap at {start}", attribute="allocation_pools")
    return [[str(start), str(end)] for start, end in ranges]


def _one_family(pools: Sequence[Any], cidr: Network) -> Sequence[Any]:
    for pool in pools:
        if any(ipaddress.ip_address(pool[end]).version != cidr.version for end in ("start", "end")):
            raise InvalidRequest(
                reason=f"allocation pools must be of IPv{cidr.version}, as {cidr} is", attribute="allocation_pools"
            )
    return pools


def default_pools(cidr: Network) -> list[list[str]]:
    """Every usable address."""
    first, last = usable(cidr)
    kind = type(cidr.network_address)
    return [[str(kind(first)), str(kind(last))]]


def default_gateway(cidr: Network) -> Address:
    return type(cidr.network_address)(usable(cidr)[0])
