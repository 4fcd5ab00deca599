"""A tenant's words, checked once more where they reach a configuration: what passes is one word of it, and harmless.

The API has checked them by the same limits (:mod:`lbaas_scheduler.domain.words`). A driver relies on nothing: what it is told
came over a bus. Errors may be shown to the tenant.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lbaas_scheduler.domain import words
from lbaas_scheduler.domain.loadbalancers import HealthMonitor, Member, Vip
from lbaas_scheduler.errors import DriverError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Endpoint = tuple[str, int]
"""Address in its one spelling, and port."""

_COOKIE_NAME = re.compile(words.COOKIE_NAME)
_URL_PATH = re.compile(words.URL_PATH)
_EXPECTED_CODES = re.compile(words.EXPECTED_CODES)

ITSELF = "The member leads back to the VIP: the VIP would send its connections to itself."
HOST = "The member's address is a loopback address: the VIP would send its connections to its own device."
TWICE = "The pool names this member twice."


def address(value: str, what: str) -> Address:
    """An address that one host has.

    Refused are scopes ("%eth0": Python lets anything stand there, line feeds included), the unspecified address, which means
    the device itself or all of its addresses, IPv4 addresses written as IPv6 ones, and groups.

    :raises DriverError: it is none.
    """
    try:
        parsed = ipaddress.ip_address(value)
    except ValueError:
        raise DriverError(f"The address of the {what} is not an IP address.") from None
    if "%" in str(parsed):
        raise DriverError(f"The address of the {what} must not have a scope.")
    mapped = parsed.version == 6 and parsed.ipv4_mapped is not None
    if parsed.is_unspecified or parsed.is_multicast or mapped:
        raise DriverError(f"The address of the {what} is not the address of one host.")
    return parsed


def integer(value: int, low: int, high: int, what: str) -> int:
    """:raises DriverError: it is none, or out of bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise DriverError(f"{what}: expected a whole number from {low} to {high}.")
    return value


def endpoint(host: str, port: int, what: str) -> Endpoint:
    """:raises DriverError: nothing can be there."""
    return str(address(host, what)), integer(port, 1, 65535, "protocol_port")


def cookie_name(value: str | None) -> str:
    """:raises DriverError: it is none."""
    if value is None or len(value) > words.MAX_COOKIE_NAME or not _COOKIE_NAME.fullmatch(value):
        raise DriverError(f"cookie_name: expected 1 to {words.MAX_COOKIE_NAME} letters, digits and any of !%&*+.^_|~-")
    return value


def http_method(value: str) -> str:
    """:raises DriverError: it is none."""
    if value not in words.HTTP_METHODS:
        raise DriverError(f"http_method: expected one of {', '.join(words.HTTP_METHODS)}.")
    return value


def url_path(value: str) -> str:
    """:raises DriverError: it is none."""
    if len(value) > words.MAX_URL_PATH or not _URL_PATH.fullmatch(value):
        raise DriverError(f"url_path: expected '/' and characters of a URL, {words.MAX_URL_PATH} at most.")
    return value


def expected_codes(monitor: HealthMonitor) -> tuple[tuple[int, int], ...]:
    """Ranges of status codes, first and last.

    :raises DriverError: they are none.
    """
    text = monitor.expected_codes
    found: list[tuple[int, int]] = []
    if len(text) <= words.MAX_EXPECTED_CODES and _EXPECTED_CODES.fullmatch(text):
        for part in text.split(","):
            low, _, high = part.strip(" ").partition("-")
            found.append((int(low), int(high or low)))
    if not found or any(low > high for low, high in found):
        raise DriverError("expected_codes: expected codes like '200', '200,202' or '200-204', from 100 to 599.")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Members:
    """A pool's members as a driver is to render them. ``errors``: id of a member that is left out → why."""

    usable: Mapping[str, tuple[Member, Endpoint]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


def members(vip: Vip, beside: Mapping[Endpoint, Collection[Endpoint]] | None = None) -> Members:
    """Judge a pool's members one by one: a bad one is left out and reported, the others serve.

    :param beside: where the device's other VIPs are → where their members are. By them a member may lead back to the VIP.
    :raises DriverError: the VIP itself cannot be anywhere.
    """
    own = endpoint(vip.address, vip.protocol_port, "VIP")
    usable: dict[str, tuple[Member, Endpoint]] = {}
    errors: dict[str, str] = {}
    for member in vip.pool.members:
        try:
            place = _place(member, own, beside or {})
            if member.id in usable:
                raise DriverError(TWICE)
            usable[member.id] = member, place
        except DriverError as error:
            errors[member.id] = error.message
    return Members(usable, errors)


def _place(member: Member, own: Endpoint, beside: Mapping[Endpoint, Collection[Endpoint]]) -> Endpoint:
    place = endpoint(member.address, member.protocol_port, "member")
    integer(member.weight, 0, words.MAX_WEIGHT, "weight")
    if _leads(place, own, beside):
        raise DriverError(ITSELF)
    if ipaddress.ip_address(place[0]).is_loopback and not ipaddress.ip_address(own[0]).is_loopback:
        raise DriverError(HOST)
    return place


def _leads(start: Endpoint, goal: Endpoint, ways: Mapping[Endpoint, Collection[Endpoint]]) -> bool:
    """Whether ``goal`` is reached from ``start``."""
    seen, ahead = {start}, [start]
    while ahead:
        here = ahead.pop()
        if here == goal:
            return True
        ahead += [place for place in ways.get(here, ()) if place not in seen]
        seen.update(ahead)
    return False
