"""VIPs, and where they are."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api import pages
from lbaas_scheduler.api.crud import Crud, Shape, list_of, list_query, one_of
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.plugins.loadbalancer.schemas.vips import VIP

TAG = "VIPs"

SHAPE = Shape.of(VIP)
VIPS = Crud(SHAPE, lambda services: services.balancers, TAG, may_fail={"POST": (503,)}, bulk=True)


_TEXT: dict[str, Any] = {"type": "string"}
_EXPLANATION: dict[str, Any] = {
    "title": "Explanation",
    "type": "object",
    "properties": {
        "resource_id": _TEXT,
        "device_id": _TEXT,
        "device_name": _TEXT,
        "why": _TEXT,
        "stages": {
            "type": "array",
            "items": {"type": "object", "properties": {"stage": _TEXT, "said": _TEXT}, "required": ["stage", "said"]},
        },
        "refused": {"type": "array", "items": _TEXT},
    },
    "required": ["device_id", "device_name", "refused", "resource_id", "stages", "why"],
}


def _placement(call: Call) -> dict[str, Any]:
    vip = call.services.balancers.get_vip(call.context, call.ids["id"], fields=["id"])
    return {"placement": call.services.devices.get_placement(call.context, vip["id"])}


def _explain(call: Call) -> dict[str, Any]:
    vip = call.services.balancers.get_vip(call.context, call.ids["id"], fields=["id"])
    return {"explanation": call.services.devices.explain(call.context, vip["id"])}


def _on_device(call: Call) -> dict[str, Any]:
    device = call.services.devices.get_device(call.context, call.ids["id"], fields=["id"])

    def search(**asked: Any) -> list[dict[str, Any]]:
        return call.services.balancers.get_vips_on_device(call.context, device["id"], **asked)

    return pages.answer(call, SHAPE.collection, search)


def _reset(call: Call) -> dict[str, Any]:
    return {SHAPE.name: call.services.balancers.reset_vip_status(call.context, call.ids["id"])}


RESET_STATUS = Operation(
    run=_reset,
    rule="reset_vip_status",
    summary="Apply a VIP anew that is stuck in ERROR or PENDING",
    tag=TAG,
    status=202,
    gives=one_of(SHAPE),
)
ON_DEVICE = Operation(
    run=_on_device,
    rule="get_device_vips",
    summary="List the VIPs on a device",
    tag=TAG,
    gives=list_of(SHAPE),
    query=list_query(SHAPE.filters),
)
PLACEMENT = Operation(
    run=_placement,
    rule="get_vip_placement",
    summary="Show on which device a VIP is, and why",
    tag=TAG,
    gives={"type": "object", "properties": {"placement": {"type": "object"}}, "required": ["placement"]},
)
EXPLAIN = Operation(
    run=_explain,
    rule="explain_vip",
    summary="Say in sentences why a VIP is where it is, stage by stage",
    tag=TAG,
    gives={"type": "object", "properties": {"explanation": _EXPLANATION}, "required": ["explanation"]},
)
