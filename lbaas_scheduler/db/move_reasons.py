"""Whether there is still a reason for a move that somebody, or something, once asked for."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.fleet_models import evacuations
from lbaas_scheduler.db.models import devices
from lbaas_scheduler.db.rows import AnySelect
from lbaas_scheduler.domain.moves import Cause, Move
from lbaas_scheduler.domain.statuses import DeviceStatus

_EVACUATED = sa.select(evacuations.c.device_id.label("id")).where(evacuations.c.finished_at.is_(None))
_OFFLINE = sa.select(devices.c.id).where(devices.c.status == DeviceStatus.OFFLINE.value)


def still_wanted(conn: sa.Connection, moves: Collection[Move]) -> set[str]:
    """Ids of the resources that are still to leave: of devices whose evacuation goes on, or that are still OFFLINE. What was
    asked for one by one is wanted until it is done."""
    evacuated = _among(conn, _EVACUATED, {it.source_id for it in moves if it.cause is Cause.EVACUATION})
    offline = _among(conn, _OFFLINE, {it.source_id for it in moves if it.cause is Cause.FAILURE})
    left = {Cause.EVACUATION: evacuated, Cause.FAILURE: offline}
    return {it.resource_id for it in moves if it.cause not in left or it.source_id in left[it.cause]}


def _among(conn: sa.Connection, query: AnySelect, device_ids: Collection[str]) -> set[str]:
    column = query.selected_columns[0]
    return {id_ for ids in chunks(device_ids) for id_ in conn.scalars(query.where(column.in_(ids)))}
