"""What waits for an answer that nobody owes: no deployment of the VIP is due, so that no server would ever ask again."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.deployments import APPLY
from lbaas_scheduler.db.models import deployments, members, pool_monitors, pools, vips
from lbaas_scheduler.domain.statuses import PENDING, Status

_PENDING = sorted(PENDING)
_STUCK = (*_PENDING, Status.ERROR)


def vip_ids(conn: Connection, limit: int) -> list[str]:
    """VIPs that are in PENDING or ERROR, or have below them what is in PENDING, and of which nothing is due; ascending.

    Statuses and deployments change in one transaction: while all is well this finds none.
    """
    return list(conn.scalars(_VIPS.limit(limit)))


def is_stuck(conn: Connection, vip_id: str) -> bool:
    """Whether :func:`vip_ids` would still find the VIP."""
    return conn.scalar(_VIPS.where(vips.c.id == vip_id)) is not None


def pool_ids(conn: Connection, limit: int) -> list[str]:
    """Pools without a VIP that are in PENDING, or have below them what is; ascending."""
    return list(conn.scalars(_POOLS.limit(limit)))


def _waits_below() -> sa.ColumnElement[bool]:
    return sa.or_(
        pools.c.status.in_(_PENDING),
        sa.exists().where(members.c.pool_id == pools.c.id, members.c.status.in_(_PENDING)),
        sa.exists().where(pool_monitors.c.pool_id == pools.c.id, pool_monitors.c.status.in_(_PENDING)),
    )


# What a device that was left is to let go of may take for ever, and is no answer for the VIP as long as that is to stay.
_OWED = sa.exists().where(
    deployments.c.resource_id == vips.c.id,
    deployments.c.due_at.is_not(None),
    sa.or_(deployments.c.operation == APPLY, vips.c.status == Status.PENDING_DELETE),
)
_VIPS = (
    sa.select(vips.c.id)
    .where(sa.or_(vips.c.status.in_(_STUCK), sa.exists().where(pools.c.vip_id == vips.c.id, _waits_below())), ~_OWED)
    .order_by(vips.c.id)
)
_POOLS = sa.select(pools.c.id).where(pools.c.vip_id.is_(None), _waits_below()).order_by(pools.c.id)
