"""The counters against their truth, the placements: finding drift and repairing it.

Nothing in this package should let them drift; a restored backup, a row edited by hand or a bug may. Comparing a whole fleet while
it works takes two steps: :func:`suspects` compares without locks and may be fooled by a placement that is just being made;
:func:`examine` locks the counters of one suspect's device, as a claim does, and then tells the truth about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import device_load, device_networks, devices
from lbaas_scheduler.db.chunks import SIZE
from lbaas_scheduler.db.models import STANDARD_CLASSES, device_capacities, placements
from lbaas_scheduler.db.models import device_load as load_table
from lbaas_scheduler.db.models import device_networks as network_table
from lbaas_scheduler.db.session import Database

CLASS = "class"
NETWORK = "network"
DERIVED = "derived"
"""Kinds of counters: a resource class, the users of a network, a column that is computed from others."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """One counter of one device."""

    device_id: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True, order=True)
class Drift:
    """A counter that is not what the placements say."""

    key: Key
    found: int
    wanted: int

    def __str__(self) -> str:
        return f"device {self.key.device_id}: {self.key.kind} {self.key.name} is {self.found}, should be {self.wanted}"


def check(database: Database, repair: bool = False) -> list[Drift]:
    """Compare all counters with the placements; on a busy database, too.

    :param repair: set what drifted to what it should be.
    :returns: the drift that was found, also when it is repaired now.
    """

    def settle(device_id: str) -> list[Drift]:
        return database.write(lambda conn: examine(conn, device_id, repair))

    return [drift for device_id in database.read(suspects) for drift in settle(device_id)]


def suspects(conn: Connection) -> list[str]:
    """Ids of devices whose counters look wrong. Takes no locks, reads page by page."""
    return sorted({drift.key.device_id for ids in _pages_of_devices(conn) for drift in _compare(conn, ids)})


def examine(conn: Connection, device_id: str, repair: bool = False) -> list[Drift]:
    """The drift of one device, with its counters locked until the transaction ends."""
    _lock(conn, device_id)
    found = _compare(conn, [device_id])
    if repair and found:
        for drift in found:
            _set(conn, drift)
        conn.execute(
            sa.update(load_table).where(load_table.c.device_id == device_id).ordered_values(*device_load.derived_values())
        )
    return found


def _pages_of_devices(conn: Connection) -> Iterator[list[str]]:
    seen = 0
    page = sa.select(load_table.c.seq, load_table.c.device_id).order_by(load_table.c.seq).limit(SIZE)
    while rows := conn.execute(page.where(load_table.c.seq > seen)).all():
        yield [row.device_id for row in rows]
        seen = rows[-1].seq


def _lock(conn: Connection, device_id: str) -> None:
    """In the order of a claim: the hot row, vendors' own classes, networks. By writes of nothing, which every database knows."""
    of_device = load_table.c.device_id == device_id
    conn.execute(sa.update(load_table).where(of_device).values(schedulable=load_table.c.schedulable))
    own = sa.select(device_capacities.c.resource_class).where(device_capacities.c.device_id == device_id)
    for name in conn.scalars(own.order_by(device_capacities.c.resource_class)).all():
        row = sa.and_(device_capacities.c.device_id == device_id, device_capacities.c.resource_class == name)
        conn.execute(sa.update(device_capacities).where(row).values(used=device_capacities.c.used))
    of_device = network_table.c.device_id == device_id
    conn.execute(sa.update(network_table).where(of_device).values(vips=network_table.c.vips))


def _compare(conn: Connection, device_ids: Collection[str]) -> list[Drift]:
    found, wanted = _found(conn, device_ids), _wanted(conn, device_ids)
    # An own class without a row has nowhere to be counted: the device lost it since.
    keys = {key for key in found.keys() | wanted.keys() if key in found or key.kind == NETWORK}
    drift = [Drift(key, found.get(key, 0), wanted.get(key, 0)) for key in keys if found.get(key, 0) != wanted.get(key, 0)]
    return sorted([*drift, *_derived(conn, device_ids)])


def _wanted(conn: Connection, device_ids: Collection[str]) -> Counter[Key]:
    """What the placements add up to. In Python: amounts are JSON, and the databases' functions for it differ."""
    sums: Counter[Key] = Counter()
    columns = (placements.c.device_id, placements.c.amounts, placements.c.networks)
    for row in conn.execute(sa.select(*columns).where(placements.c.device_id.in_(device_ids))):
        for name, amount in row.amounts.items():
            sums[Key(row.device_id, CLASS, name)] += amount
        for network_id in row.networks:
            sums[Key(row.device_id, NETWORK, network_id)] += 1
    return sums


def _found(conn: Connection, device_ids: Collection[str]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for row in conn.execute(sa.select(load_table).where(load_table.c.device_id.in_(device_ids))).mappings():
        found |= {Key(row["device_id"], CLASS, name): row[device_load.used(name).name] for name in STANDARD_CLASSES}
    own = sa.select(device_capacities).where(
        device_capacities.c.device_id.in_(device_ids), device_capacities.c.resource_class.not_in(STANDARD_CLASSES)
    )
    found |= {Key(row.device_id, CLASS, row.resource_class): row.used for row in conn.execute(own)}
    wired = sa.select(network_table).where(network_table.c.device_id.in_(device_ids))
    found |= {Key(row.device_id, NETWORK, row.network_id): row.vips for row in conn.execute(wired)}
    return found


def _derived(conn: Connection, device_ids: Collection[str]) -> list[Drift]:
    """Columns that do not follow from the counters beside them."""
    columns = device_load.derived_values()
    query = sa.select(
        load_table.c.device_id, *(part for column, value in columns for part in (column, value.label(f"{column.name}_x")))
    )
    drift = []
    for row in conn.execute(query.where(load_table.c.device_id.in_(device_ids))).mappings():
        for column, _value in columns:
            found, wanted = int(row[column.name]), int(row[f"{column.name}_x"])
            if found != wanted:
                drift.append(Drift(Key(row["device_id"], DERIVED, column.name), found, wanted))
    return drift


def _set(conn: Connection, drift: Drift) -> None:
    key = drift.key
    if key.kind == NETWORK:
        _set_network(conn, drift)
    elif key.kind == CLASS and key.name in STANDARD_CLASSES:
        counter = device_load.used(key.name)
        conn.execute(sa.update(load_table).where(load_table.c.device_id == key.device_id).values({counter: drift.wanted}))
    elif key.kind == CLASS:
        row = sa.and_(device_capacities.c.device_id == key.device_id, device_capacities.c.resource_class == key.name)
        conn.execute(sa.update(device_capacities).where(row).values(used=drift.wanted))


def _set_network(conn: Connection, drift: Drift) -> None:
    device_id, network_id = drift.key.device_id, drift.key.name
    row = sa.and_(network_table.c.device_id == device_id, network_table.c.network_id == network_id)
    if drift.wanted == 0:
        conn.execute(sa.delete(network_table).where(row))
        return
    if not conn.execute(sa.update(network_table).where(row).values(vips=drift.wanted)).rowcount:
        _wire(conn, device_id, network_id)
        conn.execute(sa.update(network_table).where(row).values(vips=drift.wanted))


def _wire(conn: Connection, device_id: str, network_id: str) -> None:
    """The row is lost, and with it the interface: any with room will do, and if none has any, the first."""
    device = devices.by_ids(conn, [device_id])[device_id]
    if not device_networks.attach(conn, device, [network_id]):
        values = {"network_id": network_id, "device_id": device_id, "interface": device.interfaces[0].name, "vips": 0}
        conn.execute(sa.insert(network_table).values(**values))
