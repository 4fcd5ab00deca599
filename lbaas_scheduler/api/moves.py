"""Moves of VIPs between devices: begun one by one, or for all that is on a device."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.asked import checked
from lbaas_scheduler.api.crud import Shape, list_of, list_query, one_of
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.domain.moves import Cause, MoveState
from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.access import Fields, listing, projected
from lbaas_scheduler.schemas.attributes import Attribute, Noun

TAG = "Moves"

Document = dict[str, Any]

_TEXT: Document = {"type": "string"}
_NULLABLE_TEXT: Document = {"type": ["string", "null"]}
_VIEW: Document = {
    "resource_id": _TEXT,
    "service": _TEXT,
    "source_id": _TEXT,
    "target_id": _NULLABLE_TEXT,
    "state": {"enum": [str(state) for state in MoveState]},
    "cause": {"enum": [str(cause) for cause in Cause]},
    "error": _TEXT,
    "attempts": {"type": "integer"},
    "created_at": _NULLABLE_TEXT,
    "updated_at": _NULLABLE_TEXT,
}
_STATES: Document = {"type": "string", "enum": [str(state) for state in MoveState]}

SHAPE = Shape(
    "move",
    "moves",
    post={
        "type": "object",
        "properties": {
            "device_id": {
                "anyOf": [wire.readable(common.UUID), {"type": "null"}],
                "description": "the id of the device to move to, or null for whichever suits",
            }
        },
        "additionalProperties": False,
    },
    put=None,
    view={"type": "object", "properties": _VIEW, "required": sorted(_VIEW)},
    filters={
        "state": _STATES,
        **dict.fromkeys(("resource_id", "service", "source_id", "target_id", "cause"), wire.FILTER_TEXT),
    },
)

EVACUATION: Document = {
    "title": "Evacuation",
    "type": "object",
    "properties": {
        "device_id": _TEXT,
        "state": {"enum": ["running", "cancelled", "finished"]},
        "total": {"type": "integer"},
        "left": {"type": "integer"},
        "moves": {"type": "object", "additionalProperties": {"type": "integer"}},
        "waiting": {"type": "array", "items": {"type": "object"}},
        "started_at": _NULLABLE_TEXT,
        "finished_at": _NULLABLE_TEXT,
    },
    "required": ["device_id", "left", "moves", "state", "total", "waiting"],
}
_GIVES: Document = {"type": "object", "properties": {"evacuation": EVACUATION}, "required": ["evacuation"]}


_NOUN = Noun(
    SHAPE.name,
    SHAPE.collection,
    {
        **dict.fromkeys(("device_id", *SHAPE.filters), Attribute(wire.FILTER_TEXT, convert=converters.lower)),
        "service": Attribute(wire.FILTER_TEXT),
        "state": Attribute(_STATES),
    },
)
"""As a filter, ``device_id`` is the device that a resource comes from or goes to."""


def _index(call: Call) -> Document:
    """The last move of each resource."""

    def search(fields: Fields | None, **asked: Any) -> list[Document]:
        found = call.services.devices.fleet.search_moves(call.context, listing(call.context, _NOUN, **asked, key="resource_id"))
        return [projected(move, fields) for move in found]

    return pages.answer(call, SHAPE.collection, search, "resource_id")


def _show(call: Call) -> Document:
    return {SHAPE.name: call.services.devices.fleet.get_move(call.context, call.ids["id"])}


def _move(call: Call) -> Document:
    body = checked(call.body, SHAPE.post or {}, SHAPE.name)
    vip = call.services.balancers.get_vip(call.context, call.ids["id"], fields=["id"])
    return {SHAPE.name: call.services.devices.fleet.move_vip(call.context, vip["id"], body.get("device_id"))}


def _evacuate(call: Call) -> Document:
    return {"evacuation": call.services.devices.fleet.evacuate_device(call.context, call.ids["id"])}


def _show_evacuation(call: Call) -> Document:
    return {"evacuation": call.services.devices.fleet.get_evacuation(call.context, call.ids["id"])}


def _cancel_evacuation(call: Call) -> Document:
    return {"evacuation": call.services.devices.fleet.cancel_evacuation(call.context, call.ids["id"])}


INDEX = Operation(
    run=_index,
    rule="get_move",
    summary="List the last move of each resource",
    tag=TAG,
    gives=list_of(SHAPE),
    query={**list_query(SHAPE.filters), "device_id": {"type": "array", "items": wire.FILTER_TEXT}},
)
SHOW = Operation(
    run=_show,
    rule="get_move",
    summary="Show the last move of a resource",
    tag=TAG,
    gives=one_of(SHAPE),
)
MOVE = Operation(
    run=_move,
    rule="move_vip",
    summary="Begin to move a VIP to another device",
    tag=TAG,
    status=202,
    envelope=SHAPE.name,
    plural=SHAPE.collection,
    takes={"title": "MoveCreate", **(SHAPE.post or {})},
    gives=one_of(SHAPE),
    may_fail=(502,),
)
EVACUATE = Operation(
    run=_evacuate,
    rule="evacuate_device",
    summary="Drain a device and begin to move everything off it",
    tag=TAG,
    status=202,
    gives=_GIVES,
    may_fail=(502,),
)
SHOW_EVACUATION = Operation(
    run=_show_evacuation,
    rule="get_evacuation",
    summary="Show how far the last evacuation of a device is",
    tag=TAG,
    gives=_GIVES,
)
CANCEL_EVACUATION = Operation(
    run=_cancel_evacuation,
    rule="cancel_evacuation",
    summary="Let everything stay on a device that has not begun to leave it",
    tag=TAG,
    gives=_GIVES,
)
