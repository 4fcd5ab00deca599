"""How it stands: counts over the whole database for monitoring, in a fixed number of statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.agents import usable
from lbaas_scheduler.db.allocator_models import allocator_allocations
from lbaas_scheduler.db.models import agents, deployments, device_load, devices, vips
from lbaas_scheduler.db.rows import AnySelect

AGES_SECONDS = (10, 60, 300, 3600)
"""Bounds between the ages by which unapplied deployments are counted."""


@dataclass(frozen=True, slots=True)
class Gauges:
    """``devices``: (status, admin_state) → count. ``agents``: alive, dead or disabled → count. ``vips``: status → count.

    ``unapplied``: bound in seconds → how many deployments have waited for so long at most; None = all. ``due``: casts that no
    server has taken up yet. ``open_devices``: those that take new VIPs. ``repaired``: VIPs that devices had lost, as agents
    count them since their starts.
    """

    devices: Mapping[tuple[str, str], int]
    agents: Mapping[str, int]
    vips: Mapping[str, int]
    unapplied: Mapping[int | None, int]
    due: int
    open_devices: int
    repaired: int


def read(conn: Connection, now: datetime, heard_since: datetime) -> Gauges:
    return Gauges(
        devices=_devices(conn),
        agents=agents_by_state(conn, heard_since),
        vips={row.status: row.number for row in conn.execute(sa.select(vips.c.status, _COUNT).group_by(vips.c.status))},
        unapplied=_unapplied(conn, now),
        due=_scalar(conn, sa.select(_COUNT).select_from(deployments).where(deployments.c.due_at <= now)),
        open_devices=_scalar(conn, sa.select(_COUNT).select_from(device_load).where(device_load.c.open == 1)),
        repaired=sum(_repaired(document) for document in conn.scalars(sa.select(agents.c.configurations))),
    )


def _repaired(configurations: Any) -> int:
    """What agents say is theirs to say; older ones say nothing."""
    number = configurations.get("repaired_vips") if isinstance(configurations, Mapping) else None
    return number if isinstance(number, int) else 0


def write_nothing(conn: Connection) -> None:
    """Change no row. A database that takes no writes refuses that as well."""
    conn.execute(sa.update(agents).where(agents.c.id.is_(None)).values(description=agents.c.description))


def allocations(conn: Connection) -> dict[tuple[str, str], int]:
    """(Pool's id, status) → how many values; those that other values brought with them are not counted."""
    columns = allocator_allocations.c
    by = (columns.pool_id, columns.status)
    counted = sa.select(*by, _COUNT).where(columns.part == "").group_by(*by)
    return {(row.pool_id, row.status): row.number for row in conn.execute(counted)}


_COUNT = sa.func.count().label("number")


def _devices(conn: Connection) -> dict[tuple[str, str], int]:
    by = (devices.c.status, devices.c.admin_state)
    return {(row.status, row.admin_state): row.number for row in conn.execute(sa.select(*by, _COUNT).group_by(*by))}


def agents_by_state(conn: Connection, heard_since: datetime) -> dict[str, int]:
    """alive, dead or disabled → how many agents."""
    state = sa.case((usable(heard_since), "alive"), (agents.c.admin_state_up.is_(False), "disabled"), else_="dead").label("state")
    each = sa.select(state).subquery()
    counted = {row.state: row.number for row in conn.execute(sa.select(each.c.state, _COUNT).group_by(each.c.state))}
    return {"alive": 0, "dead": 0, "disabled": 0, **counted}


def _unapplied(conn: Connection, now: datetime) -> dict[int | None, int]:
    """Deployments whose overdue state was turned into an error have no time since when they wait: they count as the oldest."""
    waits = deployments.c.due_at.is_not(None)
    younger = [
        sa.func.coalesce(sa.func.sum(sa.case((deployments.c.pending_since >= now - timedelta(seconds=age), 1), else_=0)), 0)
        for age in AGES_SECONDS
    ]
    *counts, total = conn.execute(sa.select(*younger, sa.func.count()).select_from(deployments).where(waits)).one()
    return {**{age: int(count) for age, count in zip(AGES_SECONDS, counts, strict=True)}, None: total}


def _scalar(conn: Connection, query: AnySelect) -> int:
    return int(conn.execute(query).scalar_one())
