"""Moves in the pages, orders and with the filters of every noun's lists."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.fleet_models import moves
from lbaas_scheduler.db.listing import fetch, matching
from lbaas_scheduler.db.moves import from_row
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.domain.moves import Move

_COLUMNS = {name: column for name, column in moves.c.items() if name not in ("id", "tried", "due_at")}


def search(conn: Connection, listing: Listing) -> list[Move]:
    """Markers are ids of resources. The filter ``device_id``: from or to one of these devices."""
    filters = dict(listing.filters)
    query = sa.select(moves)
    if (devices := filters.pop("device_id", None)) is not None:
        query = query.where(sa.or_(moves.c.source_id.in_(devices), moves.c.target_id.in_(devices)))
    asked = replace(listing, filters=filters)
    return [from_row(row) for row in fetch(conn, matching(conn, query, _COLUMNS, asked, "resource_id"), asked)]
