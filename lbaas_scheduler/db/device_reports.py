"""What devices say of their load: themselves, where their handlers can ask them, else through the agents that drive them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa
from oslo_db import exception as db_exception
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.fleet_models import device_reports
from lbaas_scheduler.db.models import devices
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.capacity import VIPS
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.fleet import Page

CONNECTIONS = "connections"
"""The key of a :class:`~lbaas_scheduler.sdk.handlers.HealthReport`'s ``load`` that counts."""


def record(conn: Connection, device_id: str, connections: int, now: datetime) -> None:
    """What an agent counted on a device."""
    values = {"connections": connections, "reported_at": now}
    known = sa.update(device_reports).where(device_reports.c.device_id == device_id).values(values)
    if conn.execute(known).rowcount:
        return
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(device_reports).values(device_id=device_id, **values))
    except (db_exception.DBDuplicateEntry, db_exception.DBReferenceError):
        return  # Another server recorded it at the same moment; or the device is gone.


def connections(conn: Connection, device_ids: Collection[str], since: datetime) -> dict[str, int]:
    """Device id → its open connections, for those that said so since then. One statement."""
    columns = (devices.c.id, devices.c.load, devices.c.failures, devices.c.check_due_at, *_AGENTS_WORD)
    query = sa.select(*columns).outerjoin(device_reports, device_reports.c.device_id == devices.c.id)
    rows = conn.execute(query.where(devices.c.id.in_(device_ids)))
    return {row.id: said for row in rows if (said := _said(row, since)) is not None}


def added(conn: Connection, page: Page, max_age: timedelta) -> Page:
    """The page, its candidates with their open connections. What has no VIP has none, whether somebody said so or not."""
    said = connections(conn, [it.device.id for it in page.candidates], utcnow() - max_age)
    empty = {it.device.id: 0 for it in page.candidates if it.usage[VIPS].used == 0}
    known = {**empty, **said}
    return replace(page, candidates=tuple(replace(it, connections=known.get(it.device.id)) for it in page.candidates))


_AGENTS_WORD = (device_reports.c.connections, device_reports.c.reported_at)


def _said(row: AnyRow, since: datetime) -> int | None:
    own = row.load.get(CONNECTIONS)
    # A device that is asked and answers is due again soon; nothing else is written when it says what it said before.
    answers = row.failures == 0 and row.check_due_at is not None and row.check_due_at >= since
    if answers and isinstance(own, int) and not isinstance(own, bool) and own >= 0:
        return own
    return row.connections if row.reported_at is not None and row.reported_at >= since else None
