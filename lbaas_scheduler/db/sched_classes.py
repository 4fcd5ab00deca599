"""Scheduling classes: the distinct combinations of what devices are filtered by.

Tens of rows stand for thousands of devices, so that a server keeps all of them in memory and a request's traits, zone and type
cost no SQL. Rows are added and never changed or deleted: the highest id is the version of the whole table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass

import sqlalchemy as sa
from oslo_db import exception as db_exception

from lbaas_scheduler.db.models import sched_classes
from lbaas_scheduler.db.rows import AnyRow, AnySelect


@dataclass(frozen=True, slots=True)
class SchedClass:
    """``tenant_id`` "" = the operator's. ``traits`` sorted."""

    service: str
    device_type: str
    zone: str
    form: str
    tenant_id: str
    shared: bool
    traits: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Identifies the content: 64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def find_or_create(
    conn: sa.Connection,
    *,
    service: str,
    device_type: str,
    zone: str,
    form: str,
    tenant_id: str | None,
    shared: bool,
    traits: Collection[str],
) -> int:
    """The id of the class with this content; the same for everybody who asks, at whatever time."""
    wanted = SchedClass(service, device_type, zone, str(form), tenant_id or "", shared, tuple(sorted(set(traits))))
    found = _find(conn, wanted.digest)
    return _create(conn, wanted) if found is None else found


def all(conn: sa.Connection) -> list[tuple[int, SchedClass]]:
    """Every class with its id, ascending."""
    rows = conn.execute(sa.select(sched_classes).order_by(sched_classes.c.id))
    return [(row.id, _from_row(row)) for row in rows]


def _find(conn: sa.Connection, digest: str) -> int | None:
    found: int | None = conn.scalar(_by_digest(digest))
    return found


def _by_digest(digest: str) -> AnySelect:
    return sa.select(sched_classes.c.id).where(sched_classes.c.digest == digest)


def _create(conn: sa.Connection, wanted: SchedClass) -> int:
    values = {**asdict(wanted), "traits": list(wanted.traits), "digest": wanted.digest}
    try:
        # A savepoint: PostgreSQL refuses every statement after a failed one until it is rolled back to.
        with conn.begin_nested():
            conn.execute(sa.insert(sched_classes).values(values))
    except db_exception.DBDuplicateEntry:
        # Another server was first. The insertion waited for its commit, so its row is there to be read.
        pass
    return int(conn.execute(_by_digest(wanted.digest)).scalar_one())


def _from_row(row: AnyRow) -> SchedClass:
    return SchedClass(row.service, row.device_type, row.zone, row.form, row.tenant_id, bool(row.shared), tuple(row.traits))
