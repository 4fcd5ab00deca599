"""Devices: operators' all, and tenants' own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.asked import checked
from lbaas_scheduler.api.crud import Crud, Shape
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.devices import registry, schema
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus, Form
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas import common
from lbaas_scheduler.schemas.access import is_id

TAG = "Devices"

_TEXT: dict[str, Any] = {"type": "string"}
_NULLABLE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_OBJECT: dict[str, Any] = {"type": "object"}

_VIEW: dict[str, Any] = {
    "id": common.UUID,
    "name": _TEXT,
    "description": _TEXT,
    "service": _TEXT,
    "device_type": _TEXT,
    "form": {"enum": [str(form) for form in Form]},
    "tenant_id": _NULLABLE_TEXT,
    "shared": {"type": "boolean"},
    "zone": _TEXT,
    "admin_state": {"enum": [str(state) for state in AdminState]},
    "status": {"enum": [str(status) for status in DeviceStatus]},
    "status_description": _TEXT,
    "management": _OBJECT,
    "capabilities": {"type": "array", "items": _TEXT},
    "capacity": _OBJECT,
    "interfaces": {"type": "array", "items": _OBJECT},
    "agent_host": _NULLABLE_TEXT,
    "extra": _OBJECT,
    "generation": {"type": "integer"},
    "usage": _OBJECT,
    "agent": {"type": ["object", "null"]},
    "created_at": _TEXT,
    "updated_at": _TEXT,
}
_FILTERS = {name: wire.BOOLEAN if name == "shared" else {**wire.FILTER_TEXT, "maxLength": 255} for name in registry.FILTERS}

SHAPE = Shape(
    "device",
    "devices",
    post={
        "type": "object",
        "properties": {**schema.FIXED, **schema.CHANGEABLE},
        "required": ["device_type"],
        "additionalProperties": False,
    },
    put={
        "type": "object",
        "properties": {**schema.CHANGEABLE, "generation": {"type": "integer", "description": "change only this one"}},
        "additionalProperties": False,
    },
    view={"type": "object", "properties": _VIEW, "required": sorted(_VIEW)},
    filters=_FILTERS,
)
DEVICES = Crud(SHAPE, lambda services: services.devices, TAG)


def _index(call: Call) -> dict[str, Any]:
    pages.check(call.query.filters, SHAPE.filters)
    return pages.answer(call, SHAPE.collection, _by_id(call) if _is_plain(call) else _as_a_whole(call))


def _is_plain(call: Call) -> bool:
    return not call.query.sorts and not call.query.page_reverse


def _by_id(call: Call) -> pages.Search:
    """The registry reads pages in the order of the ids."""

    def search(*, filters: Any, fields: Any, limit: int, marker: str | None, **_order: Any) -> list[dict[str, Any]]:
        if marker is not None and not is_id(marker):
            raise InvalidRequest(reason="'marker' must be the id of a device")
        return call.services.devices.get_devices(call.context, filters, fields, marker=marker, limit=limit)

    return search


def _as_a_whole(call: Call) -> pages.Search:
    """In any other order it is read as a whole: operators sort fleets of thousands at most."""
    return pages.in_memory(call.services.devices.get_devices(call.context, call.query.filters), _VIEW)


def _check(call: Call) -> dict[str, Any]:
    return {"health": call.services.devices.fleet.check_device(call.context, call.ids["id"])}


def _known_health(call: Call) -> dict[str, Any]:
    return {"health": call.services.devices.fleet.get_device_health(call.context, call.ids["id"])}


_KNOWN_HEALTH: dict[str, Any] = {
    "title": "DeviceHealth",
    "type": "object",
    "properties": {
        "device_id": _TEXT,
        "status": _VIEW["status"],
        "status_description": _TEXT,
        "failures": {"type": "integer"},
        "load": _OBJECT,
        "offline_since": _NULLABLE_TEXT,
        "next_check_at": _NULLABLE_TEXT,
    },
    "required": ["device_id", "failures", "load", "status", "status_description"],
}
_HEALTH: dict[str, Any] = {
    "title": "DeviceCheck",
    "type": "object",
    "properties": {**_KNOWN_HEALTH["properties"], "online": {"type": "boolean"}, "detail": _TEXT},
    "required": [*_KNOWN_HEALTH["required"], "detail", "online"],
}


def _write_off(call: Call) -> dict[str, Any]:
    body = checked(call.body, _WRITE_OFF, "write_off")
    return {"write_off": call.services.devices.fleet.write_off_device(call.context, call.ids["id"], **body)}


_WRITE_OFF: dict[str, Any] = {
    "type": "object",
    "properties": {"force": {"type": "boolean", "description": "true for a device that seems to be there"}},
    "additionalProperties": False,
}
_WRITTEN_OFF: dict[str, Any] = {
    "title": "DeviceWrittenOff",
    "type": "object",
    "properties": {"device_id": _TEXT, "settled": {"type": "integer"}, "gone": {"type": "array", "items": _TEXT}},
    "required": ["device_id", "gone", "settled"],
}

INDEX = replace(DEVICES.index(), run=_index)
HEALTH = Operation(
    run=_known_health,
    rule="get_device_health",
    summary="Show what the last checks of a device found",
    tag=TAG,
    gives={"type": "object", "properties": {"health": _KNOWN_HEALTH}, "required": ["health"]},
)
CHECK = Operation(
    run=_check,
    rule="check_device",
    summary="Ask a device now how it is",
    tag=TAG,
    gives={"type": "object", "properties": {"health": _HEALTH}, "required": ["health"]},
    may_fail=(502,),
)
WRITE_OFF = Operation(
    run=_write_off,
    rule="write_off_device",
    summary="Count as removed what a device that is gone was to remove",
    tag=TAG,
    envelope="write_off",
    takes={"title": "DeviceWriteOff", **_WRITE_OFF},
    gives={"type": "object", "properties": {"write_off": _WRITTEN_OFF}, "required": ["write_off"]},
)
