"""The rows that associate health monitors with pools."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import health_monitors, pool_monitors
from lbaas_scheduler.domain.statuses import Status


def insert(conn: Connection, pool_id: str, monitor_id: str, status: Status) -> None:
    conn.execute(sa.insert(pool_monitors).values(pool_id=pool_id, monitor_id=monitor_id, status=status))


def find(conn: Connection, pool_id: str, monitor_id: str) -> Row[Any] | None:
    """The association, with the monitor's tenant."""
    query = (
        sa.select(pool_monitors, health_monitors.c.tenant_id)
        .join(health_monitors, health_monitors.c.id == pool_monitors.c.monitor_id)
        .where(pool_monitors.c.pool_id == pool_id, pool_monitors.c.monitor_id == monitor_id)
    )
    return conn.execute(query).one_or_none()


def of_pools(conn: Connection, pool_ids: Collection[str]) -> list[Row[Any]]:
    """The monitors of these pools, each with ``pool_id``, by age."""
    query = (
        sa.select(pool_monitors.c.pool_id, pool_monitors.c.status, health_monitors)
        .join(health_monitors, health_monitors.c.id == pool_monitors.c.monitor_id)
        .order_by(health_monitors.c.created_at, health_monitors.c.id)
    )
    return [row for ids in chunks(pool_ids) for row in conn.execute(query.where(pool_monitors.c.pool_id.in_(ids)))]


def any_up(conn: Connection, pool_id: str) -> bool:
    """Whether anything checks the members of the pool."""
    query = (
        sa.select(pool_monitors.c.monitor_id)
        .join(health_monitors, health_monitors.c.id == pool_monitors.c.monitor_id)
        .where(pool_monitors.c.pool_id == pool_id, health_monitors.c.admin_state_up)
    )
    return conn.execute(query.limit(1)).first() is not None


def pool_ids(conn: Connection, monitor_id: str) -> list[str]:
    return list(conn.execute(sa.select(pool_monitors.c.pool_id).where(pool_monitors.c.monitor_id == monitor_id)).scalars())


def set_status(conn: Connection, pool_id: str, monitor_id: str, status: Status, description: str = "") -> None:
    statement = sa.update(pool_monitors).where(pool_monitors.c.pool_id == pool_id, pool_monitors.c.monitor_id == monitor_id)
    conn.execute(statement.values(status=status, status_description=description))


def settle(conn: Connection, pool_id: str, statuses: Collection[Status]) -> None:
    """The associations of the pool that are in ``statuses`` become ACTIVE, or DISABLED where the monitor is."""
    up = sa.select(health_monitors.c.admin_state_up).where(health_monitors.c.id == pool_monitors.c.monitor_id).scalar_subquery()
    values = {"status": sa.case((up, str(Status.ACTIVE)), else_=str(Status.DISABLED)), "status_description": ""}
    statement = sa.update(pool_monitors).where(pool_monitors.c.pool_id == pool_id, pool_monitors.c.status.in_(statuses))
    conn.execute(statement.values(**values))


def fail(conn: Connection, pool_id: str, errors: Mapping[str, str]) -> None:
    """Single monitors that the device refused."""
    for monitor_id in sorted(errors):
        set_status(conn, pool_id, monitor_id, Status.ERROR, errors[monitor_id])


def delete(conn: Connection, pool_id: str, monitor_id: str) -> bool:
    statement = sa.delete(pool_monitors).where(pool_monitors.c.pool_id == pool_id, pool_monitors.c.monitor_id == monitor_id)
    return conn.execute(statement).rowcount == 1
