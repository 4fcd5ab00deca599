"""Resource classes of devices as they were registered. Vendors' own are counted here, the standard ones in ``device_load``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import sqlalchemy as sa

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import STANDARD_CLASSES, device_capacities
from lbaas_scheduler.db.rows import AnySelect
from lbaas_scheduler.domain.capacity import Capacity, Usage

_NOTHING = Capacity(total=0)


def insert(conn: sa.Connection, device_id: str, capacities: Mapping[str, Capacity]) -> None:
    rows = [_row(device_id, name, it) for name, it in sorted(capacities.items())]
    if rows:
        conn.execute(sa.insert(device_capacities), rows)


def replace(conn: sa.Connection, device_id: str, capacities: Mapping[str, Capacity]) -> None:
    """Other capacities. A class that is left out but still used stays, with a limit of 0, so that it is counted back down."""
    conn.execute(
        sa.delete(device_capacities).where(
            device_capacities.c.device_id == device_id,
            device_capacities.c.resource_class.not_in(sorted(capacities)),
            device_capacities.c.used == 0,
        )
    )
    present = conn.execute(_select([device_id]).order_by(device_capacities.c.resource_class)).all()
    for row in present:
        values = _row(device_id, row.resource_class, capacities.get(row.resource_class, _NOTHING))
        key = (device_capacities.c.device_id == device_id, device_capacities.c.resource_class == row.resource_class)
        conn.execute(sa.update(device_capacities).where(*key).values(values))
    known = {row.resource_class for row in present}
    insert(conn, device_id, {name: it for name, it in capacities.items() if name not in known})


def by_devices(conn: sa.Connection, device_ids: Collection[str]) -> dict[str, dict[str, Capacity]]:
    """Device id → resource class → capacity."""
    found: dict[str, dict[str, Capacity]] = defaultdict(dict)
    for ids in chunks(device_ids):
        for row in conn.execute(_BY_DEVICES, {"ids": ids}):
            found[row.device_id][row.resource_class] = Capacity(row.total, row.reserved, row.allocation_ratio)
    return found


_BY_DEVICES = sa.select(
    device_capacities.c.device_id,
    device_capacities.c.resource_class,
    device_capacities.c.total,
    device_capacities.c.reserved,
    device_capacities.c.allocation_ratio,
).where(device_capacities.c.device_id.in_(sa.bindparam("ids")))


def usage(conn: sa.Connection, device_ids: Collection[str]) -> dict[str, dict[str, Usage]]:
    """Device id → vendor's own class → how full."""
    found: dict[str, dict[str, Usage]] = defaultdict(dict)
    for ids in chunks(device_ids):
        for row in conn.execute(_select(ids).where(device_capacities.c.resource_class.not_in(STANDARD_CLASSES))):
            found[row.device_id][row.resource_class] = Usage(row.used, row.limit)
    return found


def _select(device_ids: Collection[str]) -> AnySelect:
    return sa.select(device_capacities).where(device_capacities.c.device_id.in_(device_ids))


def _row(device_id: str, resource_class: str, capacity: Capacity) -> dict[str, object]:
    return {
        "device_id": device_id,
        "resource_class": resource_class,
        "total": capacity.total,
        "reserved": capacity.reserved,
        "allocation_ratio": capacity.allocation_ratio,
        "limit": capacity.limit,
    }
