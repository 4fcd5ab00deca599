"""Whether a VIP's members lead back to the VIP: by its own address, or through other VIPs that they name."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import members, placements, pools, subnets, vips
from lbaas_scheduler.db.placements import CURRENT


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a VIP's connections may go.

    ``itself``: they may come back. ``host``: they may go to the loopback interface of the device's host, which is nobody's
    business but the VIP's that is there itself. ``others``: ids of the VIPs that they pass.
    """

    itself: bool
    host: bool
    others: frozenset[str]


def of(conn: Connection, vip_id: str) -> Reach:
    """In one statement, however long the way. A VIP without a pool reaches nothing."""
    rows = conn.execute(_REACH, {"vip": vip_id}).all()
    passed = frozenset(row.id for row in rows if not row.start)
    host = any(row.start and row.local and not ipaddress.ip_address(row.address).is_loopback for row in rows)
    return Reach(vip_id in passed, host, passed - {vip_id})


def hold(conn: Connection, vip_ids: Collection[str]) -> None:
    """Lock the pools of these VIPs until the end of the transaction: nobody gives them members meanwhile."""
    for ids in chunks(vip_ids):
        conn.execute(sa.update(pools).where(pools.c.vip_id.in_(ids)).values(vip_id=pools.c.vip_id))


# A member is another VIP where an address means the same to both: on one device, on one network, or of one tenant, whose networks
# a router may join. The same address on two tenants' networks apart is two addresses.
_THERE = sa.and_(placements.c.resource_id == vips.c.id, placements.c.role == CURRENT)
_SITES = vips.outerjoin(subnets, subnets.c.id == vips.c.subnet_id).outerjoin(placements, _THERE)
_SITE = (vips.c.id, vips.c.tenant_id, subnets.c.network_id, placements.c.device_id)
_START = (
    sa.select(*_SITE, sa.literal(1).label("start"))
    .select_from(_SITES)
    .where(vips.c.id == sa.bindparam("vip"))
    .cte("reach", recursive=True)
)
_NEXT = (
    sa.select(*_SITE, sa.literal(0))
    .select_from(
        _START.join(pools, pools.c.vip_id == _START.c.id)
        .join(members, sa.and_(members.c.pool_id == pools.c.id, members.c.leaving == ""))
        .join(vips, sa.and_(vips.c.address == members.c.address, vips.c.protocol_port == members.c.protocol_port))
        .outerjoin(subnets, subnets.c.id == vips.c.subnet_id)
        .outerjoin(placements, _THERE)
    )
    .where(
        sa.or_(
            vips.c.tenant_id == _START.c.tenant_id,
            subnets.c.network_id == _START.c.network_id,
            placements.c.device_id == _START.c.device_id,
        )
    )
)
# UNION leaves out what was reached before, so that a ring ends.
_PATH = _START.union(_NEXT)
_LOCAL = (
    sa.exists()
    .where(
        pools.c.vip_id == sa.bindparam("vip"),
        members.c.pool_id == pools.c.id,
        members.c.leaving == "",
        sa.or_(members.c.address.like("127.%"), members.c.address == "::1"),
    )
    .label("local")
)
_REACH = sa.select(_PATH.c.id, _PATH.c.start, vips.c.address, _LOCAL).join(vips, vips.c.id == _PATH.c.id)
