"""How what :mod:`lbaas_scheduler.sdk.words` let through is written in a HAProxy configuration file."""

from __future__ import annotations

import re

from lbaas_scheduler.domain.loadbalancers import HealthMonitor
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import words
from lbaas_scheduler.sdk.words import Endpoint

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SERVER = re.compile(r"^\s+server \S+ (\S+) weight ", re.MULTILINE)


def identifier(value: str, what: str) -> str:
    """An id, as it is: it becomes a name in the configuration and a file's name."""
    if not _ID.fullmatch(value):
        raise DriverError(f"The id of the {what} is not usable: expected up to 64 letters, digits, '-' and '_'.")
    return value


def endpoint(place: Endpoint) -> str:
    """``10.0.0.5:80``; IPv6 in brackets."""
    address, port = place
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def ways(bind: str, text: str) -> dict[Endpoint, tuple[Endpoint, ...]]:
    """Where a VIP's file listens ("" = nowhere) → where its servers are."""
    return {_endpoint(bind): tuple(map(_endpoint, _SERVER.findall(text)))} if bind else {}


def _endpoint(text: str) -> Endpoint:
    address, _, port = text.rpartition(":")
    return address.strip("[]"), int(port)


def expected_codes(monitor: HealthMonitor) -> str:
    """HAProxy's own notation is the tenant's, without spaces."""
    return ",".join(f"{low}-{high}" if high != low else str(low) for low, high in words.expected_codes(monitor))
