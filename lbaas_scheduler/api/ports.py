"""The ports of VIPs, as far as LBaaS v1 clients read them: to find a VIP's address, and to attach something to it."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.crud import FIELDS, Shape, list_of, list_query, part_of
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.db import ports
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.errors import PortNotFound, ServicePortInUse
from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.access import Fields, listing, projected
from lbaas_scheduler.schemas.attributes import Attribute, Noun

TAG = "Ports"

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

_ANY_CASE = Attribute(wire.FILTER_TEXT, convert=converters.lower)
_NOUN = Noun(
    SHAPE.name,
    SHAPE.collection,
    {
        **dict.fromkeys(("id", "name", "network_id", "device_id"), _ANY_CASE),
        **dict.fromkeys(("tenant_id", "device_owner"), Attribute(wire.FILTER_TEXT)),
        "status": Attribute(wire.FILTER_TEXT, convert=converters.upper),
    },
)


def _index(call: Call) -> dict[str, Any]:
    return pages.answer(call, SHAPE.collection, partial(_search, call))


def _read(call: Call) -> dict[str, Any]:
    return {"port": projected(_port(call), call.query.fields)}


def _delete(call: Call) -> NoReturn:
    port = _port(call)
    raise ServicePortInUse(port_id=port["id"], vip_id=port["device_id"])


def _port(call: Call) -> dict[str, Any]:
    found = _search(call, filters={"id": [call.ids["id"]]})
    if not found:
        raise PortNotFound(id=call.ids["id"])
    return found[0]


def _search(call: Call, fields: Fields | None = None, **asked: Any) -> list[dict[str, Any]]:
    """One statement, however many ports, and one for a marker."""
    wanted = listing(call.context, _NOUN, **asked)
    rows = call.services.database.read(lambda conn: ports.rows(conn, wanted))
    return [projected(_document(row), fields) for row in rows]


def _document(row: AnyRow) -> dict[str, Any]:
    return {
        **{name: getattr(row, name) for name in _VIEW if name != "fixed_ips"},
        "fixed_ips": [{"subnet_id": row.subnet_id, "ip_address": row.address}],
    }


INDEX = Operation(_index, "get_port", "List the ports of VIPs", TAG, gives=list_of(SHAPE), query=list_query(SHAPE.filters))
READ = Operation(_read, "get_port", "Show the port of a VIP", TAG, gives=part_of(SHAPE), query=FIELDS)
DELETE = Operation(_delete, "delete_port", "Refused: a VIP's port goes with its VIP", TAG, status=204, may_fail=(409,))
