"""The fleet as one looks at it: every device with its fill and agent, what is not applied yet, what was placed last.

A fixed number of statements, however large the fleet is; only the devices are read as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.agents import usable
from lbaas_scheduler.db.models import agents, deployments, device_agents, device_load, devices, placements, vips
from lbaas_scheduler.db.placements import CURRENT
from lbaas_scheduler.db.rows import AnyRow


@dataclass(frozen=True, slots=True)
class Overview:
    """``unapplied``: the oldest, and ``unapplied_count`` how many there are. ``placements``: the newest, newest first.

    Rows of ``devices`` have the columns of :func:`read`'s query, ordered by zone, type and name.
    """

    devices: list[AnyRow]
    agents: list[AnyRow]
    unapplied: list[AnyRow]
    unapplied_count: int
    placements: list[AnyRow]
    vips: Mapping[str, int]


def read(conn: Connection, heard_since: datetime, limit: int) -> Overview:
    """:param limit: how many unapplied deployments, and how many placements."""
    waits = deployments.c.due_at.is_not(None)
    return Overview(
        devices=_devices(conn, heard_since),
        agents=_agents(conn, heard_since),
        unapplied=_unapplied(conn, waits, limit),
        unapplied_count=conn.execute(sa.select(sa.func.count()).select_from(deployments).where(waits)).scalar_one(),
        placements=_placements(conn, limit),
        vips={row[0]: row[1] for row in conn.execute(sa.select(vips.c.status, sa.func.count()).group_by(vips.c.status))},
    )


def _devices(conn: Connection, heard_since: datetime) -> list[AnyRow]:
    query = (
        sa.select(
            *(devices.c[name] for name in ("id", "name", "device_type", "zone", "form", "tenant_id", "shared")),
            *(devices.c[name] for name in ("admin_state", "status", "status_description")),
            *(device_load.c[name] for name in ("rank", "vips_used", "vips_max", "dedicated_to")),
            device_load.c.open,
            agents.c.host.label("agent_host"),
            usable(heard_since).label("agent_usable"),
        )
        .join(device_load, device_load.c.device_id == devices.c.id)
        .outerjoin(device_agents, device_agents.c.device_id == devices.c.id)
        .outerjoin(agents, agents.c.id == device_agents.c.agent_id)
        .order_by(devices.c.zone, devices.c.device_type, devices.c.name, devices.c.id)
    )
    return list(conn.execute(query))


def _agents(conn: Connection, heard_since: datetime) -> list[AnyRow]:
    driven = (
        sa.select(sa.func.count()).select_from(device_agents).where(device_agents.c.agent_id == agents.c.id).scalar_subquery()
    )
    alive = (agents.c.heartbeat_at >= heard_since).label("alive")
    query = sa.select(agents.c.id, agents.c.host, agents.c.admin_state_up, agents.c.heartbeat_at, alive, driven.label("devices"))
    return list(conn.execute(query.order_by(agents.c.host, agents.c.id)))


def _unapplied(conn: Connection, waits: sa.ColumnElement[bool], limit: int) -> list[AnyRow]:
    """Those that wait for longest, and before them those that have been given up waiting for."""
    query = (
        sa.select(
            deployments.c.resource_id,
            vips.c.name,
            deployments.c.device_id,
            devices.c.name.label("device_name"),
            *(deployments.c[name] for name in ("operation", "attempts", "error", "pending_since")),
        )
        .join(devices, devices.c.id == deployments.c.device_id)
        .outerjoin(vips, vips.c.id == deployments.c.resource_id)
        .where(waits)
        .order_by(deployments.c.pending_since.is_not(None), deployments.c.pending_since, deployments.c.resource_id)
    )
    return list(conn.execute(query.limit(limit)))


def _placements(conn: Connection, limit: int) -> list[AnyRow]:
    """Their trails are long: only those of the rows that are shown are read."""
    newest = (
        sa.select(placements.c.resource_id)
        .where(placements.c.role == CURRENT)
        .order_by(placements.c.created_at.desc(), placements.c.resource_id)
        .limit(limit)
        .subquery()
    )
    query = (
        sa.select(
            *(placements.c[name] for name in ("resource_id", "device_id", "score", "trail", "created_at")),
            vips.c.name,
            devices.c.name.label("device_name"),
        )
        .join(newest, newest.c.resource_id == placements.c.resource_id)
        .join(devices, devices.c.id == placements.c.device_id)
        .outerjoin(vips, vips.c.id == placements.c.resource_id)
        .where(placements.c.role == CURRENT)
        .order_by(placements.c.created_at.desc(), placements.c.resource_id)
    )
    return list(conn.execute(query))
