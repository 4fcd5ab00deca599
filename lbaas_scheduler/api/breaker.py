"""The circuit breaker: whether moves that nobody asked for are frozen, for operators to see and to end."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api.operations import Call, Operation

TAG = "Moves"

_MOMENT: dict[str, Any] = {"type": ["string", "null"]}
_KIND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "description": "what was lost: devices or agents"},
        "tripped_at": _MOMENT,
        "acknowledged_at": _MOMENT,
        "reason": {"type": "string"},
        "total": {"type": "integer"},
        "lost": {"type": "integer"},
    },
    "required": ["acknowledged_at", "kind", "lost", "reason", "total", "tripped_at"],
}
_BREAKER: dict[str, Any] = {
    "title": "Breaker",
    "type": "object",
    "properties": {"frozen": {"type": "boolean"}, "kinds": {"type": "array", "items": _KIND}},
    "required": ["frozen", "kinds"],
}
_GIVES: dict[str, Any] = {"type": "object", "properties": {"breaker": _BREAKER}, "required": ["breaker"]}


def _show(call: Call) -> dict[str, Any]:
    return {"breaker": call.services.devices.fleet.get_breaker(call.context)}


def _reset(call: Call) -> dict[str, Any]:
    return {"breaker": call.services.devices.fleet.reset_breaker(call.context)}


SHOW = Operation(
    run=_show,
    rule="get_breaker",
    summary="Show whether automatic moves are frozen, and why",
    tag=TAG,
    gives=_GIVES,
)
RESET = Operation(
    run=_reset,
    rule="reset_breaker",
    summary="Give up what was lost, and let automatic moves go on",
    tag=TAG,
    gives=_GIVES,
)
