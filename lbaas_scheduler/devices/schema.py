"""What a device's attributes may look like, as JSON Schema, and errors about them that never repeat a value.

Every schema has a ``description`` that completes the sentence "… must be": a value may be a secret, so an error says what would
be right and not what was given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema

from lbaas_scheduler.domain.devices import FLAT, VLAN, VXLAN
from lbaas_scheduler.domain.statuses import AdminState, Form
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas import common
from lbaas_scheduler.schemas.checker import Validator

MAX_AMOUNT = 10**12
"""Largest total of a resource class: used × 10,000 stays far inside 64 bits."""
MAX_RATIO = 100

SECRET_WORDS = ("password", "passwd", "passphrase", "secret", "token", "key")
SECRET_KEY = re.compile(rf".*(?:{'|'.join(SECRET_WORDS)})", re.IGNORECASE | re.DOTALL)
"""Keys of ``management`` whose values are secrets: those that end in one of :data:`SECRET_WORDS`, in whatever case."""

MAX_DEPTH = 16
"""Of objects and lists in one another. MariaDB takes no more than 32 for JSON."""

_UNREPRESENTABLE = re.compile("[\x00\ud800-\udfff]")


def _text(longest: int, shortest: int = 0) -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": shortest,
        "maxLength": longest,
        "description": f"a string of {shortest} to {longest} characters",
    }


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"], "description": f"{schema['description']}, or null"}


def _choice(values: Iterable[str]) -> dict[str, Any]:
    names = [str(value) for value in values]
    return {"enum": names, "description": f"one of {', '.join(names)}"}


def _integer(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high, "description": f"an integer from {low} to {high}"}


def _any_case(endings: Iterable[str]) -> str:
    # Patterns of JSON Schema know no flags.
    spelt = ("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in endings)
    return f"({'|'.join(spelt)})$"


_BOOLEAN = {"type": "boolean", "description": "true or false"}
_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_NAME = {"pattern": r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$", "description": "named with letters, digits, '_', '.' and '-'"}
_HOST = {**_text(255, 1), "pattern": r"^\S+$", "description": "the host name that an agent reports, without spaces"}
_TOTAL = {**_integer(-1, MAX_AMOUNT), "description": f"an integer from 0 to {MAX_AMOUNT}, or -1 for unlimited"}

_MANAGEMENT = {
    "type": "object",
    "description": "an object {address, port, user, password, and the vendor's own}",
    "propertyNames": _NAME,
    "properties": {
        "address": _nullable(_text(255)),
        "port": _nullable(_integer(1, 65535)),
        "user": _nullable(_text(255)),
    },
    "patternProperties": {
        _any_case(SECRET_WORDS): {
            "type": ["string", "null"],
            "maxLength": 16_384,
            "description": "a string (it is kept as a secret), or null to remove it",
        },
    },
    "additionalProperties": {
        "type": ["string", "number", "boolean", "null", "array"],
        "items": {**_SCALAR, "description": "a string, number, true, false or null"},
        "description": "a string, number, true, false, null or a list of these",
    },
}

_CAPACITY = {
    "type": ["integer", "object", "null"],
    "minimum": -1,
    "maximum": MAX_AMOUNT,
    "required": ["total"],
    "properties": {
        "total": _TOTAL,
        "reserved": _integer(0, MAX_AMOUNT),
        "allocation_ratio": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": MAX_RATIO,
            "description": f"a number above 0 and up to {MAX_RATIO}",
        },
    },
    "additionalProperties": False,
    "description": "a total (an integer, -1 = unlimited), an object {total, reserved, allocation_ratio}, or null for none",
}

_INTERFACE = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": _text(64, 1),
        "max_vlans": {**_integer(-1, 4094), "description": "an integer from 0 to 4094, or -1 for unlimited"},
        "physical_network": _text(64),
        "kind": {"type": "string", "enum": [FLAT, VLAN, VXLAN], "description": "flat, vlan or vxlan"},
        "vlans": {**_text(1000), "description": "ranges of VLAN ids such as '100-199, 300-399'; '' = 1-4094"},
    },
    "additionalProperties": False,
    "description": "an object {name, max_vlans, physical_network, kind, vlans}",
}

CHANGEABLE: dict[str, Any] = {
    "name": common.NAME,
    "description": _text(255),
    "form": _choice(Form),
    "shared": _BOOLEAN,
    "zone": common.NAME,
    "admin_state": _choice(AdminState),
    "management": _nullable(_MANAGEMENT),
    "capabilities": {
        "type": ["array", "null"],
        "items": _text(255, 1),
        "description": "a list of traits, or null for all that the device type has",
    },
    "capacity": {
        "type": "object",
        "propertyNames": {"pattern": r"^[A-Z][A-Z0-9_]{0,63}$", "description": "named in capitals, digits and '_'"},
        "additionalProperties": _CAPACITY,
        "description": "an object {resource class: capacity}",
    },
    "interfaces": {"type": "array", "maxItems": 1000, "items": _INTERFACE, "description": "a list of interfaces"},
    "agent_host": _nullable(_HOST),
    "extra": {"type": ["object", "null"], "description": "an object of the vendor's own, or null"},
}

FIXED: dict[str, Any] = {
    "service": _text(64, 1),
    "device_type": _text(64, 1),
    "tenant_id": _nullable(common.TENANT),
}

READ_ONLY = frozenset({"id", "status", "status_description", "usage", "agent", "generation", "created_at", "updated_at"})


def check_new(attributes: Any) -> None:
    """:raises InvalidRequest: the attributes of a new device are wrong."""
    _refuse(READ_ONLY, attributes, "of a device is read-only.")
    check("device", {"properties": {**FIXED, **CHANGEABLE}, "required": ["device_type"]}, attributes)


def check_changes(changes: Any) -> None:
    """:raises InvalidRequest: the changes of a device are wrong, or name what cannot be changed."""
    _refuse(READ_ONLY, changes, "of a device is read-only.")
    _refuse(FIXED, changes, "of a device cannot be changed; remove the device and register it anew.")
    check("device", {"properties": CHANGEABLE}, changes)


def check(noun: str, schema: Mapping[str, Any], attributes: Any) -> None:
    """Hold attributes against ``properties`` and ``required`` of a schema that describes itself as this module's do.

    :raises InvalidRequest: names the attribute that is wrong, and what would be right; never what was given.
    """
    whole = {"type": "object", "description": "an object", "additionalProperties": False, **schema}
    errors = Validator(whole).iter_errors(attributes)
    first = min(errors, key=lambda error: [str(step) for step in error.absolute_path], default=None)
    if first is not None:
        raise InvalidRequest(_sentence(first, noun))
    _check_storable(attributes, "")


def _refuse(keys: Iterable[str], attributes: Any, why: str) -> None:
    given = sorted(set(attributes) & set(keys)) if isinstance(attributes, Mapping) else []
    if given:
        raise InvalidRequest(f"{given[0]} {why}")


def _sentence(error: jsonschema.ValidationError, noun: str) -> str:
    path = _path(error.absolute_path) or noun
    if error.validator == "required":
        missing = sorted(set(error.validator_value) - set(error.instance))
        return f"{path}: {missing[0]} is missing."
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = sorted(error.schema["properties"])
        unknown = sorted(str(key) for key in set(error.instance) - set(known))
        return f"{path}: unknown attribute {_short(unknown[0])}; known are {', '.join(known)}."
    if error.parent is not None or "propertyNames" in error.absolute_schema_path:
        return f"{path}: every key must be {error.schema['description']}."
    return f"{path} must be {error.schema['description']}."


def _check_storable(value: Any, path: str, depth: int = 0) -> None:
    """Refuse what a database cannot hold, wherever it is: NUL characters, halves of surrogate pairs, numbers that JSON has no
    word for, and what is nested too deeply."""
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"{path[:64]} must not be nested more than {MAX_DEPTH} deep.")
    if isinstance(value, str):
        if _UNREPRESENTABLE.search(value):
            raise InvalidRequest(f"{path} must not contain NUL characters or lone surrogates.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRequest(f"{path} must not contain infinite numbers.")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check_storable(str(key), f"{path or 'device'}: every key")
            _check_storable(item, _path([path, key] if path else [key]), depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_storable(item, path, depth + 1)


def _path(steps: Iterable[Any]) -> str:
    return ".".join(_short(step) if isinstance(step, str) and len(step) > 64 else str(step) for step in steps)


def _short(text: str) -> str:
    return repr(text if len(text) <= 64 else f"{text[:64]}…")
