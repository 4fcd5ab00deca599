"""Placement rules, for operators: tried in their order, the first that matches shapes a request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.crud import Crud, Shape
from lbaas_scheduler.api.operations import Call
from lbaas_scheduler.plugins.device_scheduler import placement_rule_schema as schema
from lbaas_scheduler.schemas import common

TAG = "Placement rules"

_TEXT: dict[str, Any] = {"type": "string"}
_OBJECT: dict[str, Any] = {"type": "object"}
_VIEW: dict[str, Any] = {
    "id": common.UUID,
    "name": _TEXT,
    "service": _TEXT,
    "position": {"type": "integer"},
    "description": _TEXT,
    "enabled": {"type": "boolean"},
    "match": _OBJECT,
    "wishes": _OBJECT,
}
_CHANGEABLE = {name: value for name, value in schema.PROPERTIES.items() if name != "service"}

SHAPE = Shape(
    "placement_rule",
    "placement_rules",
    post={
        "type": "object",
        "properties": schema.PROPERTIES,
        "required": ["name", "wishes"],
        "additionalProperties": False,
    },
    put={"type": "object", "properties": _CHANGEABLE, "additionalProperties": False},
    view={"type": "object", "properties": _VIEW, "required": sorted(_VIEW)},
    filters={**dict.fromkeys(("id", "name", "service"), wire.FILTER_TEXT), "enabled": wire.BOOLEAN},
)
RULES = Crud(SHAPE, lambda services: services.devices, TAG)


def _index(call: Call) -> dict[str, Any]:
    """In the order in which they are tried, unless asked otherwise."""
    found = pages.matching(call.services.devices.get_placement_rules(call.context), call.query.filters, SHAPE.filters)
    return pages.answer(call, SHAPE.collection, pages.in_memory(found, _VIEW), order=(("position", True), ("name", True)))


INDEX = replace(RULES.index(), run=_index)
