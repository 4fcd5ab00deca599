"""Addresses and prefixes as numbers of 128 bits: IPv4 lies at ::ffff:0:0/96 (RFC 4291, section 2.5.5.2), so both sort
together."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import pairwise
from typing import Any

from lbaas_scheduler.allocator.core.spans import Span, Spans, listing_of
from lbaas_scheduler.allocator.kinds.configs import invalid

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAPPED = 0xFFFF << 32
_V4 = range(MAPPED, MAPPED + 2**32)
_V4_IN_V6 = IPv6Network("::ffff:0:0/96")


def to_number(address: Address) -> int:
    return int(address) + (MAPPED if address.version == 4 else 0)


def to_address(number: int) -> Address:
    return IPv4Address(number - MAPPED) if number in _V4 else IPv6Address(number)


def address(kind: str, word: str, text: Any) -> Address:
    """:raises InvalidConfig: no address."""
    try:
        return parsed(text)
    except ValueError as error:
        raise invalid(kind, f"{word}: {text!r:.80} is no IP address") from error


def parsed(text: Any) -> Address:
    """:raises ValueError: no address, or one with a scope (``%eth0``), which means something on one host only."""
    if not isinstance(text, str) or "%" in text:
        raise ValueError
    return ip_address(text)


def network(kind: str, word: str, text: Any) -> Network:
    """:raises InvalidConfig: no prefix, or one with host bits set."""
    try:
        if not isinstance(text, str) or "/" not in text or "%" in text:
            raise ValueError(f"{text!r:.80} is no prefix; write ADDRESS/LENGTH")
        found = ip_network(text)
    except ValueError as error:
        raise invalid(kind, f"{word}: {error}") from error
    if found.prefixlen == 0:
        raise invalid(kind, f"{word}: {text} is everything; give a prefix")
    if found.version == 6 and found.overlaps(_V4_IN_V6):
        raise invalid(kind, f"{word}: {text} holds IPv4 addresses; write them as IPv4")
    return found


def span(net: Network) -> Span:
    return Span(to_number(net.network_address), to_number(net.broadcast_address))


def hosts(net: Network) -> Span:
    """What hosts may use: without IPv4's network and broadcast addresses, without IPv6's anycast address of the routers; all of
    a /31 (RFC 3021) and of a /127 (RFC 6164)."""
    lo, hi = span(net)
    if net.prefixlen >= net.max_prefixlen - 1:
        return Span(lo, hi)
    return Span(lo + 1, hi - (1 if net.version == 4 else 0))


def ranges(kind: str, word: str, text: Any, net: Network) -> list[Span]:
    """``10.1.1.10-10.1.1.100, 10.1.1.200``, inside of a network.

    :raises InvalidConfig: not of this form, reversed, outside, or two of them overlap.
    """
    if not isinstance(text, str):
        raise invalid(kind, f"{word} is {text!r:.80}; give text such as '10.0.0.10-10.0.0.20'")
    found = sorted(_range(kind, word, piece.strip(), net) for piece in text.split(","))
    for one, other in pairwise(found):
        if other.lo <= one.hi:
            raise invalid(kind, f"{word}: two ranges of {text!r:.80} overlap at {to_address(other.lo)}")
    return found


def _range(kind: str, word: str, piece: str, net: Network) -> Span:
    first, _, last = piece.partition("-")
    lo, hi = (to_number(address(kind, word, text.strip())) for text in (first, last or first))
    if lo > hi:
        raise invalid(kind, f"{word}: {piece} is reversed")
    usable = hosts(net)
    if lo < usable.lo or hi > usable.hi:
        raise invalid(kind, f"{word}: {piece} leaves {to_address(usable.lo)}-{to_address(usable.hi)}, the hosts of {net}")
    return Span(lo, hi)


def ranges_text(spans: Spans) -> str:
    """The reverse of :func:`ranges`, in one way for equal ones."""
    return listing_of(spans, lambda number: str(to_address(number)))


def host(net: Network, number: int) -> Address:
    """The ``number``-th address after the network's own.

    :raises InvalidConfig: the network has no such host.
    """
    if net.prefixlen >= net.max_prefixlen or not 0 < number < net.num_addresses:
        raise invalid("address", f"{net} has no host {number}")
    return to_address(span(net).lo + number)


def host_number(net: Network, of: Address) -> int:
    """The reverse of :func:`host`."""
    number = to_number(of) - span(net).lo
    if not 0 < number < net.num_addresses:
        raise invalid("address", f"{of} is no host of {net}")
    return number


def subnet(net: Network, length: int, number: int) -> Network:
    """The ``number``-th prefix of a length inside of a network, counted from 0."""
    if not net.prefixlen <= length <= net.max_prefixlen or not 0 <= number < 2 ** (length - net.prefixlen):
        raise invalid("subnet", f"{net} has no prefix {number} of length {length}")
    start = to_address(span(net).lo + number * 2 ** (net.max_prefixlen - length))
    return ip_network(f"{start}/{length}")


def subnet_number(net: Network, of: Network) -> int:
    """The reverse of :func:`subnet`."""
    if of.version != net.version or not of.subnet_of(net):  # type: ignore[arg-type]
        raise invalid("subnet", f"{of} does not lie in {net}")
    return (span(of).lo - span(net).lo) // of.num_addresses
