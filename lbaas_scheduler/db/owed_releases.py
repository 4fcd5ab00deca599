"""Owners that are gone, and whose values are still to be given back to an allocator outside of this database."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.restore_models import owed_releases
from lbaas_scheduler.domain.clock import utcnow


def add(conn: Connection, owner_type: str, owner_id: str) -> None:
    """In the transaction that ends the owner. Repeatable."""
    row = {"owner_type": owner_type, "owner_id": owner_id}
    # Deleted first: neither is there an INSERT that all databases can repeat, nor does anything wait for this row.
    discard(conn, owner_type, owner_id)
    conn.execute(sa.insert(owed_releases).values(created_at=utcnow(), **row))


def discard(conn: Connection, owner_type: str, owner_id: str) -> None:
    """The store has confirmed."""
    of_owner = (owed_releases.c.owner_type == owner_type, owed_releases.c.owner_id == owner_id)
    conn.execute(sa.delete(owed_releases).where(*of_owner))


def oldest(conn: Connection, limit: int) -> list[tuple[str, str]]:
    """Type and id of owners, those first that wait for longest."""
    rows = sa.select(owed_releases.c.owner_type, owed_releases.c.owner_id).order_by(owed_releases.c.created_at).limit(limit)
    return [(row.owner_type, row.owner_id) for row in conn.execute(rows)]
