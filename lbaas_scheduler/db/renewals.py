"""Deployments of a new epoch: whatever was said before of a resource to a device, or by its agent, is out of date."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from lbaas_scheduler.db import deployments, epochs
from lbaas_scheduler.db.models import deployments as table
from lbaas_scheduler.domain import clock

# Nothing is confirmed of a new epoch.
_NEW = {"epoch": epochs.latest(), "applied_revision": 0}


def renew(conn: sa.Connection, resource_id: str, due_at: datetime) -> int:
    """Apply or remove a resource anew wherever it is, as if that had just been asked for: its deadline and back-off start over.

    :returns: on how many devices.
    """
    anew = deployments.desire(due_at).values(pending_since=clock.utcnow(), error="")
    told = conn.execute(anew.where(table.c.resource_id == resource_id)).rowcount
    if told:
        # Of a new epoch, so that no agent knows better.
        epochs.advance(conn, [resource_id])
        conn.execute(sa.update(table).values(_NEW).where(table.c.resource_id == resource_id))
    return told


def new_epoch(conn: sa.Connection, resource_id: str, device_id: str) -> None:
    """What was said of the resource to the device, or by it, is out of date."""
    epochs.advance(conn, [resource_id])
    conn.execute(sa.update(table).values(_NEW).where(*deployments.of([resource_id], device_id)))


def outrank(conn: sa.Connection, resource_id: str, device_id: str, epoch: int) -> None:
    """The device's agent knows of an epoch that we do not: have what is desired said to it anew, above that epoch."""
    deployments.hold_all(conn, resource_id)
    epochs.advance(conn, [resource_id], above=epoch)
    conn.execute(_due(clock.utcnow()).values(_NEW).where(*deployments.of([resource_id], device_id)))


def outrank_all(conn: sa.Connection, step: int) -> int:
    """After a restore of the database: have all that is desired said anew to all devices, whatever they heard since the backup.

    :param step: by how much all epochs grow; more than any resource had epochs since the backup.
    :returns: how many rows are due now.
    """
    epochs.advance_all(conn, step)
    return conn.execute(_due(clock.utcnow()).values(_NEW)).rowcount


def rebind(conn: sa.Connection, device_id: str, due_at: datetime) -> int:
    """Another agent drives the device now: a new epoch for all that is on it, due at once, and the back-off starts over.

    :returns: how many rows were changed.
    """
    here = table.c.device_id == device_id
    # Locked first of all, as by everybody.
    found = conn.execute(_due(due_at).where(here)).rowcount
    if found:
        epochs.advance(conn, list(conn.scalars(sa.select(table.c.resource_id).where(here))))
        conn.execute(sa.update(table).values(_NEW).where(here))
    return found


def _due(due_at: datetime) -> sa.Update:
    return sa.update(table).values(due_at=due_at, attempts=0, pending_since=deployments.since())
