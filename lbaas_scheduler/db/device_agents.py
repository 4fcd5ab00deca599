"""Which agent drives which device. A binding moves by compare-and-swap on the agent and epoch that were seen."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception

from lbaas_scheduler.db.agents import usable
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import agent_drivers, agents, device_agents, devices
from lbaas_scheduler.db.rows import AnySelect
from lbaas_scheduler.domain import clock


@dataclass(frozen=True, slots=True)
class Binding:
    """``epoch`` grows with every agent that the device gets."""

    device_id: str
    agent_id: str
    host: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Homeless:
    """A device that needs an agent, or another one: ``binding`` None = it has none."""

    device_id: str
    device_type: str
    pinned_host: str | None
    binding: Binding | None


def insert(conn: sa.Connection, device_id: str, agent_id: str) -> bool:
    """Bind a device that has no agent. :returns: False: somebody else did so first."""
    values = {"device_id": device_id, "agent_id": agent_id, "epoch": 1, "assigned_at": clock.utcnow()}
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(device_agents).values(values))
    except db_exception.DBDuplicateEntry:
        return False
    return True


def move(conn: sa.Connection, seen: Binding, agent_id: str) -> bool:
    """Bind a device to another agent. :returns: False: it is no longer bound as it was seen."""
    moved = (
        sa.update(device_agents)
        .where(
            device_agents.c.device_id == seen.device_id,
            device_agents.c.agent_id == seen.agent_id,
            device_agents.c.epoch == seen.epoch,
        )
        .values(agent_id=agent_id, epoch=seen.epoch + 1, assigned_at=clock.utcnow())
    )
    return bool(conn.execute(moved).rowcount)


def delete(conn: sa.Connection, device_id: str) -> None:
    conn.execute(sa.delete(device_agents).where(device_agents.c.device_id == device_id))


def by_devices(conn: sa.Connection, device_ids: Collection[str]) -> dict[str, Binding]:
    """Device id → binding, for those that have one."""
    bindings: dict[str, Binding] = {}
    for ids in chunks(device_ids):
        for row in conn.execute(_BY_DEVICES, {"ids": ids}):
            bindings[row.device_id] = Binding(row.device_id, row.agent_id, row.host, row.epoch)
    return bindings


def devices_on_host(conn: sa.Connection, host: str) -> list[str]:
    """Ids of the devices that the agent on ``host`` drives."""
    on_host = sa.select(device_agents.c.device_id).join(agents, agents.c.id == device_agents.c.agent_id)
    return list(conn.scalars(on_host.where(agents.c.host == host).order_by(device_agents.c.device_id)))


def driven(conn: sa.Connection, host: str, device_ids: Collection[str]) -> set[str]:
    """Those of the devices that the agent on ``host`` drives."""
    return {device_id for device_id, binding in by_devices(conn, device_ids).items() if binding.host == host}


def counts(conn: sa.Connection) -> dict[str, int]:
    """Agent id → how many devices it drives; agents without any are left out."""
    counted = sa.select(device_agents.c.agent_id, sa.func.count().label("n")).group_by(device_agents.c.agent_id)
    return {row.agent_id: row.n for row in conn.execute(counted)}


def driven_by(conn: sa.Connection, agent_id: str) -> list[Homeless]:
    """All devices of one agent."""
    return _read(conn, _fleet().where(device_agents.c.agent_id == agent_id).order_by(devices.c.id))


def among(conn: sa.Connection, device_ids: Collection[str]) -> list[Homeless]:
    """Those devices, whatever their agents."""
    return [found for ids in chunks(device_ids) for found in _read(conn, _fleet().where(devices.c.id.in_(ids)))]


def without_agent(conn: sa.Connection, heard_since: datetime, limit: int) -> list[Homeless]:
    """Devices that have no agent though there is one for them: that of their pinned host, else a live one for their type."""
    query = _fleet().where(
        device_agents.c.device_id.is_(None),
        sa.case((devices.c.agent_host.is_not(None), _agent_at_pin()), else_=_able_agent(usable(heard_since))),
    )
    return _read(conn, query.order_by(devices.c.id).limit(limit))


def to_be_moved(conn: sa.Connection, heard_since: datetime, limit: int) -> list[Homeless]:
    """Devices that should go to another agent, and can.

    Not pinned: their agent is dead (one that an administrator has disabled is left alone), or reports drivers, but no longer
    theirs; and a live agent reports their type. Pinned: they are not on their host, and a live agent there reports their type.
    """
    current, own_driver = agents.alias("current"), agent_drivers.alias("own_driver")
    any_driver = sa.exists().where(agent_drivers.c.agent_id == current.c.id)
    lost = sa.or_(
        sa.and_(current.c.admin_state_up.is_(True), current.c.heartbeat_at < heard_since),
        sa.and_(own_driver.c.agent_id.is_(None), any_driver),
    )
    elsewhere = sa.and_(current.c.host != devices.c.agent_host, _able_agent(agents.c.heartbeat_at >= heard_since, _AT_PIN))
    query = (
        _fleet(current)
        .outerjoin(
            own_driver,
            sa.and_(own_driver.c.agent_id == current.c.id, own_driver.c.device_type == devices.c.device_type),
        )
        .where(
            current.c.id.is_not(None),
            sa.case((devices.c.agent_host.is_not(None), elsewhere), else_=sa.and_(lost, _able_agent(usable(heard_since)))),
        )
    )
    return _read(conn, query.order_by(devices.c.id).limit(limit))


_AT_PIN = agents.c.host == devices.c.agent_host


def _agent_at_pin() -> sa.ColumnElement[bool]:
    return sa.exists().where(_AT_PIN).correlate(devices)


def _able_agent(*conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    able = (agents.c.id == agent_drivers.c.agent_id, agent_drivers.c.device_type == devices.c.device_type)
    return sa.exists().where(*able, *conditions).correlate(devices)


def _bindings() -> AnySelect:
    return sa.select(device_agents, agents.c.host).join(agents, agents.c.id == device_agents.c.agent_id)


_BY_DEVICES = _bindings().where(device_agents.c.device_id.in_(sa.bindparam("ids")))


def _fleet(current: Any = agents) -> AnySelect:
    return (
        sa.select(
            devices.c.id,
            devices.c.device_type,
            devices.c.agent_host,
            device_agents.c.agent_id,
            device_agents.c.epoch,
            current.c.host,
        )
        .select_from(devices)
        .outerjoin(device_agents, device_agents.c.device_id == devices.c.id)
        .outerjoin(current, current.c.id == device_agents.c.agent_id)
    )


def _read(conn: sa.Connection, query: Any) -> list[Homeless]:
    return [
        Homeless(
            row.id,
            row.device_type,
            row.agent_host,
            None if row.agent_id is None else Binding(row.id, row.agent_id, row.host, row.epoch),
        )
        for row in conn.execute(query)
    ]
