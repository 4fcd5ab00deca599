"""What may stand in a HAProxy configuration file, and how.

The API checks what tenants write. It is checked again here, because here it reaches a file: nothing passes that HAProxy would
read as more than one word.
"""

from __future__ import annotations

import ipaddress
import re

from lbaas_scheduler.domain.loadbalancers import HealthMonitor
from lbaas_scheduler.errors import DriverError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_METHOD = re.compile(r"[A-Z]{1,16}")
_PATH = re.compile(r"/[!-~]{0,254}")
_COOKIE = re.compile(r"[A-Za-z0-9!$%&*+.^_|~-]{1,64}")
_CODE = re.compile(r"[1-5][0-9]{2}(?:-[1-5][0-9]{2})?")
_SPECIAL = re.compile(r"([\\\"'# ])")


def identifier(value: str, what: str) -> str:
    """An id, as it is: it becomes a name in the configuration and a file's name."""
    if not _ID.fullmatch(value):
        raise DriverError(f"The id of the {what} is not usable: expected up to 64 letters, digits, '-' and '_'.")
    return value


def address(value: str, what: str) -> str:
    """An IP address, normalised; IPv6 in brackets.

    The scope of an IPv6 address ("%eth0") is refused: Python lets anything stand there, line feeds included.
    """
    try:
        parsed = ipaddress.ip_address(value)
    except ValueError:
        raise DriverError(f"The address of the {what} is not an IP address.") from None
    if "%" in str(parsed):
        raise DriverError(f"The address of the {what} must not have a scope.")
    return f"[{parsed}]" if parsed.version == 6 else str(parsed)


def integer(value: int, low: int, high: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise DriverError(f"{what}: expected a whole number from {low} to {high}.")
    return value


def http_method(value: str) -> str:
    if not _METHOD.fullmatch(value):
        raise DriverError("http_method: expected 1 to 16 capital letters A-Z.")
    return value


def url_path(value: str) -> str:
    """Escaped for use as one word outside quotes. There HAProxy gives meaning to backslash, quotes, # and space only."""
    if not _PATH.fullmatch(value):
        raise DriverError("url_path: expected '/' and up to 254 printable ASCII characters without spaces.")
    return _SPECIAL.sub(r"\\\1", value)


def cookie_name(value: str | None) -> str:
    if value is None or not _COOKIE.fullmatch(value):
        raise DriverError("cookie_name: expected 1 to 64 of the characters A-Z a-z 0-9 ! $ % & * + . ^ _ | ~ -")
    return value


def expected_codes(monitor: HealthMonitor) -> str:
    """HAProxy's own notation is the tenant's: codes and ranges, with commas, but without spaces."""
    parts = [part.strip(" ") for part in monitor.expected_codes.split(",")]
    for part in parts:
        low, _, high = part.partition("-")
        if not _CODE.fullmatch(part) or (high and high < low):
            raise DriverError("expected_codes: expected codes like '200', '200,202' or '200-204', from 100 to 599.")
    return ",".join(parts)
