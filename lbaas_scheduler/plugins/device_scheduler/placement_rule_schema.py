"""What a placement rule's attributes may look like."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from lbaas_scheduler.devices.schema import check
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.plugins.device_scheduler import wishes
from lbaas_scheduler.schemas import common

MAX_POSITION = 1_000_000
MAX_VALUES = 100

_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def _some(description: str, **schema: Any) -> dict[str, Any]:
    """One value or a list of them, or null, which takes the condition away."""
    one = {"type": "string", "minLength": 1, "maxLength": 255, **schema}
    return {
        "anyOf": [one, {"type": "array", "minItems": 1, "maxItems": MAX_VALUES, "items": one}, {"type": "null"}],
        "description": f"{description}, or a list of 1 to {MAX_VALUES} such, or null",
    }


_MATCH = {
    "type": ["object", "null"],
    "properties": {
        "tenant_id": _some(**common.TENANT),
        "network_id": _some("the id of a network"),
        "subnet_id": _some("the id of a subnet"),
        "protocol": _some("the name of a protocol (TCP, HTTP, HTTPS)"),
        "protocol_port": _some("a port from 1 to 65535 or a range such as '8000-8999'", type=["integer", "string"], maxLength=11),
        "name": _some("a name, in which * and ? stand for any characters"),
    },
    "additionalProperties": False,
    "description": "an object {tenant_id, network_id, subnet_id, protocol, protocol_port, name}, or null for everything",
}

PROPERTIES = {
    "name": {
        **common.NAME,
        "minLength": 1,
        "description": "a string of 1 to 255 characters, without blanks at its beginning or end",
    },
    "service": {"type": "string", "minLength": 1, "maxLength": 64, "description": "the name of a service"},
    "position": {
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_POSITION,
        "description": f"an integer from 0 to {MAX_POSITION}; lower ones are tried first",
    },
    "description": {"type": "string", "maxLength": 255, "description": "a string of 0 to 255 characters"},
    "enabled": {"type": "boolean", "description": "true or false"},
    "match": _MATCH,
    "wishes": wishes.SCHEMA,
}


def check_new(attributes: Any, services: Collection[str]) -> None:
    """What its conditions and wishes mean together is judged by :func:`check_whole`.

    :param services: the loaded ones.
    :raises InvalidRequest: the attributes of a new rule are wrong."""
    check("placement_rule", {"properties": PROPERTIES, "required": ["name", "wishes"]}, attributes)
    service = attributes.get("service")
    if service is None and len(services) != 1:
        raise InvalidRequest(f"placement_rule: service is missing; loaded: {', '.join(sorted(services)) or 'none'}.")
    if service is not None and service not in services:
        raise InvalidRequest(f"service: unknown service {service!r}; loaded: {', '.join(sorted(services)) or 'none'}.")


def check_changes(changes: Any) -> None:
    """As :func:`check_new`.

    :raises InvalidRequest: the changes of a rule are wrong."""
    if isinstance(changes, Mapping) and "service" in changes:
        raise InvalidRequest("service of a placement rule cannot be changed; remove the rule and write it anew.")
    check("placement_rule", {"properties": PROPERTIES}, changes)


def check_whole(match: Mapping[str, Any], asked: Mapping[str, Any], algorithms: Collection[str]) -> None:
    """Hold all conditions and wishes of a rule against each other.

    :raises InvalidRequest: a range of ports is wrong, nothing is asked for, or what is asked for contradicts itself."""
    ports(match)
    if not asked:
        raise InvalidRequest(f"wishes must ask for something: {', '.join(wishes.PROPERTIES)}.")
    wishes.check("wishes", asked, algorithms)


def ports(match: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """First and last of each range.

    :raises InvalidRequest: one is no range of ports.
    """
    return tuple(_range(str(value)) for value in values(match, "protocol_port"))


def values(match: Mapping[str, Any], name: str) -> list[Any]:
    """The values of one condition; none = it is not there."""
    given = match.get(name, [])
    return given if isinstance(given, list) else [given]


def _range(text: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(text)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= low <= high <= 65535:
        raise InvalidRequest("match.protocol_port must be a port from 1 to 65535 or a range such as '8000-8999'.")
    return low, high
