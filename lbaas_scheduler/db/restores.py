"""A restore of the database from a backup: what is on devices and not here is kept until an operator has decided."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import renewals
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import deployments, devices
from lbaas_scheduler.db.restore_models import restores, unknown_vips
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.clock import utcnow

EPOCHS = 1_000_000
"""By how much all epochs grow: more than any VIP had epochs since the backup was made."""

U = unknown_vips.c


def begin(conn: Connection) -> int:
    """Keep what is unknown from now on, and have all that is known said to all devices anew, whatever they heard meanwhile.

    May be repeated: the restore that is under way begins anew.

    :returns: how many deployments are due now.
    """
    end(conn)
    conn.execute(sa.insert(restores).values(id=1, started_at=utcnow()))
    return renewals.outrank_all(conn, EPOCHS)


def started_at(conn: Connection) -> datetime | None:
    """None: no restore is under way."""
    return conn.scalar(sa.select(restores.c.started_at))


def end(conn: Connection) -> None:
    """What is unknown is removed again, as ever. Repeatable."""
    conn.execute(sa.delete(unknown_vips))
    conn.execute(sa.delete(restores))


def unknown_of(conn: Connection, device_id: str, vip_ids: Collection[str]) -> set[str]:
    """Those of the VIPs that are to be on no device at all, as far as is known here; with "" if the device is not here."""
    if conn.scalar(sa.select(devices.c.id).where(devices.c.id == device_id)) is None:
        return {"", *vip_ids}
    placed = sa.select(deployments.c.resource_id)
    known = {id_ for ids in chunks(vip_ids) for id_ in conn.scalars(placed.where(deployments.c.resource_id.in_(ids)))}
    return set(vip_ids) - known


def note(conn: Connection, host: str, device_id: str, vip_ids: Collection[str]) -> set[str]:
    """Write down what an agent found. :returns: those that are to be kept."""
    decided = {row.vip_id: row.to_remove for row in conn.execute(sa.select(unknown_vips).where(U.device_id == device_id))}
    new = sorted(set(vip_ids) - decided.keys())
    rows = [{"device_id": device_id, "vip_id": id_, "host": host, "found_at": utcnow()} for id_ in new]
    if rows:
        conn.execute(sa.insert(unknown_vips), rows)
    return {id_ for id_ in vip_ids if not decided.get(id_, False)}


def found(conn: Connection) -> list[AnyRow]:
    """All that is unknown, by device and VIP, with ``device_name``: None for devices that are not here."""
    named = sa.select(unknown_vips, devices.c.name.label("device_name")).outerjoin(devices, devices.c.id == U.device_id)
    return list(conn.execute(named.order_by(U.device_id, U.vip_id)))


def remove(conn: Connection, ids: Collection[str] | None) -> int:
    """Let VIPs, or all of devices, go at the next comparison of their devices. None = everything.

    :returns: how many entries that concerns.
    """
    chosen = sa.update(unknown_vips).values(to_remove=True)
    if ids is not None:
        chosen = chosen.where(sa.or_(U.vip_id.in_(ids), U.device_id.in_(ids)))
    return conn.execute(chosen).rowcount
