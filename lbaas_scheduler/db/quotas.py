"""What tenants may have at most, and how many they have.

Nothing is counted beside the rows themselves: a counter could drift, and every place that removes a row would have to know of it.
Instead, whoever creates one of a limited resource first takes the tenant's turn, which lasts until the end of the transaction,
and then counts. Tenants do not wait for each other, and without a limit nobody waits at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.models import devices, health_monitors, members, pools, quota_turns, quotas, vips

TABLES: Mapping[str, sa.Table] = {
    "vip": vips,
    "pool": pools,
    "member": members,
    "health_monitor": health_monitors,
    "device": devices,
}
"""Resource → where its rows are."""

_KEY = ("tenant_id", "resource")

NOBODY = ""
"""Whose turns are that are no tenant's: of what administrators change one after the other."""


def limit(conn: Connection, tenant_id: str, resource: str) -> int | None:
    """The tenant's own limit; None = the default holds."""
    return conn.scalar(_LIMIT, {"tenant": tenant_id, "resource": resource})


_LIMIT = sa.select(quotas.c.limit).where(
    quotas.c.tenant_id == sa.bindparam("tenant"), quotas.c.resource == sa.bindparam("resource")
)


def limits(conn: Connection, tenant_id: str | None = None) -> dict[str, dict[str, int]]:
    """Tenant → resource → limit, for those tenants that have their own; or for one tenant only."""
    query = sa.select(quotas).order_by(quotas.c.tenant_id)
    found: dict[str, dict[str, int]] = {}
    for row in conn.execute(query if tenant_id is None else query.where(quotas.c.tenant_id == tenant_id)):
        found.setdefault(row.tenant_id, {})[row.resource] = row.limit
    return found


def set_limits(conn: Connection, tenant_id: str, changed: Mapping[str, int]) -> None:
    # In one order always, so that two administrators do not wait for each other.
    for resource, value in sorted(changed.items()):
        row = {"tenant_id": tenant_id, "resource": resource, "limit": value}
        conn.execute(_upsert(conn, quotas, row, {"limit": value}))


def delete_limits(conn: Connection, tenant_id: str) -> bool:
    """:returns: whether there were any."""
    return bool(conn.execute(sa.delete(quotas).where(quotas.c.tenant_id == tenant_id)).rowcount)


def take_turn(conn: Connection, tenant_id: str, resource: str) -> None:
    """Wait for others who create one of the tenant's resources now, and let further ones wait until the transaction ends."""
    row = {"tenant_id": tenant_id, "resource": resource, "taken": 1}
    conn.execute(_upsert(conn, quota_turns, row, {"taken": quota_turns.c.taken + 1}))


def count(conn: Connection, tenant_id: str, resource: str) -> int:
    """How many the tenant has, those included that are being deleted: they still hold what they hold."""
    table = TABLES[resource]
    return conn.scalar(sa.select(sa.func.count()).select_from(table).where(table.c.tenant_id == tenant_id)) or 0


def _upsert(conn: Connection, table: sa.Table, row: Mapping[str, Any], otherwise: Mapping[str, Any]) -> Any:
    """Insert, or change what is there, in one statement: the first use of a new tenant by many at once makes nobody fail."""
    if conn.dialect.name == "mysql":
        return mysql.insert(table).values(row).on_duplicate_key_update(dict(otherwise))
    insert = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
    return insert(table).values(row).on_conflict_do_update(index_elements=_KEY, set_=dict(otherwise))
