"""Deployments that are due, with whom to tell: what a cast has to know, in one statement."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from lbaas_scheduler.db import deployments
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.deployments import DeploymentRow
from lbaas_scheduler.db.models import agents, device_agents, devices
from lbaas_scheduler.db.models import deployments as table


@dataclass(frozen=True, slots=True)
class Addressed:
    """``host``: the agent that drives the device; None = nobody does. ``generation``: the device's."""

    row: DeploymentRow
    host: str | None
    generation: int


def due(conn: sa.Connection, resource_ids: Collection[str]) -> list[Addressed]:
    """What is due of the resources, by resource and device."""
    rows = (row for ids in chunks(resource_ids) for row in conn.execute(_DUE, {"ids": ids}))
    found = [Addressed(deployments.from_row(row), row.host, row.generation) for row in rows]
    return sorted(found, key=lambda it: (it.row.resource_id, it.row.device_id))


_DUE = (
    sa.select(table, agents.c.host, devices.c.generation)
    .join(devices, devices.c.id == table.c.device_id)
    .outerjoin(device_agents, device_agents.c.device_id == table.c.device_id)
    .outerjoin(agents, agents.c.id == device_agents.c.agent_id)
    .where(table.c.resource_id.in_(sa.bindparam("ids")), table.c.due_at.is_not(None))
)
