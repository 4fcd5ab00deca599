"""What waits below a VIP: its pool, the pool's members and its monitors."""

from __future__ import annotations

import sqlalchemy as sa

from lbaas_scheduler.db.models import members, pool_monitors, pools
from lbaas_scheduler.domain.statuses import Status

_WAITING = (Status.PENDING_CREATE.value, Status.PENDING_UPDATE.value)


def fail(conn: sa.Connection, pool_id: str, description: str) -> None:
    """The VIP of the pool failed, and with it every change that waited for the VIP. What goes away goes on waiting."""
    for table, key in ((pools, pools.c.id), (members, members.c.pool_id), (pool_monitors, pool_monitors.c.pool_id)):
        waiting = sa.update(table).where(key == pool_id, table.c.status.in_(_WAITING))
        conn.execute(waiting.values(status=Status.ERROR.value, status_description=description))
