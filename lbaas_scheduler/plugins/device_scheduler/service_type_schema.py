"""What a service type's attributes may look like."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.devices.schema import check
from lbaas_scheduler.domain.requests import Tenancy
from lbaas_scheduler.domain.statuses import Form
from lbaas_scheduler.domain.traits import is_trait
from lbaas_scheduler.errors import InvalidRequest

_TRAITS = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": 255, "description": "the name of a trait"},
    "description": "a list of traits",
}

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

_OPTIONS = {
    "type": ["object", "null"],
    "properties": {
        "tenancy": {"enum": [*map(str, Tenancy), None], "description": f"one of {', '.join(Tenancy)}, or null"},
        "form": {"enum": [*map(str, Form), None], "description": f"one of {', '.join(Form)}, or null"},
        "zone": {"type": ["string", "null"], "maxLength": 255, "description": "the name of a zone, or null for any"},
        "required": _TRAITS,
        "forbidden": _TRAITS,
        "preferred": _TRAITS,
        "options": {"type": "object", "description": "an object of options for the algorithm"},
    },
    "additionalProperties": False,
    "description": "an object {tenancy, form, zone, required, forbidden, preferred, options}, or null",
}

PROPERTIES = {
    "name": {"type": "string", "minLength": 1, "maxLength": 255, "description": "a string of 1 to 255 characters"},
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
    """:raises InvalidRequest: the attributes of a new service type are wrong."""
    check("service_type", {"properties": PROPERTIES, "required": ["name"]}, attributes)
    _check_traits(attributes)


def check_changes(changes: Any) -> None:
    """:raises InvalidRequest: the changes of a service type are wrong."""
    check("service_type", {"properties": PROPERTIES}, changes)
    _check_traits(changes)


def _check_traits(attributes: dict[str, Any]) -> None:
    for key in ("required", "forbidden", "preferred"):
        for name in (attributes.get("options") or {}).get(key, ()):
            if not is_trait(name):
                raise InvalidRequest(f"options.{key}: {name[:64]!r} is no trait; names of vendors' own start with CUSTOM_.")
