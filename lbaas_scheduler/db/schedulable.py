"""Whether a device may take new resources: enabled, ONLINE, and driven by a live agent. Kept in ``device_load``.

Whoever changes something that this depends on (the device, its binding, its agent's state) calls :func:`refresh` in the same
transaction. Time alone changes it as well: an agent that falls silent. That is what :func:`find_stale` finds.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db import device_load
from lbaas_scheduler.db.agents import usable
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import agent_drivers, agents, device_agents, devices
from lbaas_scheduler.db.models import device_load as load
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus


def find_stale(conn: sa.Connection, heard_since: datetime) -> list[str]:
    """Ids of devices whose flag is not what it should be. Only reads; for a healthy fleet the answer is empty."""
    return list(conn.scalars(_fleet().where(load.c.schedulable != _should_be(heard_since))))


def refresh(conn: sa.Connection, heard_since: datetime, device_ids: Collection[str]) -> int:
    """Make the flags of these devices true.

    :returns: how many were changed.
    """
    changed = 0
    for ids in chunks(device_ids):
        # What is read next can then not be overtaken by another change of the same devices.
        lock(conn, ids)
        wanted = _fleet().where(load.c.device_id.in_(ids)).add_columns(_should_be(heard_since).label("flag"))
        rows = conn.execute(wanted).all()
        for flag in (False, True):
            changed += device_load.set_schedulable(conn, [row.device_id for row in rows if bool(row.flag) is flag], flag)
    return changed


def lock(conn: sa.Connection, device_ids: Collection[str]) -> None:
    """Keep claims and other changes of these devices out until the transaction ends. To be taken before other rows of theirs."""
    # By a write of nothing: neither SQLite nor Galera has SELECT ... FOR UPDATE.
    conn.execute(sa.update(load).where(load.c.device_id.in_(device_ids)).values(schedulable=load.c.schedulable))


def refresh_agent(conn: sa.Connection, heard_since: datetime, agent_id: str) -> int:
    """As :func:`refresh`, for all devices of one agent."""
    driven = list(conn.scalars(sa.select(device_agents.c.device_id).where(device_agents.c.agent_id == agent_id)))
    return refresh(conn, heard_since, driven)


def _should_be(heard_since: datetime) -> sa.ColumnElement[int]:
    wanted = sa.and_(
        devices.c.admin_state == AdminState.ENABLED.value,
        devices.c.status == DeviceStatus.ONLINE.value,
        agents.c.id.is_not(None),
        usable(heard_since),
        agent_drivers.c.agent_id.is_not(None),
        sa.or_(devices.c.agent_host.is_(None), devices.c.agent_host == agents.c.host),
    )
    return sa.case((wanted, 1), else_=0)


def _fleet() -> Any:
    return (
        sa.select(load.c.device_id)
        .join(devices, devices.c.id == load.c.device_id)
        .outerjoin(device_agents, device_agents.c.device_id == devices.c.id)
        .outerjoin(agents, agents.c.id == device_agents.c.agent_id)
        .outerjoin(
            agent_drivers,
            sa.and_(agent_drivers.c.agent_id == agents.c.id, agent_drivers.c.device_type == devices.c.device_type),
        )
        .order_by(load.c.device_id)
    )
