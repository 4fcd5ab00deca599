"""JSON Schema, read strictly.

``pattern`` must match the *whole* value: Python's ``$`` would let a trailing newline through into a configuration file.
Formats are always checked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend

Schema = Mapping[str, Any]

FORMATS = FormatChecker(formats=())

_MAX_SHOWN = 64


def _is_usable_address(value: object) -> bool:
    """An address of one host, of this or another machine. IPv6 scopes (``%eth0``) mean something on one host only."""
    if not isinstance(value, str):
        return True
    address = ipaddress.ip_address(value)
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id is not None or address.ipv4_mapped is not None):
        return False
    reserved = address.version == 4 and address.is_reserved
    return not (address.is_multicast or address.is_unspecified or address.is_link_local or reserved)


def _is_address(value: object) -> bool:
    """Any address without a scope."""
    return not isinstance(value, str) or ("%" not in value and bool(ipaddress.ip_address(value)))


def _is_list_of_codes(value: object) -> bool:
    """A range must not be empty. That codes are codes at all is the pattern's business."""
    if not isinstance(value, str) or "-" not in value:
        return True
    low, _, high = value.partition("-")
    return low <= high


FORMATS.checks("ip-address", raises=ValueError)(_is_usable_address)
FORMATS.checks("host-address", raises=ValueError)(_is_address)
FORMATS.checks("status-codes")(_is_list_of_codes)


def _whole_pattern(_validator: Any, pattern: str, value: Any, _schema: Schema) -> Iterator[ValidationError]:
    if isinstance(value, str) and not re.fullmatch(pattern, value, re.ASCII):
        yield ValidationError(f"{shown(value)} does not match {pattern}")


Validator = extend(Draft202012Validator, {"pattern": _whole_pattern})


def violation(schema: Schema, value: Any) -> str | None:
    """Why ``value`` does not fit ``schema``, as the end of a sentence; None = it fits."""
    error = next(_validator_of(_Frozen(schema)).iter_errors(value), None)
    if error is None:
        return None
    inner = error.schema if isinstance(error.schema, Mapping) else {}
    if error.validator in ("pattern", "format", "anyOf") and "description" in inner:
        return f"{shown(error.instance)} is not {inner['description']}"
    where = f" (in '{'.'.join(map(str, error.absolute_path))}')" if error.absolute_path else ""
    return _sentence(error) + where


def shown(value: Any) -> str:
    """``value`` for an error text: escaped, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


_SENTENCES = {
    "type": "is not of type {wanted}",
    "enum": "is not one of {wanted}",
    "maxLength": "is longer than {wanted} characters",
    "minLength": "is shorter than {wanted} characters",
    "exclusiveMinimum": "is not more than {wanted}",
    "minimum": "is less than the minimum of {wanted}",
    "maximum": "is greater than the maximum of {wanted}",
    "uniqueItems": "names an item twice",
}


def _sentence(error: ValidationError) -> str:
    wanted = error.validator_value
    if isinstance(wanted, list):
        wanted = ", ".join(map(str, wanted))
    return f"{shown(error.instance)} {_SENTENCES.get(str(error.validator), 'does not fit').format(wanted=wanted)}"


class _Frozen:
    """Makes a schema a key by identity: schemas are constants of this package."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self.schema is other.schema


@lru_cache(maxsize=256)
def _validator_of(frozen: _Frozen) -> Any:
    Validator.check_schema(frozen.schema)
    return Validator(frozen.schema, format_checker=FORMATS)
