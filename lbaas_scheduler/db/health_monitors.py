"""The rows of health monitors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.listing import fetch, matching, page_of
from lbaas_scheduler.db.models import health_monitors, pool_monitors
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.listing import Listing

COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    name: column for name, column in health_monitors.c.items() if name != "created_at"
}

_SELECT = sa.select(health_monitors)


def insert(conn: Connection, values: Mapping[str, Any]) -> None:
    conn.execute(sa.insert(health_monitors).values(created_at=utcnow(), **values))


def exists(conn: Connection, monitor_id: str) -> bool:
    return conn.execute(sa.select(health_monitors.c.id).where(health_monitors.c.id == monitor_id)).first() is not None


def find(conn: Connection, monitor_id: str) -> AnyRow | None:
    return conn.execute(_SELECT.where(health_monitors.c.id == monitor_id)).one_or_none()


def rows(conn: Connection, listing: Listing) -> list[AnyRow]:
    return fetch(conn, matching(conn, _SELECT, COLUMNS, listing), listing)


def associations(conn: Connection, listing: Listing) -> list[AnyRow]:
    """The pool associations of all monitors of the list: one statement, however many they are."""
    page = page_of(matching(conn, _SELECT, COLUMNS, listing), health_monitors.c.id)
    query = sa.select(pool_monitors).join(page, page.c.id == pool_monitors.c.monitor_id)
    return list(conn.execute(query.order_by(pool_monitors.c.monitor_id, pool_monitors.c.pool_id)))


def lock(conn: Connection, monitor_id: str) -> None:
    """Hold the monitor's row until the end of the transaction: no association of it can come meanwhile."""
    same = {"max_retries": health_monitors.c.max_retries}
    conn.execute(sa.update(health_monitors).where(health_monitors.c.id == monitor_id).values(same))


def update(conn: Connection, monitor_id: str, values: Mapping[str, Any]) -> None:
    conn.execute(sa.update(health_monitors).where(health_monitors.c.id == monitor_id).values(**values))


def delete(conn: Connection, monitor_id: str) -> None:
    conn.execute(sa.delete(health_monitors).where(health_monitors.c.id == monitor_id))
