"""Bodies that speak of pools and allocations. What a configuration may hold, each kind says: kinds come with packages."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.schemas import common

Document = dict[str, Any]

KIND: Document = {
    "type": "string",
    "pattern": "^[0-9A-Za-z][0-9A-Za-z_.:@+-]{0,63}$",
    "description": "the name of a kind, such as vlan, vxlan, subnet or address",
}
NAME: Document = {
    "type": "string",
    "pattern": "^[0-9A-Za-z][0-9A-Za-z_.:@+-]{0,127}$",
    "description": "a name of at most 128 letters, digits and _ . : @ + -, which begins with one of the first two",
}
SCOPE: Document = {
    "type": "string",
    "maxLength": 255,
    "pattern": "^(?:cluster|(?:tenant|host):[!-~]{1,248})$",
    "description": "cluster, tenant:ID or host:NAME",
}
TTL_SECONDS: Document = {"type": "number", "exclusiveMinimum": 0, "maximum": 7 * 86_400}
GENERATION: Document = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
HISTORY_LIMIT: Document = {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 100}
OPTIONAL_ID: Document = {"type": ["string", "null"], "maxLength": 80}
CONFIG: Document = {"type": "object", "description": "what the kind has words for, and pick, quarantine_seconds and quotas"}


def _text(longest: int) -> Document:
    return {"type": "string", "maxLength": longest}


def _object(properties: Document, *required: str) -> Document:
    schema: Document = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


OWNER: Document = _object(
    {"type": {"type": "string", "minLength": 1, "maxLength": 64}, "id": {"type": "string", "minLength": 1, "maxLength": 255}},
    "type",
    "id",
)
VALUE: Document = {
    "type": ["integer", "string", "object", "null"],
    "description": "as the kind writes it: 100, 10.0.0.5, 10.0.1.0/24; null = any, and 0 is a value",
}
_OBJECTS: Document = {"type": "array", "items": {"type": "object"}, "description": "requests, as this one"}

_ASKED: Document = {
    "owner": OWNER,
    "slot": _text(128),
    "tenant_id": {**common.TENANT, "minLength": 0, "pattern": "^[!-~]*$", "description": "a tenant's id; empty = nobody's"},
    "value": VALUE,
    "host": _text(128),
    "children": _OBJECTS,
}
_TERMS: Document = {
    "request_id": {**_text(128), "description": "a repeated id gets the answer that it got before"},
    "ttl_seconds": {**TTL_SECONDS, "description": "only hold it, for so long; without, it is final at once"},
}

POOL_CREATE = _object({"kind": KIND, "name": NAME, "scope": {**SCOPE, "default": "cluster"}, "config": CONFIG}, "kind", "name")
POOL_UPDATE = _object(
    {
        "config": CONFIG,
        "drain": {"type": "boolean", "default": False, "description": "keep values outside of the new range until released"},
    },
    "config",
)
ALLOCATION_CREATE = _object({**_ASKED, **_TERMS}, "owner")
ALLOCATION_UPDATE = _object(
    {
        "status": {"type": "string", "enum": ["active"], "description": "makes a hold final"},
        "generation": GENERATION,
    },
    "status",
)
ALLOCATIONS_CREATE = _object(
    {"requests": {"type": "array", "minItems": 1, "items": {"type": "object"}, "description": "all of them, or none"}, **_TERMS},
    "requests",
)
RELEASE = _object(
    {"value": {"type": ["integer", "string", "object"], "description": "as the kind writes it"}, "owner": OWNER}, "value", "owner"
)
_DAYS: Document = {"type": "number", "minimum": 0, "maximum": 36_500}
RECONCILE = _object(
    {
        "dry_run": {"type": "boolean", "default": True},
        "grace_seconds": {"type": "number", "minimum": 0, "maximum": 36_500 * 86_400},
        "history_days": _DAYS,
        "request_days": _DAYS,
    }
)
