"""The device classes, kept whole in each server. Rows are only ever added, so the highest id is the version of the whole."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import sched_classes
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.fleet import DeviceClass
from lbaas_scheduler.domain.statuses import Form


class ClassCache:
    """Read at the first use, and when told that the version has grown. Shared by all threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._classes: tuple[DeviceClass, ...] | None = None

    def current(self) -> tuple[DeviceClass, ...]:
        classes = self._classes
        return self.refresh() if classes is None else classes

    def refresh(self) -> tuple[DeviceClass, ...]:
        classes = self._database.read(_read)
        self._classes = classes
        return classes


def _read(conn: Connection) -> tuple[DeviceClass, ...]:
    return tuple(
        DeviceClass(
            id=class_id,
            service=cls.service,
            device_type=cls.device_type,
            zone=cls.zone,
            form=Form(cls.form),
            tenant_id=cls.tenant_id,
            shared=cls.shared,
            traits=frozenset(cls.traits),
        )
        for class_id, cls in sched_classes.all(conn)
    )
