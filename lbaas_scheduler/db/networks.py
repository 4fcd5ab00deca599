"""The rows of networks and subnets of the local registry."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.listing import fetch, matching
from lbaas_scheduler.db.models import networks, pools, subnets, vips
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.listing import Listing

NETWORK_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    name: column for name, column in networks.c.items() if name != "created_at"
}
SUBNET_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    **{name: column for name, column in subnets.c.items() if name not in ("allocation_pools", "created_at")},
    "shared": networks.c.shared,
}

_NETWORKS = sa.select(networks)
_SUBNETS = sa.select(subnets, networks.c.shared).join(networks, networks.c.id == subnets.c.network_id)
_SUBNET = _SUBNETS.where(subnets.c.id == sa.bindparam("id"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subnet lies."""

    cidr: str
    network_id: str


def insert(conn: Connection, values: Mapping[str, Any]) -> None:
    conn.execute(sa.insert(networks).values(created_at=utcnow(), **values))


def find(conn: Connection, network_id: str) -> AnyRow | None:
    return conn.execute(_NETWORKS.where(networks.c.id == network_id)).one_or_none()


def by_ids(conn: Connection, network_ids: Collection[str]) -> list[AnyRow]:
    return [row for ids in chunks(network_ids) for row in conn.execute(_NETWORKS.where(networks.c.id.in_(ids)))]


def rows(conn: Connection, listing: Listing, tenant_id: str | None) -> list[AnyRow]:
    """``tenant_id``: his networks and the shared ones; None = all."""
    base = _NETWORKS if tenant_id is None else _NETWORKS.where(sa.or_(networks.c.tenant_id == tenant_id, networks.c.shared))
    return fetch(conn, matching(conn, base, NETWORK_COLUMNS, listing), listing)


def update(conn: Connection, network_id: str, values: Mapping[str, Any]) -> None:
    conn.execute(sa.update(networks).where(networks.c.id == network_id).values(**values))


def delete(conn: Connection, network_id: str) -> None:
    conn.execute(sa.delete(networks).where(networks.c.id == network_id))


def lock(conn: Connection, network_id: str) -> bool:
    """Hold the network's row until the end of the transaction. :returns: whether it is there."""
    same = {"network_type": networks.c.network_type}
    return conn.execute(sa.update(networks).where(networks.c.id == network_id).values(same)).rowcount == 1


def insert_subnet(conn: Connection, values: Mapping[str, Any]) -> None:
    conn.execute(sa.insert(subnets).values(created_at=utcnow(), **values))


def find_subnet(conn: Connection, subnet_id: str) -> AnyRow | None:
    """The subnet, with whether its network is ``shared``."""
    return conn.execute(_SUBNET, {"id": subnet_id}).one_or_none()


def subnet_rows(conn: Connection, listing: Listing, tenant_id: str | None) -> list[AnyRow]:
    """``tenant_id``: his subnets and those of shared networks; None = all."""
    base = _SUBNETS if tenant_id is None else _SUBNETS.where(sa.or_(subnets.c.tenant_id == tenant_id, networks.c.shared))
    return fetch(conn, matching(conn, base, SUBNET_COLUMNS, listing), listing)


def subnets_of(conn: Connection, network_id: str) -> list[AnyRow]:
    return list(conn.execute(sa.select(subnets).where(subnets.c.network_id == network_id).order_by(subnets.c.id)))


def update_subnet(conn: Connection, subnet_id: str, values: Mapping[str, Any]) -> None:
    conn.execute(sa.update(subnets).where(subnets.c.id == subnet_id).values(**values))


def delete_subnet(conn: Connection, subnet_id: str) -> None:
    conn.execute(sa.delete(subnets).where(subnets.c.id == subnet_id))


def lock_subnet(conn: Connection, subnet_id: str) -> bool:
    """Hold the subnet's row until the end of the transaction. :returns: whether it is there."""
    same = {"ip_version": subnets.c.ip_version}
    return conn.execute(sa.update(subnets).where(subnets.c.id == subnet_id).values(same)).rowcount == 1


def users_of(conn: Connection, subnet_id: str) -> dict[str, int]:
    """How many pools and VIPs use the subnet."""
    counts = {"pools": sa.func.count(), "VIPs": sa.func.count()}
    tables = {"pools": pools, "VIPs": vips}
    return {
        name: conn.execute(sa.select(count).select_from(tables[name]).where(tables[name].c.subnet_id == subnet_id)).scalar_one()
        for name, count in counts.items()
    }


def places(conn: Connection, subnet_ids: Collection[str]) -> dict[str, Place]:
    """Subnet id → where it lies; subnets that are kept elsewhere are left out."""
    query = sa.select(subnets.c.id, subnets.c.cidr, subnets.c.network_id)
    rows_ = (row for ids in chunks(subnet_ids) for row in conn.execute(query.where(subnets.c.id.in_(ids))))
    return {row.id: Place(row.cidr, row.network_id) for row in rows_}
