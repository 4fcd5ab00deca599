"""Agents and the device types that they drive."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception

from lbaas_scheduler.db.models import agent_drivers, agents
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.agents import Agent, StateReport


def report(conn: sa.Connection, state: StateReport) -> bool:
    """Record an agent's report: it counts from now on, by the database's clock, whenever it was sent.

    :returns: whether the agent is new, has restarted, or drives other device types than before.
    """
    agent = find(conn, state.agent_type, state.host)
    if agent is None and _insert(conn, state):
        return True
    agent = agent or find(conn, state.agent_type, state.host)
    return agent is not None and _renew(conn, agent, state)


def usable(heard_since: datetime) -> sa.ColumnElement[bool]:
    """SQL for :meth:`Agent.usable`."""
    return sa.and_(agents.c.admin_state_up.is_(True), agents.c.heartbeat_at >= heard_since)


def find(conn: sa.Connection, agent_type: str, host: str) -> Agent | None:
    return _one(conn, agents.c.agent_type == agent_type, agents.c.host == host)


def get(conn: sa.Connection, agent_id: str) -> Agent | None:
    return _one(conn, agents.c.id == agent_id)


def list_all(conn: sa.Connection) -> list[Agent]:
    """Every agent, by host. There are far fewer agents than devices."""
    return _read(conn)


def update(conn: sa.Connection, agent_id: str, changes: Mapping[str, Any]) -> bool:
    """Change ``admin_state_up`` or ``description``.

    :returns: whether there is such an agent.
    """
    return bool(conn.execute(sa.update(agents).where(agents.c.id == agent_id).values(dict(changes))).rowcount)


def delete(conn: sa.Connection, agent_id: str) -> bool:
    """Forget an agent that drives no device.

    :returns: whether there was one.
    """
    conn.execute(sa.delete(agent_drivers).where(agent_drivers.c.agent_id == agent_id))
    return bool(conn.execute(sa.delete(agents).where(agents.c.id == agent_id)).rowcount)


def _insert(conn: sa.Connection, state: StateReport) -> bool:
    """:returns: False: the agent's other report, handled at the same time, was first."""
    agent_id = str(uuid.uuid4())
    values = {
        "id": agent_id,
        "agent_type": state.agent_type,
        "host": state.host,
        "created_at": clock.utcnow(),
        **_reported(state),
    }
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(agents).values(values))
            _set_drivers(conn, agent_id, state.drivers)
    except db_exception.DBDuplicateEntry:
        return False
    return True


def _renew(conn: sa.Connection, agent: Agent, state: StateReport) -> bool:
    if not conn.execute(sa.update(agents).where(agents.c.id == agent.id).values(_reported(state))).rowcount:
        return False
    if agent.drivers != state.drivers:
        _set_drivers(conn, agent.id, state.drivers)
    return state.first or agent.drivers != state.drivers


def _reported(state: StateReport) -> dict[str, Any]:
    return {
        "binary": state.binary,
        "topic": state.topic,
        "configurations": dict(state.configurations),
        "started_at": state.started_at,
        "heartbeat_at": clock.utcnow(),
    }


def _set_drivers(conn: sa.Connection, agent_id: str, drivers: Collection[str]) -> None:
    conn.execute(sa.delete(agent_drivers).where(agent_drivers.c.agent_id == agent_id))
    if drivers:
        rows = [{"agent_id": agent_id, "device_type": device_type} for device_type in sorted(drivers)]
        conn.execute(sa.insert(agent_drivers), rows)


def _one(conn: sa.Connection, *conditions: sa.ColumnElement[bool]) -> Agent | None:
    found = _read(conn, *conditions)
    return found[0] if found else None


def _read(conn: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Agent]:
    rows = conn.execute(sa.select(agents).where(*conditions).order_by(agents.c.host, agents.c.agent_type)).all()
    drivers: dict[str, set[str]] = defaultdict(set)
    theirs = sa.select(agent_drivers).join(agents, agents.c.id == agent_drivers.c.agent_id).where(*conditions)
    for driver in conn.execute(theirs):
        drivers[driver.agent_id].add(driver.device_type)
    return [_from_row(row, frozenset(drivers[row.id])) for row in rows]


def _from_row(row: Any, drivers: frozenset[str]) -> Agent:
    return Agent(
        id=row.id,
        agent_type=row.agent_type,
        host=row.host,
        binary=row.binary,
        topic=row.topic,
        created_at=row.created_at,
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        description=row.description,
        admin_state_up=bool(row.admin_state_up),
        drivers=drivers,
        configurations=row.configurations,
    )
