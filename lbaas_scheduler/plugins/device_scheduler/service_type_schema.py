"""What a service type's attributes may look like."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.devices.schema import check
from lbaas_scheduler.domain.loadbalancers import ForwardedFor
from lbaas_scheduler.plugins.device_scheduler import wishes
from lbaas_scheduler.schemas import common

_DEFINITION = {
    "type": "object",
    "required": ["service"],
    "properties": {
        "service": {"type": "string", "minLength": 1, "maxLength": 64, "description": "the name of a service"},
        "plugin": {"type": ["string", "null"], "maxLength": 255, "description": "the name of the service's plugin, or null"},
        "driver": {"type": ["string", "null"], "minLength": 1, "maxLength": 64, "description": "a device type, or null for any"},
    },
    "additionalProperties": False,
    "description": "an object {service, plugin, driver}",
}

EVACUATE = "evacuate_after_seconds"
"""An option that is no wish: after how long a lost device is given up."""

FORWARDED_FOR = "forwarded_for"
"""The option that is about what VIPs do, and no wish either."""

MAX_PATIENCE_SECONDS = 10**9
"""Over thirty years. With more, the moment that so long ago was lies before all calendars."""

_OPTIONS = {
    **wishes.SCHEMA,
    "properties": {
        **wishes.PROPERTIES,
        EVACUATE: {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MAX_PATIENCE_SECONDS,
            "description": (
                f"after how many seconds (0 to {MAX_PATIENCE_SECONDS}) what is on a lost device moves away by itself "
                "(null: never)"
            ),
        },
        FORWARDED_FOR: {
            "enum": [*map(str, ForwardedFor), None],
            "description": (
                "'replace' (as null: what a client sends as X-Forwarded-For gives way to its address) or 'append' (its address "
                "comes after what it sent)"
            ),
        },
    },
    "description": f"an object {{{', '.join([*wishes.PROPERTIES, EVACUATE, FORWARDED_FOR])}}}, or null",
}

PROPERTIES = {
    "name": {
        **common.NAME,
        "minLength": 1,
        "description": "a string of 1 to 255 characters, without blanks at its beginning or end",
    },
    "description": {"type": "string", "maxLength": 255, "description": "a string of 0 to 255 characters"},
    "enabled": {"type": "boolean", "description": "true or false"},
    "default": {"type": "boolean", "description": "true or false"},
    "service_definitions": {
        "type": ["array", "null"],
        "maxItems": 100,
        "items": _DEFINITION,
        "description": "a list of definitions {service, plugin, driver}",
    },
    "options": _OPTIONS,
}


def check_new(attributes: Any) -> None:
    """What ``options`` mean together is judged by :func:`wishes.check`.

    :raises InvalidRequest: the attributes of a new service type are wrong.
    """
    check("service_type", {"properties": PROPERTIES, "required": ["name"]}, attributes)


def check_changes(changes: Any) -> None:
    """As :func:`check_new`.

    :raises InvalidRequest: the changes of a service type are wrong.
    """
    check("service_type", {"properties": PROPERTIES}, changes)
