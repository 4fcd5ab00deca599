"""The cold row of a device: what it is and how it is reached. A placement reads it at most and never writes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db import device_capacities
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import devices
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.capacity import Capacity
from lbaas_scheduler.domain.devices import Device, Interface, Management
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus, Form


@dataclass(frozen=True, slots=True)
class StoredDevice:
    """A device as it lies in the database: its secret is sealed (``secret`` is a token; "" = none) and not in ``device``."""

    device: Device
    secret: str
    class_id: int
    created_at: datetime
    updated_at: datetime


def insert(conn: sa.Connection, device: Device, secret: str, class_id: int) -> None:
    now = clock.utcnow()
    values = {"id": device.id, "created_at": now, "updated_at": now, "generation": device.generation}
    conn.execute(sa.insert(devices).values(**values, **_columns(device, secret, class_id)))


def update(conn: sa.Connection, device: Device, secret: str, class_id: int) -> bool:
    """Write a device whose ``generation`` is that which was read; the row gets the next one.

    :returns: False: somebody else changed or removed it meanwhile.
    """
    changed = (
        sa.update(devices)
        .where(devices.c.id == device.id, devices.c.generation == device.generation)
        .values(**_columns(device, secret, class_id), generation=device.generation + 1, updated_at=clock.utcnow())
    )
    return bool(conn.execute(changed).rowcount)


def set_status(conn: sa.Connection, device_id: str, status: DeviceStatus, description: str = "") -> bool:
    """What monitoring found. :returns: whether that is news."""
    changed = (
        sa.update(devices)
        .where(devices.c.id == device_id, sa.or_(devices.c.status != status, devices.c.status_description != description))
        .values(status=status.value, status_description=description, generation=devices.c.generation + 1)
    )
    return bool(conn.execute(changed).rowcount)


def set_secret(conn: sa.Connection, device_id: str, seen: str, secret: str) -> bool:
    """Replace a sealed secret by the same one sealed with another key. :returns: False: it changed meanwhile."""
    changed = (
        sa.update(devices)
        .where(devices.c.id == device_id, devices.c.secret == seen)
        # The next generation, so that an edit that has read the old token does not write it back.
        .values(secret=secret, generation=devices.c.generation + 1)
    )
    return bool(conn.execute(changed).rowcount)


def delete(conn: sa.Connection, device_id: str) -> bool:
    return bool(conn.execute(sa.delete(devices).where(devices.c.id == device_id)).rowcount)


def get(conn: sa.Connection, device_id: str) -> StoredDevice | None:
    found = by_ids_stored(conn, [device_id])
    return found.get(device_id)


def by_ids(conn: sa.Connection, device_ids: Collection[str]) -> dict[str, Device]:
    """The devices among ``device_ids`` that exist, without secrets."""
    return {device_id: stored.device for device_id, stored in by_ids_stored(conn, device_ids).items()}


def by_ids_stored(conn: sa.Connection, device_ids: Collection[str]) -> dict[str, StoredDevice]:
    """As :func:`by_ids`, with the sealed secrets."""
    rows = [row for ids in chunks(device_ids) for row in conn.execute(_BY_IDS, {"ids": ids})]
    return {stored.device.id: stored for stored in _stored(conn, rows)}


_BY_IDS = sa.select(devices).where(devices.c.id.in_(sa.bindparam("ids")))


def list_page(
    conn: sa.Connection, filters: Mapping[str, Sequence[Any]], marker: str | None = None, limit: int | None = None
) -> list[StoredDevice]:
    """Devices by id, from after ``marker``.

    :param filters: column → accepted values; None among them means "not set".
    """
    query = sa.select(devices).order_by(devices.c.id)
    if marker is not None:
        query = query.where(devices.c.id > marker)
    if limit is not None:
        query = query.limit(limit)
    query = query.where(*(_one_of(devices.c[name], values) for name, values in filters.items()))
    return _stored(conn, conn.execute(query).all())


def sealed_secrets(conn: sa.Connection) -> dict[str, str]:
    """Device id → token, for all devices that have secrets."""
    rows = conn.execute(sa.select(devices.c.id, devices.c.secret).where(devices.c.secret != "").order_by(devices.c.id))
    return {row.id: row.secret for row in rows}


def _one_of(column: sa.Column[Any], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    given = column.in_([value for value in values if value is not None])
    return sa.or_(given, column.is_(None)) if None in values else given


def _columns(device: Device, secret: str, class_id: int) -> dict[str, Any]:
    management = device.management
    return {
        "name": device.name,
        "description": device.description,
        "service": device.service,
        "device_type": device.device_type,
        "form": device.form.value,
        "tenant_id": device.tenant_id,
        "shared": device.shared,
        "zone": device.zone,
        "admin_state": device.admin_state.value,
        "status": device.status.value,
        "status_description": device.status_description,
        "management": {
            "address": management.address,
            "port": management.port,
            "user": management.user,
            "parameters": dict(management.parameters),
        },
        "secret": secret,
        "traits": sorted(device.traits),
        "interfaces": [asdict(interface) for interface in device.interfaces],
        "agent_host": device.agent_host,
        "extra": dict(device.extra),
        "class_id": class_id,
    }


def _stored(conn: sa.Connection, rows: Sequence[Any]) -> list[StoredDevice]:
    capacities = device_capacities.by_devices(conn, [row.id for row in rows])
    return [
        StoredDevice(_from_row(row, capacities.get(row.id, {})), row.secret, row.class_id, row.created_at, row.updated_at)
        for row in rows
    ]


def _from_row(row: Any, capacities: Mapping[str, Capacity]) -> Device:
    return Device(
        id=row.id,
        name=row.name,
        service=row.service,
        device_type=row.device_type,
        description=row.description,
        form=Form(row.form),
        tenant_id=row.tenant_id,
        shared=bool(row.shared),
        zone=row.zone,
        admin_state=AdminState(row.admin_state),
        status=DeviceStatus(row.status),
        status_description=row.status_description,
        management=Management(**row.management),
        traits=frozenset(row.traits),
        capacities=capacities,
        interfaces=tuple(Interface(**interface) for interface in row.interfaces),
        agent_host=row.agent_host,
        extra=row.extra,
        generation=row.generation,
    )
