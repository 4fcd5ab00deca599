"""The time that servers agree on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import database_clock
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import DatabaseClock
from tests.database import open_database

FORWARD = 1000.0
"""Less than the age at which a pool opens its connections anew."""


@pytest.fixture
def database(empty_database_url: str) -> Iterator[Database]:
    opened = open_database(empty_database_url)
    yield opened
    opened.dispose()


def look(conn: sa.Connection) -> object:
    return conn.execute(sa.text("SELECT 1")).scalar_one()


def seconds(clock: DatabaseClock) -> float:
    return clock.time_ns() / 1e9


@pytest.mark.parametrize("empty_database_url", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize("use", [Database.read, Database.write, Database.look, Database.alone, Database.glance])
def test_a_server_whose_clock_is_a_quarter_of_an_hour_off_has_the_databases_time_and_knows_the_difference(
    database: Database, use: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, true = DatabaseClock(), time.time
    monkeypatch.setattr(time, "time", lambda: true() + FORWARD)
    database_clock.listen(database.engine, clock)
    assert use(database, look) == 1
    assert abs(seconds(clock) - true()) < 1
    assert clock.ahead_seconds == pytest.approx(FORWARD, abs=1)
    assert "1000 s ahead of the database's" in clock.trouble(5)


@pytest.mark.parametrize("empty_database_url", ["postgresql", "mariadb"], indirect=True)
def test_a_pooled_connection_is_asked_again_but_not_by_every_transaction(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, true, set_forward = DatabaseClock(), time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: true() + set_forward)
    database_clock.listen(database.engine, clock)
    database.read(look)
    set_forward = FORWARD
    database.read(look)
    assert abs(clock.ahead_seconds) < 1
    monkeypatch.setattr(database_clock, "MEASURE_SECONDS", 0.0)
    database.dispose()
    for _ in range(2):
        database.read(look)
    assert clock.ahead_seconds == pytest.approx(FORWARD, abs=1)
    set_forward = 0.0
    database.read(look)
    assert abs(clock.ahead_seconds) < 1


def test_nothing_is_left_open_by_the_question(database: Database) -> None:
    """Or the next transaction would be a part of the question's."""
    with database.engine.connect() as conn:
        assert not conn.in_transaction()
        if database.engine.dialect.name == "postgresql":
            status = conn.connection.dbapi_connection.info.transaction_status  # type: ignore[union-attr]
            assert status.name == "IDLE"


def test_a_sqlite_file_has_the_clock_of_its_host(sqlite_url: str) -> None:
    clock = DatabaseClock()
    database = open_database(sqlite_url)
    database_clock.listen(database.engine, clock)
    database.read(look)
    assert abs(datetime.now(UTC).timestamp() - seconds(clock)) < 1
    assert clock.ahead_seconds == 0
    database.dispose()
