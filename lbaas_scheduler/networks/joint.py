"""The allocator beside the database: inside of its transactions where both are one, around them where they are not."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.drivers.sql import SqlDriver
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db.session import Database

DEFAULT_HOLD_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Joint:
    """``hold_seconds``: how long a value is held while the transaction that wants it is under way elsewhere."""

    database: Database
    allocator: ResourceAllocator
    hold_seconds: float = DEFAULT_HOLD_SECONDS

    @property
    def is_one(self) -> bool:
        """Whether what the allocator does is a part of a transaction of the database."""
        return isinstance(self.allocator.driver, SqlDriver)

    def inside(self, conn: Connection) -> ResourceAllocator:
        """The allocator, in the transaction of ``conn`` if that can be; else in a hurry, as rows are locked meanwhile."""
        driver = self.allocator.driver
        return self.allocator.within(driver.bound(conn)) if isinstance(driver, SqlDriver) else self.hurried

    @property
    def hurried(self) -> ResourceAllocator:
        """The allocator for what can be done later as well."""
        return self.allocator.within(self.allocator.driver.briefly())
