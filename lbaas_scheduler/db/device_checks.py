"""Which devices are to be asked how they are, and what they said. Failures and load change without a new generation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db.models import deployments, devices
from lbaas_scheduler.db.rows import AnySelect
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.statuses import DeviceStatus

C = devices.c


@dataclass(frozen=True, slots=True)
class Health:
    """``failures``: how often in a row the device did not answer, or said that it is not well."""

    status: DeviceStatus
    failures: int
    offline_since: datetime | None
    check_due_at: datetime | None
    load: Mapping[str, Any]


def claim(
    conn: sa.Connection, kinds: Collection[tuple[str, str]], now: datetime, limit: int, later: Callable[[], datetime]
) -> list[str]:
    """Take devices that are due for a check. None is taken by two servers.

    :param kinds: (service, device type) of those that can be asked.
    :param later: when the next check of a device is due.
    :returns: their ids.
    """
    if not kinds:
        return []
    asked = sa.or_(*(sa.and_(C.service == service, C.device_type == kind) for service, kind in sorted(kinds)))
    # New devices first: nothing is known of them.
    new_first = sa.case((C.check_due_at.is_(None), 0), else_=1)
    due = sa.select(C.id, C.check_due_at).where(asked, sa.or_(C.check_due_at.is_(None), C.check_due_at <= now))
    rows = conn.execute(due.order_by(new_first, C.check_due_at, C.id).limit(limit)).all()
    return [row.id for row in sorted(rows, key=lambda it: it.id) if _claim(conn, row, later())]


def get(conn: sa.Connection, device_id: str) -> Health | None:
    columns = (C.status, C.failures, C.offline_since, C.check_due_at, C.load)
    row = conn.execute(sa.select(*columns).where(C.id == device_id)).one_or_none()
    if row is None:
        return None
    return Health(DeviceStatus(row.status), row.failures, row.offline_since, row.check_due_at, row.load)


def record(conn: sa.Connection, device_id: str, failures: int, load: Mapping[str, Any] | None = None) -> None:
    """What a check found, but for the status. ``load`` None: nothing was said of it."""
    values: dict[str, Any] = {"failures": failures}
    if load is not None:
        values["load"] = dict(load)
    conn.execute(sa.update(devices).where(C.id == device_id).values(values))


def mark_offline(conn: sa.Connection, device_id: str, offline: bool) -> None:
    """Since when the device is OFFLINE. One that is stays so since the first time."""
    since = sa.func.coalesce(C.offline_since, clock.utcnow()) if offline else None
    conn.execute(sa.update(devices).where(C.id == device_id).values(offline_since=since))


def check_soon(conn: sa.Connection, device_id: str, due_at: datetime) -> None:
    conn.execute(sa.update(devices).where(C.id == device_id).values(check_due_at=due_at))


def offline_before(moment: datetime) -> AnySelect:
    """Ids of devices that are OFFLINE since before a moment, as a part of other statements."""
    return sa.select(C.id).where(C.status == DeviceStatus.OFFLINE.value, C.offline_since <= moment)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is on a device: ``settled``; ``waiting`` for an answer; ``failed``, that is, answered with an error."""

    settled: int
    waiting: int
    failed: int


def backlog(conn: sa.Connection, device_id: str) -> Backlog:
    c = deployments.c

    def count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)

    query = sa.select(
        count(c.due_at.is_(None)),
        count(sa.and_(c.due_at.is_not(None), c.pending_since.is_not(None))),
        count(sa.and_(c.due_at.is_not(None), c.pending_since.is_(None))),
    ).where(c.device_id == device_id)
    return Backlog(*(int(number) for number in conn.execute(query).one()))


def _claim(conn: sa.Connection, row: Any, later: datetime) -> bool:
    seen = C.check_due_at.is_(None) if row.check_due_at is None else C.check_due_at == row.check_due_at
    claim = sa.update(devices).where(C.id == row.id, seen).values(check_due_at=later)
    return bool(conn.execute(claim).rowcount)
