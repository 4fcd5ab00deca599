"""The rows of VIPs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.deployments import APPLY
from lbaas_scheduler.db.listing import fetch, matching
from lbaas_scheduler.db.models import deployments, devices, placements, vips
from lbaas_scheduler.db.placements import CURRENT
from lbaas_scheduler.db.rows import AnyRow, AnySelect
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.domain.statuses import Status

COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    **{name: column for name, column in vips.c.items() if name not in ("persistence_type", "cookie_name", "created_at")},
    "status_description": sa.func.nullif(vips.c.status_description, ""),
}


_INSERT = sa.insert(vips)


def insert(conn: Connection, values: Mapping[str, Any]) -> None:
    conn.execute(_INSERT, {**values, "created_at": utcnow()})


def exists(conn: Connection, vip_id: str) -> bool:
    return conn.execute(sa.select(vips.c.id).where(vips.c.id == vip_id)).first() is not None


def all_ids(conn: Connection) -> list[str]:
    return list(conn.scalars(sa.select(vips.c.id)))


def addresses(conn: Connection, subnet_id: str) -> dict[str, str]:
    """VIP → its address, of a subnet's VIPs."""
    found = conn.execute(sa.select(vips.c.id, vips.c.address).where(vips.c.subnet_id == subnet_id, vips.c.address != ""))
    return {row.id: row.address for row in found}


def all_addresses(conn: Connection) -> list[tuple[str, str, str]]:
    """Subnet, address and id of all VIPs that have an address."""
    query = sa.select(vips.c.subnet_id, vips.c.address, vips.c.id).where(vips.c.address != "").order_by(vips.c.id)
    return [(row.subnet_id, row.address, row.id) for row in conn.execute(query)]


def find(conn: Connection, vip_id: str) -> AnyRow | None:
    return conn.execute(sa.select(vips).where(vips.c.id == vip_id)).one_or_none()


def by_ids(conn: Connection, vip_ids: Collection[str]) -> list[AnyRow]:
    return [row for ids in chunks(vip_ids) for row in conn.execute(_BY_IDS, {"ids": ids})]


_BY_IDS = sa.select(vips).where(vips.c.id.in_(sa.bindparam("ids")))


def rows(conn: Connection, listing: Listing) -> list[AnyRow]:
    return fetch(conn, matching(conn, sa.select(vips), COLUMNS, listing), listing)


def update(conn: Connection, vip_id: str, values: Mapping[str, Any]) -> None:
    conn.execute(sa.update(vips).where(vips.c.id == vip_id).values(**values))


def set_status(conn: Connection, vip_id: str, status: str, description: str = "") -> None:
    update(conn, vip_id, {"status": status, "status_description": description})


def settle(conn: Connection, vip_ids: Collection[str], statuses: Collection[Status]) -> None:
    """Those of the VIPs that are in one of ``statuses`` become ACTIVE, or DISABLED where they are down by their owner's will."""
    for ids in chunks(vip_ids):
        conn.execute(_SETTLE, {"ids": ids, "statuses": statuses})


_SETTLE = (
    sa.update(vips)
    .where(vips.c.id.in_(sa.bindparam("ids")), vips.c.status.in_(sa.bindparam("statuses")))
    .values(
        status=sa.case((vips.c.admin_state_up, str(Status.ACTIVE)), else_=str(Status.DISABLED)),
        status_description="",
    )
)


def on_device(conn: Connection, device_id: str, vip_ids: Collection[str]) -> set[str]:
    """Those of the VIPs that live on the device, and are to stay. One that is on its way there is not one of them."""
    query = _living().with_only_columns(deployments.c.resource_id).where(deployments.c.device_id == device_id)
    return {id_ for ids in chunks(vip_ids) for id_ in conn.execute(query.where(deployments.c.resource_id.in_(ids))).scalars()}


def device_traits(conn: Connection, vip_ids: Collection[str]) -> dict[str, frozenset[str]]:
    """VIP id → what the device can do that it lives on."""
    query = _living().join(devices, devices.c.id == deployments.c.device_id).where(deployments.c.resource_id.in_(vip_ids))
    columns = (deployments.c.resource_id, devices.c.traits)
    return {row.resource_id: frozenset(row.traits) for row in conn.execute(query.with_only_columns(*columns))}


def _living() -> AnySelect:
    """Deployments on the devices that serve; of a VIP that moves there is another one beside it."""
    there = sa.and_(
        placements.c.resource_id == deployments.c.resource_id,
        placements.c.device_id == deployments.c.device_id,
        placements.c.role == CURRENT,
    )
    return sa.select(deployments.c.resource_id).join(placements, there).where(deployments.c.operation == APPLY)


def delete(conn: Connection, vip_id: str) -> None:
    conn.execute(sa.delete(vips).where(vips.c.id == vip_id))
