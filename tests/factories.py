"""Values for tests. Each takes what a test cares about and fills in the rest."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db import device_capacities, device_load, devices, sched_classes
from lbaas_scheduler.db.models import agents, device_agents
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import capacity
from lbaas_scheduler.domain.capacity import Capacity
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus

SERVICE = "LoadBalancer"

_numbers = itertools.count(1)


def new_device(name: str = "", *, vips: int = 10, capacities: Mapping[str, int] | None = None, **fields: Any) -> Device:
    """A device of the operator's, enabled and ONLINE. Its id is its name, so that failures can be read."""
    name = name or f"device-{next(_numbers):05}"
    totals = {capacity.VIPS: vips, **(capacities or {})}
    defaults = {"id": name, "name": name, "service": SERVICE, "device_type": "fake"}
    return Device(**defaults | {"capacities": {key: Capacity(total) for key, total in totals.items()}} | fields)


def new_request(resource_id: str = "", **fields: Any) -> ScheduleRequest:
    """One VIP of tenant "tenant"."""
    defaults: dict[str, Any] = {"service": SERVICE, "tenant_id": "tenant", "demand": {capacity.VIPS: 1}}
    return ScheduleRequest(resource_id=resource_id or f"vip-{next(_numbers):05}", **defaults | fields)


def add_agent(database: Database, host: str = "agent-1", *, heartbeat_at: datetime | None = None, up: bool = True) -> None:
    now = utcnow()
    values = {
        "id": host,
        "agent_type": "Loadbalancer agent",
        "host": host,
        "binary": "lbaas-scheduler-agent",
        "topic": "lbaas_scheduler_agent",
        "admin_state_up": up,
        "configurations": {},
        "created_at": now,
        "started_at": now,
        "heartbeat_at": heartbeat_at or now,
    }
    database.write(lambda conn: conn.execute(sa.insert(agents).values(**values)))


def add_devices(database: Database, *added: Device, agent: str | None = "agent-1") -> None:
    """Rows as the registry leaves them behind; without the registry, so that the stores are tested by themselves."""

    def work(conn: sa.Connection) -> None:
        for device in added:
            add_device(conn, device, agent)

    database.write(work)


def add_device(conn: sa.Connection, device: Device, agent: str | None) -> None:
    class_id = sched_classes.find_or_create(
        conn,
        service=device.service,
        device_type=device.device_type,
        zone=device.zone,
        form=device.form,
        tenant_id=device.tenant_id,
        shared=device.shared,
        traits=device.traits,
    )
    devices.insert(conn, device, "", class_id)
    device_capacities.insert(conn, device.id, device.capacities)
    device_load.insert(conn, device.id, class_id, {name: it.limit for name, it in device.capacities.items()})
    if agent is not None:
        conn.execute(sa.insert(device_agents).values(device_id=device.id, agent_id=agent, assigned_at=utcnow()))
    if agent and device.admin_state is AdminState.ENABLED and device.status is DeviceStatus.ONLINE:
        device_load.set_schedulable(conn, [device.id], True)
