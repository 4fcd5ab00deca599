"""The ports of VIPs, as far as LBaaS v1 clients read them: to find a VIP's address, and to attach something to it."""

from __future__ import annotations

from typing import Any, NoReturn

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.crud import FIELDS, Shape, list_of, list_query, part_of
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.errors import PortNotFound, ServicePortInUse
from lbaas_scheduler.schemas import common
from lbaas_scheduler.schemas.access import projected

TAG = "Ports"

OWNER = "neutron:LOADBALANCER"

_TEXT: dict[str, Any] = {"type": "string"}
_VIEW: dict[str, Any] = {
    "id": common.UUID,
    "name": _TEXT,
    "tenant_id": _TEXT,
    "network_id": {"type": ["string", "null"]},
    "device_id": _TEXT,
    "device_owner": _TEXT,
    "admin_state_up": {"type": "boolean"},
    "status": {"enum": ["ACTIVE", "DOWN"]},
    "fixed_ips": {"type": "array", "items": {"type": "object"}},
}
SHAPE = Shape(
    "port",
    "ports",
    post=None,
    put=None,
    view={"type": "object", "properties": _VIEW, "required": sorted(_VIEW)},
    filters=dict.fromkeys(("id", "name", "tenant_id", "network_id", "device_id", "device_owner", "status"), wire.FILTER_TEXT),
)

_KEYS = {"id": "port_id", "device_id": "id"}
"""Filter → the attribute of a VIP that it is."""

_OF_VIPS = ["id", "tenant_id", "port_id", "subnet_id", "address", "admin_state_up", "status"]


def _index(call: Call) -> dict[str, Any]:
    filters = call.query.filters
    pages.check(filters, SHAPE.filters)
    # What most clients ask for: the port of one VIP.
    of_vips = {theirs: [it.lower() for it in filters[ours]] for ours, theirs in _KEYS.items() if ours in filters}
    possible = {name: [it for it in ids if common.is_uuid(it)] for name, ids in of_vips.items()}
    found = _ports(call, possible) if all(possible.values()) else []
    wanted = pages.matching(found, filters, SHAPE.filters)
    return pages.answer(call, SHAPE.collection, pages.in_memory(wanted, SHAPE.filters))


def _read(call: Call) -> dict[str, Any]:
    return {"port": projected(_port(call), call.query.fields)}


def _delete(call: Call) -> NoReturn:
    port = _port(call)
    raise ServicePortInUse(port_id=port["id"], vip_id=port["device_id"])


def _port(call: Call) -> dict[str, Any]:
    found = _ports(call, {"port_id": [call.ids["id"]]}) if common.is_uuid(call.ids["id"]) else []
    if not found:
        raise PortNotFound(id=call.ids["id"])
    return found[0]


def _ports(call: Call, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """Two statements, however many ports."""
    vips = call.services.balancers.get_vips(call.context, filters, _OF_VIPS)
    subnets = call.services.networks.get_subnets(call.context, fields=["id", "network_id"]) if vips else []
    networks = {subnet["id"]: subnet["network_id"] for subnet in subnets}
    return [_document(vip, networks.get(vip["subnet_id"])) for vip in vips]


def _document(vip: dict[str, Any], network_id: str | None) -> dict[str, Any]:
    return {
        "id": vip["port_id"],
        "name": f"vip-{vip['id']}",
        "tenant_id": vip["tenant_id"],
        "network_id": network_id,
        "device_id": vip["id"],
        "device_owner": OWNER,
        "admin_state_up": vip["admin_state_up"],
        "status": "ACTIVE" if vip["status"] in ("ACTIVE", "PENDING_UPDATE") else "DOWN",
        "fixed_ips": [{"subnet_id": vip["subnet_id"], "ip_address": vip["address"]}],
    }


INDEX = Operation(_index, "get_port", "List the ports of VIPs", TAG, gives=list_of(SHAPE), query=list_query(SHAPE.filters))
READ = Operation(_read, "get_port", "Show the port of a VIP", TAG, gives=part_of(SHAPE), query=FIELDS)
DELETE = Operation(_delete, "delete_port", "Refused: a VIP's port goes with its VIP", TAG, status=204, may_fail=(409,))
