"""Devices that everything is to leave."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db.fleet_models import evacuations
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.moves import Evacuation


def begin(conn: sa.Connection, device_id: str, total: int) -> bool:
    """Start an evacuation. One that is under way goes on, and counts as this one.

    :returns: whether it is a new one.
    :raises DBDuplicateEntry: somebody else started one at the same moment.
    """
    found = get(conn, device_id)
    if found is not None and found.finished_at is None:
        return False
    conn.execute(sa.delete(evacuations).where(evacuations.c.device_id == device_id))
    conn.execute(sa.insert(evacuations).values(device_id=device_id, total=total, started_at=clock.utcnow()))
    return True


def finish(conn: sa.Connection, device_id: str, *, cancelled: bool = False) -> bool:
    """:returns: whether one was under way."""
    running = (evacuations.c.device_id == device_id, evacuations.c.finished_at.is_(None))
    over = sa.update(evacuations).where(*running).values(finished_at=clock.utcnow(), cancelled=cancelled)
    return bool(conn.execute(over).rowcount)


def hold(conn: sa.Connection, device_id: str) -> bool:
    """Let nobody end the evacuation of a device until the transaction ends. :returns: whether one is under way."""
    running = (evacuations.c.device_id == device_id, evacuations.c.finished_at.is_(None))
    # By a write of nothing: neither SQLite nor Galera has SELECT ... FOR UPDATE.
    return bool(conn.execute(sa.update(evacuations).where(*running).values(total=evacuations.c.total)).rowcount)


def get(conn: sa.Connection, device_id: str) -> Evacuation | None:
    row = conn.execute(sa.select(evacuations).where(evacuations.c.device_id == device_id)).one_or_none()
    return None if row is None else _evacuation(row)


def running(conn: sa.Connection) -> list[str]:
    """Ids of devices that are being evacuated."""
    under_way = sa.select(evacuations.c.device_id).where(evacuations.c.finished_at.is_(None))
    return list(conn.scalars(under_way.order_by(evacuations.c.device_id)))


def list_all(conn: sa.Connection) -> list[Evacuation]:
    return [_evacuation(row) for row in conn.execute(sa.select(evacuations).order_by(evacuations.c.started_at))]


def _evacuation(row: Any) -> Evacuation:
    return Evacuation(row.device_id, row.total, row.started_at, row.finished_at, bool(row.cancelled))
