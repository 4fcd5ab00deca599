"""The device classes, kept whole in each server. Rows are only ever added, so the highest id is the version of the whole."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.models import sched_classes
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.statuses import Form
from lbaas_scheduler.scheduler.classes import DeviceClass


class ClassCache:
    """Asks for the version at every use, and reads the classes again only when it has grown."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._version = 0
        self._classes: tuple[DeviceClass, ...] = ()

    def current(self) -> tuple[DeviceClass, ...]:
        return self._database.read(self._current)

    def _current(self, conn: Connection) -> tuple[DeviceClass, ...]:
        version = conn.scalar(sa.select(sa.func.max(sched_classes.c.id))) or 0
        if version != self._version:
            self._classes = _read(conn)
            self._version = self._classes[-1].id if self._classes else 0
        return self._classes


def _read(conn: Connection) -> tuple[DeviceClass, ...]:
    rows = conn.execute(sa.select(sched_classes).order_by(sched_classes.c.id)).all()
    return tuple(
        DeviceClass(
            id=row.id,
            service=row.service,
            device_type=row.device_type,
            zone=row.zone,
            form=Form(row.form),
            tenant_id=row.tenant_id,
            shared=row.shared,
            traits=frozenset(row.traits),
        )
        for row in rows
    )
