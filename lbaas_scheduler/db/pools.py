"""The rows of pools, and what lists show of their children."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.listing import fetch, matching, page_of
from lbaas_scheduler.db.models import members, pool_monitors, pool_stats, pools, service_types
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.domain.statuses import Status

# A pool that names no service type follows the default, whatever that is at the time.
_DEFAULT = sa.select(service_types.c.name).where(service_types.c.default_slot == 1).scalar_subquery()
_PROVIDER = sa.func.coalesce(service_types.c.name, _DEFAULT, type_=sa.String())

COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    **{name: column for name, column in pools.c.items() if name not in ("service_type_id", "created_at")},
    "provider": _PROVIDER,
    "status_description": sa.func.nullif(pools.c.status_description, ""),
}

_SELECT = sa.select(pools, _PROVIDER.label("provider")).select_from(
    pools.outerjoin(service_types, service_types.c.id == pools.c.service_type_id)
)


def insert_many(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    now = utcnow()
    conn.execute(_INSERT, [{**row, "created_at": now} for row in rows])
    conn.execute(_INSERT_STATS, [{"pool_id": row["id"]} for row in rows])


_INSERT = sa.insert(pools)
_INSERT_STATS = sa.insert(pool_stats)


def find(conn: Connection, pool_id: str) -> AnyRow | None:
    return conn.execute(_SELECT.where(pools.c.id == pool_id)).one_or_none()


CONTENTS = (
    sa.exists().where(members.c.pool_id == pools.c.id).label("has_members"),
    sa.exists().where(pool_monitors.c.pool_id == pools.c.id).label("has_monitors"),
)
"""To be selected with a pool: whether there is anything in it. Many a VIP is made before its pool's members are."""


def outline(conn: Connection, pool_id: str) -> AnyRow | None:
    """What a VIP asks of its pool, with :data:`CONTENTS`."""
    return conn.execute(_OUTLINE, {"id": pool_id}).one_or_none()


_OUTLINE = sa.select(
    pools.c.id,
    pools.c.tenant_id,
    pools.c.protocol,
    pools.c.lb_method,
    pools.c.admin_state_up,
    pools.c.service_type_id,
    pools.c.vip_id,
    *CONTENTS,
).where(pools.c.id == sa.bindparam("id"))


def rows(conn: Connection, listing: Listing) -> list[AnyRow]:
    return fetch(conn, matching(conn, _SELECT, COLUMNS, listing), listing)


def member_ids(conn: Connection, listing: Listing) -> list[AnyRow]:
    """``(pool_id, id)`` of the members of all pools of the list: one statement, however many they are."""
    page = page_of(matching(conn, _SELECT, COLUMNS, listing), pools.c.id)
    query = sa.select(members.c.pool_id, members.c.id).join(page, page.c.id == members.c.pool_id)
    return list(conn.execute(query.order_by(members.c.pool_id, members.c.id)))


def associations(conn: Connection, listing: Listing) -> list[AnyRow]:
    """The monitor associations of all pools of the list."""
    page = page_of(matching(conn, _SELECT, COLUMNS, listing), pools.c.id)
    query = sa.select(pool_monitors).join(page, page.c.id == pool_monitors.c.pool_id)
    return list(conn.execute(query.order_by(pool_monitors.c.pool_id, pool_monitors.c.monitor_id)))


def lock(conn: Connection, pool_ids: Collection[str]) -> None:
    """Hold the pools' rows until the end of the transaction: their VIPs cannot come or go meanwhile."""
    for ids in chunks(pool_ids):
        conn.execute(sa.update(pools).where(pools.c.id.in_(ids)).values(vip_id=pools.c.vip_id))


def vip_ids(conn: Connection, pool_ids: Collection[str]) -> dict[str, str | None]:
    """Pool id → id of its VIP; pools that are gone are left out."""
    query = sa.select(pools.c.id, pools.c.vip_id)
    return {row.id: row.vip_id for ids in chunks(pool_ids) for row in conn.execute(query.where(pools.c.id.in_(ids)))}


def by_vips(conn: Connection, vip_ids: Collection[str]) -> list[AnyRow]:
    """The pools of these VIPs."""
    return [row for ids in chunks(vip_ids) for row in conn.execute(_BY_VIPS, {"ids": ids})]


_BY_VIPS = sa.select(pools).where(pools.c.vip_id.in_(sa.bindparam("ids")))


def take(conn: Connection, pool_id: str, vip_id: str, lb_method: str | None = None) -> bool:
    """Give the pool its VIP, unless it has another one or is gone.

    :param lb_method: nor if it balances in another way than this; None = in whatever way.
    """
    values = {"pool": pool_id, "vip": vip_id}
    if lb_method is None:
        return conn.execute(_TAKE, values).rowcount == 1
    return conn.execute(_TAKE_FITTING, {**values, "method": lb_method}).rowcount == 1


_VIP = sa.bindparam("vip", type_=pools.c.vip_id.type)
_TAKE = (
    sa.update(pools)
    .where(pools.c.id == sa.bindparam("pool"), sa.or_(pools.c.vip_id.is_(None), pools.c.vip_id == _VIP))
    .values(vip_id=_VIP)
)
_TAKE_FITTING = _TAKE.where(pools.c.lb_method == sa.bindparam("method"))


def free(conn: Connection, vip_id: str) -> str | None:
    """Take the VIP from its pool. :returns: the pool's id; None = it had none."""
    pool_id = conn.execute(sa.select(pools.c.id).where(pools.c.vip_id == vip_id)).scalar()
    if pool_id is not None:
        conn.execute(sa.update(pools).where(pools.c.id == pool_id, pools.c.vip_id == vip_id).values(vip_id=None))
    return pool_id


def update(conn: Connection, pool_id: str, values: Mapping[str, Any]) -> None:
    conn.execute(sa.update(pools).where(pools.c.id == pool_id).values(**values))


def settle(conn: Connection, pool_ids: Collection[str], statuses: Collection[Status]) -> None:
    """Those of the pools that are in one of ``statuses`` become ACTIVE, or DISABLED where they are down by their owner's will."""
    for ids in chunks(pool_ids):
        conn.execute(_SETTLE, {"ids": ids, "statuses": statuses})


_SETTLE = (
    sa.update(pools)
    .where(pools.c.id.in_(sa.bindparam("ids")), pools.c.status.in_(sa.bindparam("statuses")))
    .values(
        status=sa.case((pools.c.admin_state_up, str(Status.ACTIVE)), else_=str(Status.DISABLED)),
        status_description="",
    )
)


def delete(conn: Connection, pool_id: str) -> None:
    """With its members, associations and counters."""
    conn.execute(sa.delete(members).where(members.c.pool_id == pool_id))
    conn.execute(sa.delete(pool_monitors).where(pool_monitors.c.pool_id == pool_id))
    conn.execute(sa.delete(pool_stats).where(pool_stats.c.pool_id == pool_id))
    conn.execute(sa.delete(pools).where(pools.c.id == pool_id))
