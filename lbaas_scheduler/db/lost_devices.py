"""Devices that nobody reaches: nothing that they are asked for will be done before they are back."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from lbaas_scheduler.db.models import agents, device_agents, devices
from lbaas_scheduler.db.rows import AnySelect
from lbaas_scheduler.domain.statuses import DeviceStatus


def lost(heard_since: datetime) -> AnySelect:
    """Ids of devices that are OFFLINE, or that no living agent drives. An agent that an administrator disabled lives."""
    silent = sa.or_(agents.c.id.is_(None), agents.c.heartbeat_at < heard_since)
    return (
        sa.select(devices.c.id)
        .outerjoin(device_agents, device_agents.c.device_id == devices.c.id)
        .outerjoin(agents, agents.c.id == device_agents.c.agent_id)
        .where(sa.or_(devices.c.status == DeviceStatus.OFFLINE.value, silent))
    )
