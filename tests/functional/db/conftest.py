"""A database with one counter in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db.session import Database
from tests.database import open_database

metadata = sa.MetaData()
counters = sa.Table(
    "counters", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False), sa.Column("value", sa.Integer)
)


@pytest.fixture
def database(empty_database_url: str) -> Iterator[Database]:
    database = open_database(empty_database_url)
    prepare(database)
    yield database
    database.dispose()


def prepare(database: Database) -> None:
    metadata.create_all(database.engine)
    database.write(lambda conn: conn.execute(counters.insert(), [{"id": number, "value": 0} for number in (1, 2)]))


def value_of(database: Database, number: int = 1) -> int:
    return database.read(lambda conn: value(conn, number))


def value(conn: sa.Connection, number: int = 1) -> int:
    return conn.execute(sa.select(counters.c.value).where(counters.c.id == number)).scalar_one()


def add_one(conn: sa.Connection, number: int = 1) -> None:
    conn.execute(counters.update().where(counters.c.id == number).values(value=counters.c.value + 1))
