"""The rows that associate health monitors with pools."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import health_monitors, pool_monitors
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.statuses import Status


def insert(conn: Connection, pool_id: str, monitor_id: str, status: Status) -> None:
    conn.execute(sa.insert(pool_monitors).values(pool_id=pool_id, monitor_id=monitor_id, status=status))


def find(conn: Connection, pool_id: str, monitor_id: str) -> AnyRow | None:
    """The association, with the monitor's tenant."""
    query = (
        sa.select(pool_monitors, health_monitors.c.tenant_id)
        .join(health_monitors, health_monitors.c.id == pool_monitors.c.monitor_id)
        .where(pool_monitors.c.pool_id == pool_id, pool_monitors.c.monitor_id == monitor_id)
    )
    return conn.execute(query).one_or_none()


def of_pools(conn: Connection, pool_ids: Collection[str]) -> list[AnyRow]:
    """The monitors of these pools, each with ``pool_id``, by age."""
    return [row for ids in chunks(pool_ids) for row in conn.execute(_SELECT_OF_POOLS, {"ids": ids})]


def checked(conn: Connection, pool_ids: Collection[str]) -> set[str]:
    """Ids of those pools whose members anything checks."""
    return {id_ for ids in chunks(pool_ids) for id_ in conn.scalars(_CHECKED, {"ids": ids})}


def pool_ids(conn: Connection, monitor_id: str) -> list[str]:
    return list(conn.execute(sa.select(pool_monitors.c.pool_id).where(pool_monitors.c.monitor_id == monitor_id)).scalars())


def set_status(conn: Connection, pool_id: str, monitor_id: str, status: Status, description: str = "") -> None:
    statement = sa.update(pool_monitors).where(pool_monitors.c.pool_id == pool_id, pool_monitors.c.monitor_id == monitor_id)
    conn.execute(statement.values(status=status, status_description=description))


def settle(conn: Connection, pool_ids: Collection[str], statuses: Collection[Status]) -> None:
    """The associations of the pools that are in ``statuses`` become ACTIVE, or DISABLED where the monitor is."""
    for ids in chunks(pool_ids):
        conn.execute(_SETTLE, {"ids": ids, "statuses": statuses})


_OF_POOLS = pool_monitors.c.pool_id.in_(sa.bindparam("ids"))
_SELECT_OF_POOLS = (
    sa.select(pool_monitors.c.pool_id, pool_monitors.c.status, health_monitors)
    .join(health_monitors, health_monitors.c.id == pool_monitors.c.monitor_id)
    .where(_OF_POOLS)
    .order_by(health_monitors.c.created_at, health_monitors.c.id)
)
_CHECKED = (
    sa.select(pool_monitors.c.pool_id)
    .join(health_monitors, health_monitors.c.id == pool_monitors.c.monitor_id)
    .where(_OF_POOLS, health_monitors.c.admin_state_up)
)
_UP = sa.select(health_monitors.c.admin_state_up).where(health_monitors.c.id == pool_monitors.c.monitor_id).scalar_subquery()
_SETTLE = (
    sa.update(pool_monitors)
    .where(_OF_POOLS, pool_monitors.c.status.in_(sa.bindparam("statuses")))
    .values(status=sa.case((_UP, str(Status.ACTIVE)), else_=str(Status.DISABLED)), status_description="")
)


def fail(conn: Connection, pool_id: str, errors: Mapping[str, str]) -> None:
    """Single monitors that the device refused."""
    for monitor_id in sorted(errors):
        set_status(conn, pool_id, monitor_id, Status.ERROR, errors[monitor_id])


def delete(conn: Connection, pool_id: str, monitor_id: str) -> bool:
    statement = sa.delete(pool_monitors).where(pool_monitors.c.pool_id == pool_id, pool_monitors.c.monitor_id == monitor_id)
    return conn.execute(statement).rowcount == 1
