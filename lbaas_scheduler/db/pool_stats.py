"""Counters of pools. Every pool has a row from its creation on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.models import pool_stats

COUNTERS = ("bytes_in", "bytes_out", "active_connections", "total_connections")


def get(conn: Connection, pool_id: str) -> dict[str, int] | None:
    row = conn.execute(sa.select(*(pool_stats.c[name] for name in COUNTERS)).where(pool_stats.c.pool_id == pool_id)).one_or_none()
    return None if row is None else dict(row._mapping)


def update_many(conn: Connection, counters: Mapping[str, Mapping[str, Any]]) -> None:
    """Pool id → its counters. Pools that are gone are left out silently."""
    if counters:
        statement = sa.update(pool_stats).where(pool_stats.c.pool_id == sa.bindparam("id_of_pool"))
        statement = statement.values({name: sa.bindparam(f"new_{name}") for name in COUNTERS})
        rows = [
            {"id_of_pool": pool_id} | {f"new_{name}": values[name] for name in COUNTERS}
            for pool_id, values in sorted(counters.items())
        ]
        conn.execute(statement, rows)
