"""Which VIPs and pools are where: from devices and agents to load balancers, and back."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.listing import fetch, matching
from lbaas_scheduler.db.models import deployments, device_agents, placements, pools, vips
from lbaas_scheduler.db.placements import CURRENT
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.db.vips import COLUMNS
from lbaas_scheduler.domain.listing import Listing


def vips_on_device(conn: Connection, device_id: str, listing: Listing) -> list[AnyRow]:
    """VIPs that are on the device, or that it has not let go of yet."""
    there = sa.select(deployments.c.resource_id).where(deployments.c.device_id == device_id)
    return fetch(conn, matching(conn, sa.select(vips).where(vips.c.id.in_(there)), COLUMNS, listing), listing)


def pools_on_agent(conn: Connection, agent_id: str) -> Collection[str]:
    """Ids of the pools whose VIPs are on devices that the agent drives."""
    query = (
        sa.select(pools.c.id)
        .join(placements, sa.and_(placements.c.resource_id == pools.c.vip_id, placements.c.role == CURRENT))
        .join(device_agents, device_agents.c.device_id == placements.c.device_id)
        .where(device_agents.c.agent_id == agent_id)
    )
    return list(conn.scalars(query.order_by(pools.c.id)))


def agent_of_pool(conn: Connection, pool_id: str) -> str | None:
    """Id of the agent that drives the device of the pool's VIP; None = no VIP, or nobody drives it."""
    query = (
        sa.select(device_agents.c.agent_id)
        .join(placements, placements.c.device_id == device_agents.c.device_id)
        .join(pools, pools.c.vip_id == placements.c.resource_id)
        .where(pools.c.id == pool_id, placements.c.role == CURRENT)
    )
    return conn.scalars(query).first()
