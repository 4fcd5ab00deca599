"""How pools of resources and their values look from outside, and what lists of them can be asked."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api import wire
from lbaas_scheduler.api.crud import Shape
from lbaas_scheduler.schemas import resources as schemas

Document = dict[str, Any]

_TEXT: Document = {"type": "string"}
_NULLABLE_TEXT: Document = {"type": ["string", "null"]}
_INTEGER: Document = {"type": "integer"}
_OBJECT: Document = {"type": "object"}


def _view(properties: Document, *optional: str) -> Document:
    return {"type": "object", "properties": properties, "required": sorted(properties.keys() - set(optional))}


def answer(name: str, schema: Document) -> Document:
    """``{name: what fits the schema}``."""
    return {"type": "object", "properties": {name: schema}, "required": [name]}


POOL = Shape(
    "resource",
    "resources",
    post=schemas.POOL_CREATE,
    put=schemas.POOL_UPDATE,
    view=_view(
        {
            "id": _TEXT,
            "kind": _TEXT,
            "name": _TEXT,
            "scope": _TEXT,
            "domain": _TEXT,
            "config": _OBJECT,
            "state": {"enum": ["active", "draining"]},
            "generation": _INTEGER,
            "parent_allocation_id": _TEXT,
            "carved": {"type": "array", "items": {"type": "array"}},
        },
        "carved",
    ),
    filters={
        "state": {"type": "string", "enum": ["active", "draining"]},
        **dict.fromkeys(("id", "kind", "name", "scope", "domain", "parent_allocation_id"), wire.FILTER_TEXT),
    },
)

_OWNER = _view({"type": _TEXT, "id": _TEXT})
STATUSES = ["held", "active", "quarantined"]

ALLOCATION = Shape(
    "allocation",
    "allocations",
    post=schemas.ALLOCATION_CREATE,
    put=schemas.ALLOCATION_UPDATE,
    view=_view(
        {
            "id": _TEXT,
            "kind": _TEXT,
            "value": {"description": "as the kind writes it"},
            "generation": _INTEGER,
            "status": {"enum": STATUSES},
            "pool_id": _TEXT,
            "owner": _OWNER,
            "slot": _TEXT,
            "part": _TEXT,
            "due_at": _NULLABLE_TEXT,
            "created": {"type": "boolean"},
            "children": {"type": "array", "items": _OBJECT},
            "within": {"type": ["object", "null"]},
            "last_owner": {**_TEXT, "description": "who had a quarantined value: type/id/slot"},
        }
    ),
    filters={
        "status": {"type": "string", "enum": STATUSES},
        **dict.fromkeys(("id", "kind", "value", "slot", "part", "pool_id"), wire.FILTER_TEXT),
    },
)
OWNER_FILTERS: Document = {"owner_type": wire.FILTER_TEXT, "owner_id": wire.FILTER_TEXT}

USAGE: Document = {
    "title": "ResourceUsage",
    **_view(
        {
            **dict.fromkeys(("kind", "pool", "scope", "state", "allocated", "free_ranges"), _TEXT),
            **dict.fromkeys(("total", "used", "held", "quarantined", "free"), _INTEGER),
        }
    ),
}
EVENTS: Document = {
    "type": "array",
    "items": {
        "title": "ResourceEvent",
        "type": "object",
        "properties": {
            **dict.fromkeys(("at", "actor", "op", "kind", "pool", "owner_type", "owner_id", "allocation_id", "note"), _TEXT),
            "value": {"description": "as the kind writes it"},
        },
        "required": ["actor", "at", "kind", "op", "pool"],
    },
}
FINDINGS: Document = {
    "type": "array",
    "items": {
        "title": "ResourceFinding",
        **_view({**dict.fromkeys(("rule", "text", "allocation_id", "pool_id"), _TEXT), "repair": {"type": "boolean"}}),
    },
}
REPORT: Document = {
    "title": "ResourceReport",
    "type": "object",
    "properties": {
        "dry_run": {"type": "boolean"},
        **{
            name: {"type": "array", "items": _TEXT}
            for name in ("expired", "kept", "orphans", "leaked", "suspects", "unknown", "undefined", "failed")
        },
        "rested": _INTEGER,
        "forgotten": _INTEGER,
    },
    "required": ["dry_run", "expired", "leaked", "orphans"],
}
REMOVED = answer("removed", {"type": "boolean", "description": "false: it is draining, and goes with its last value"})
RELEASED = answer("released", {"type": "integer", "description": "how many values came back"})
