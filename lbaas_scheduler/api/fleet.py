"""The fleet at a glance: a page for people, and the document that it shows."""

from __future__ import annotations

from datetime import datetime
from importlib.resources import files
from typing import Any

from lbaas_scheduler.api.operations import Call, Operation, Raw
from lbaas_scheduler.db import overview
from lbaas_scheduler.db.overview import Overview
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus
from lbaas_scheduler.domain.trail import Trail
from lbaas_scheduler.errors import NotAuthorized

TAG = "Fleet"

SHOWN = 50
"""Unapplied deployments, and placements, that the document has at most."""

PAGE = files("lbaas_scheduler.api").joinpath("fleet.html").read_bytes()

Document = dict[str, Any]


def _page(call: Call) -> Raw:
    """Nothing of the fleet is in it: who has no token yet may load it, and is asked for one. Others must be administrators."""
    if call.context is not None and not call.context.is_admin:
        raise NotAuthorized(reason="only administrators see the fleet")
    return Raw(PAGE, "text/html; charset=utf-8")


def _overview(call: Call) -> Document:
    heard_since = call.services.heard_since()
    found = call.services.database.glance(lambda conn: overview.read(conn, heard_since, SHOWN))
    return {"fleet": _document(found)}


def _document(found: Overview) -> Document:
    return {
        "at": clock.utcnow().isoformat(),
        "devices": [_device(row) for row in found.devices],
        "agents": [_agent(row) for row in found.agents],
        "unapplied": {"count": found.unapplied_count, "oldest": [_deployment(row) for row in found.unapplied]},
        "placements": [_placement(row) for row in found.placements],
        "vips": dict(sorted(found.vips.items())),
    }


def _device(row: AnyRow) -> Document:
    return {
        "id": row.id,
        "name": row.name or row.id,
        "device_type": row.device_type,
        "zone": row.zone,
        "form": row.form,
        "tenant_id": row.tenant_id,
        "shared": bool(row.shared),
        "dedicated_to": row.dedicated_to or None,
        "admin_state": row.admin_state,
        "status": row.status,
        "status_description": row.status_description,
        "state": _state(row),
        "agent": row.agent_host,
        "vips": {"used": row.vips_used, "limit": row.vips_max},
        # Of the fullest resource class, which need not be VIPS.
        "fill": row.rank / 10_000,
    }


def _state(row: AnyRow) -> str:
    """In one word what keeps a device from taking VIPs; "open" = nothing."""
    if row.admin_state != AdminState.ENABLED:
        return str(row.admin_state)
    if row.status != DeviceStatus.ONLINE:
        return str(row.status).lower()
    if not row.agent_usable:
        return "no agent"
    return "open" if row.open else "full"


def _agent(row: AnyRow) -> Document:
    state = ("alive" if row.alive else "dead") if row.admin_state_up else "disabled"
    return {"id": row.id, "host": row.host, "state": state, "devices": row.devices, "heard_at": _time(row.heartbeat_at)}


def _deployment(row: AnyRow) -> Document:
    return {
        "resource_id": row.resource_id,
        "name": row.name or row.resource_id,
        "device_id": row.device_id,
        "device_name": row.device_name or row.device_id,
        "operation": row.operation,
        "attempts": row.attempts,
        "error": row.error,
        "pending_since": _time(row.pending_since),
    }


def _placement(row: AnyRow) -> Document:
    return {
        "resource_id": row.resource_id,
        "name": row.name or row.resource_id,
        "device_id": row.device_id,
        "device_name": row.device_name or row.device_id,
        "score": row.score,
        "why": Trail.from_document(row.trail).why(row.device_id),
        "placed_at": _time(row.created_at),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


_LIST: Document = {"type": "array", "items": {"type": "object"}}
_VIEW: Document = {
    "at": {"type": "string"},
    "devices": _LIST,
    "agents": _LIST,
    "unapplied": {"type": "object", "properties": {"count": {"type": "integer"}, "oldest": _LIST}},
    "placements": _LIST,
    "vips": {"type": "object", "additionalProperties": {"type": "integer"}},
}

PAGE_OPERATION = Operation(
    run=_page,
    rule=None,
    summary="Show the fleet to people",
    tag=TAG,
    gives={"type": "string"},
    media_type="text/html",
    may_fail=(403,),
)
OVERVIEW = Operation(
    run=_overview,
    rule="get_fleet_overview",
    summary="Show the fleet at a glance",
    tag=TAG,
    gives={
        "type": "object",
        "properties": {"fleet": {"type": "object", "properties": _VIEW, "required": sorted(_VIEW)}},
        "required": ["fleet"],
    },
)
