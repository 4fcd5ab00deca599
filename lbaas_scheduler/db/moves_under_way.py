"""How many resources are on their way, and between which devices."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.fleet_models import moves
from lbaas_scheduler.db.lost_devices import lost
from lbaas_scheduler.db.models import devices
from lbaas_scheduler.domain.moves import MoveState, UnderWay


def read(conn: sa.Connection, heard_since: datetime, also: Collection[str] = ()) -> UnderWay:
    """:param also: ids of further devices of which is asked whether they are lost."""
    c = moves.c
    counted = sa.select(c.source_id, c.target_id, sa.func.count().label("number")).where(c.state == MoveState.DEPLOYING)
    counts = {(row.source_id, row.target_id): row.number for row in conn.execute(counted.group_by(c.source_id, c.target_id))}
    concerned = {device_id for ends in counts for device_id in ends if device_id is not None} | set(also)
    gone = (id_ for ids in chunks(concerned) for id_ in conn.scalars(lost(heard_since).where(devices.c.id.in_(ids))))
    return UnderWay(counts, frozenset(gone))
