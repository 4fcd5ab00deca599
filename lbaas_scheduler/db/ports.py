"""The ports of VIPs, as rows: there is no table of them, each VIP is its port."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.listing import fetch, matching
from lbaas_scheduler.db.models import networks, subnets, vips
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.domain.statuses import Status

OWNER = "neutron:LOADBALANCER"

_SERVING = (Status.ACTIVE, Status.PENDING_UPDATE)

_PLAIN = {
    "id": vips.c.port_id,
    "name": sa.literal("vip-") + vips.c.id,
    "tenant_id": vips.c.tenant_id,
    "device_id": vips.c.id,
    "device_owner": sa.literal(OWNER),
    "status": sa.case((vips.c.status.in_(_SERVING), "ACTIVE"), else_="DOWN"),
}
_BESIDES = (vips.c.admin_state_up, vips.c.subnet_id, vips.c.address)
_WITH_NETWORKS = vips.outerjoin(subnets, subnets.c.id == vips.c.subnet_id).outerjoin(
    networks, networks.c.id == subnets.c.network_id
)


def rows(conn: Connection, listing: Listing) -> list[AnyRow]:
    """With the VIP's ``admin_state_up``, ``subnet_id`` and ``address``. A network that the tenant may not see is NULL."""
    columns = {**_PLAIN, "network_id": _network_id(listing.tenant_id)}
    base = sa.select(*(column.label(name) for name, column in columns.items()), *_BESIDES).select_from(_WITH_NETWORKS)
    return fetch(conn, matching(conn, base, columns, listing), listing)


def _network_id(tenant_id: str | None) -> sa.ColumnElement[str | None]:
    if tenant_id is None:
        return subnets.c.network_id
    return sa.case((sa.or_(subnets.c.tenant_id == tenant_id, networks.c.shared), subnets.c.network_id))
