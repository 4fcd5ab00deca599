"""The circuit breaker's rows, and what it counts: devices that are OFFLINE, agents that fell silent while they drive devices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception

from lbaas_scheduler.db.fleet_models import breakers
from lbaas_scheduler.db.models import agents, device_agents, devices
from lbaas_scheduler.db.rows import AnySelect
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.moves import Breaker
from lbaas_scheduler.domain.statuses import DeviceStatus

DEVICES = "devices"
AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class Losses:
    """``now``: how many of ``total`` are lost at this moment; ``lately``: those of them that were lost within the window."""

    total: int
    now: int
    lately: int


def devices_lost(conn: sa.Connection, since: datetime) -> Losses:
    """Of the devices that are checked actively."""
    c = devices.c
    offline = sa.and_(c.status == DeviceStatus.OFFLINE.value, c.offline_since.is_not(None))
    checked = c.check_due_at.is_not(None)
    return _losses(conn, sa.select(_of(checked), _of(checked, offline), _of(checked, offline, c.offline_since >= since)))


def agents_lost(conn: sa.Connection, heard_since: datetime, since: datetime) -> Losses:
    """Of the agents that drive devices. One that an administrator has disabled is no loss.

    :param heard_since: whoever was not heard since then is dead.
    :param since: whoever was heard since then, and is dead, died lately.
    """
    c = agents.c
    drives = sa.and_(c.admin_state_up.is_(True), sa.exists().where(device_agents.c.agent_id == c.id))
    # Without devices it is nobody's loss; alive, it is one that is left.
    counted = sa.or_(drives, sa.and_(c.admin_state_up.is_(True), c.heartbeat_at >= heard_since))
    dead = sa.and_(drives, c.heartbeat_at < heard_since)
    return _losses(conn, sa.select(_of(counted), _of(dead), _of(dead, c.heartbeat_at >= since)))


def get(conn: sa.Connection, kind: str) -> Breaker:
    row = conn.execute(sa.select(breakers).where(breakers.c.kind == kind)).one_or_none()
    return Breaker(kind) if row is None else Breaker(row.kind, row.tripped_at, row.acknowledged_at, row.reason)


def trip(conn: sa.Connection, kind: str, reason: str) -> bool:
    """:returns: whether it was closed until now: one server of all hears so."""
    tripped = sa.update(breakers).where(breakers.c.kind == kind, breakers.c.tripped_at.is_(None))
    if conn.execute(tripped.values(tripped_at=clock.utcnow(), reason=reason)).rowcount:
        return True
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(breakers).values(kind=kind, tripped_at=clock.utcnow(), reason=reason))
    except db_exception.DBDuplicateEntry:
        return False
    return True


def close(conn: sa.Connection, kind: str, *, acknowledged: bool = False) -> bool:
    """:param acknowledged: an administrator said so: what is lost by now does not trip it again.
    :returns: whether it was tripped.
    """
    values: dict[str, Any] = {"tripped_at": None, "reason": ""}
    if acknowledged:
        values["acknowledged_at"] = clock.utcnow()
    closed = sa.update(breakers).where(breakers.c.kind == kind, breakers.c.tripped_at.is_not(None)).values(values)
    return bool(conn.execute(closed).rowcount)


def _of(*conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(sa.case((sa.and_(*conditions), 1), else_=0)), 0)


def _losses(conn: sa.Connection, query: AnySelect) -> Losses:
    return Losses(*(int(number) for number in conn.execute(query).one()))
