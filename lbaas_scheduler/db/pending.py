"""What waits below a VIP: its pool, the pool's members and its monitors."""

from __future__ import annotations

import sqlalchemy as sa

from lbaas_scheduler.db.models import members, pool_monitors, pools
from lbaas_scheduler.domain.statuses import Status

_WAITING = (Status.PENDING_CREATE.value, Status.PENDING_UPDATE.value)
_STUCK = (*_WAITING, Status.PENDING_DELETE.value, Status.ERROR.value)
_TABLES = ((pools, pools.c.id), (members, members.c.pool_id), (pool_monitors, pool_monitors.c.pool_id))


def fail(conn: sa.Connection, pool_id: str, description: str) -> None:
    """The VIP of the pool failed, and with it every change that waited for the VIP. What goes away goes on waiting."""
    for table, key in _TABLES:
        waiting = sa.update(table).where(key == pool_id, table.c.status.in_(_WAITING))
        conn.execute(waiting.values(status=Status.ERROR.value, status_description=description))


def is_stuck(conn: sa.Connection, pool_id: str) -> bool:
    """Whether the pool or anything below it is in ERROR or PENDING."""
    return any(
        conn.execute(sa.select(key).where(key == pool_id, table.c.status.in_(_STUCK)).limit(1)).first() is not None
        for table, key in _TABLES
    )


def restart(conn: sa.Connection, pool_id: str) -> None:
    """What failed of the pool and below it waits for the VIP's device again."""
    for table, key in _TABLES:
        failed = sa.update(table).where(key == pool_id, table.c.status == Status.ERROR.value)
        conn.execute(failed.values(status=Status.PENDING_UPDATE.value, status_description=""))
