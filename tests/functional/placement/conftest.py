"""A database with the tables and one live agent, and what places on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db.candidates import SqlCandidates
from lbaas_scheduler.db.models import device_capacities, device_load, placements
from lbaas_scheduler.db.models import device_networks as networks
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.extensions import load_algorithms
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from lbaas_scheduler.scheduler.framework import Scheduler
from lbaas_scheduler.scheduler.gate import HandlerGate
from lbaas_scheduler.sdk.handlers import DeviceHandler
from tests.database import configured
from tests.factories import SERVICE, add_agent
from tests.fakes import ScriptedHandler

AGENT_DOWN_SECONDS = 75


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database.open(configured(database_url))
    add_agent(database)
    yield database
    database.dispose()


def new_placer(
    database: Database, handler: DeviceHandler | None = None, algorithm: str = "least_loaded", **options: Any
) -> Placer:
    """As another server would have it: nothing is shared but the database."""
    used = handler or ScriptedHandler()
    algorithms, _ = load_algorithms(configured("sqlite://"), SERVICE)
    scheduler = Scheduler(HandlerGate({used.device_type: used}, 5.0), algorithms, algorithm, **options)
    return Placer(database, SqlCandidates(database, AGENT_DOWN_SECONDS), {SERVICE: scheduler})


@pytest.fixture
def placer(database: Database) -> Placer:
    return new_placer(database)


def snapshot(database: Database) -> dict[str, list[Any]]:
    """Everything that a claim changes: to see that something has changed nothing."""

    def rows(conn: sa.Connection) -> dict[str, list[Any]]:
        tables = (device_load, device_capacities, networks)
        return {table.name: sorted(map(tuple, conn.execute(sa.select(table)))) for table in tables}

    return database.read(rows)


def used(database: Database, device_id: str, resource_class: str = "VIPS") -> int:
    def read(conn: sa.Connection) -> int:
        column = device_load.c[f"{resource_class.lower()}_used"]
        return conn.scalar(sa.select(column).where(device_load.c.device_id == device_id)) or 0

    return database.read(read)


def used_own(database: Database, device_id: str, resource_class: str) -> int:
    c = device_capacities.c
    wanted = sa.select(c.used).where(c.device_id == device_id, c.resource_class == resource_class)
    return database.read(lambda conn: conn.scalar(wanted)) or 0


def drift(database: Database) -> dict[str, tuple[int, int]]:
    """Device id → (VIPs by the counter, VIPs by the placements), where the two differ."""

    def read(conn: sa.Connection) -> dict[str, tuple[int, int]]:
        held = sa.select(placements.c.device_id, sa.func.count().label("count")).group_by(placements.c.device_id).subquery()
        count = sa.func.coalesce(held.c.count, 0).label("held")
        both = sa.select(device_load.c.device_id, device_load.c.vips_used, count)
        rows = conn.execute(both.outerjoin(held, held.c.device_id == device_load.c.device_id))
        return {row.device_id: (row.vips_used, row.held) for row in rows if row.vips_used != row.held}

    return database.read(read)


def codes(error: Any) -> dict[str, int]:
    """What a NoValidDevice says, by code."""
    return dict(error.value.kwargs["trail"]["dropped"])
