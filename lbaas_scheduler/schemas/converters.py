"""What is done to a value before it is validated: LBaaS v1 clients send numbers and booleans as strings.

A converter never refuses: what it does not understand it hands on, and the schema says what would have been right.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any

Converter = Callable[[Any], Any]

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_TRUE = frozenset({"true", "1"})
_FALSE = frozenset({"false", "0"})


def integer(value: Any) -> Any:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def boolean(value: Any) -> Any:
    if isinstance(value, str):
        word = value.lower()
        return True if word in _TRUE else False if word in _FALSE else value
    if value in (0, 1) and not isinstance(value, float):
        return bool(value)
    return value


def address(value: Any) -> Any:
    """The canonical text of an IP address, so that ``2001:DB8::1`` and ``2001:db8:0::1`` are one address."""
    if not isinstance(value, str):
        return value
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return value


def lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def empty_to_none(value: Any) -> Any:
    """``{}`` is another way to say null."""
    return None if value == {} else value


def list_of(value: Any) -> Any:
    """A scalar is a list of one, null an empty one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
