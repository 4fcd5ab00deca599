"""Databases with the product's tables. Making them costs more than most tests, MariaDB seconds: each is used again and again.

A process (a worker of pytest-xdist) keeps what it made; before a test gets one, whoever is still connected to it is thrown out
and all rows are removed. A test that changes the schema takes an ``empty_database_url`` instead.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import migration, models
from tests.database import open_database
from tests.rig.mariadb import MariaDB
from tests.rig.postgresql import PostgreSQL

_THROW_OUT = {
    "postgresql": (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ),
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()",
}
_NO_SUCH_THREAD = 1094


class Shelf:
    """Databases of one server."""

    def __init__(self, server: PostgreSQL | MariaDB) -> None:
        self._server = server
        self._free: list[str] = []

    def take(self) -> str:
        """URL of a database with all tables and no rows."""
        while self._free:
            url = self._free.pop()
            if empty(url):
                return url
            self._server.drop_database(url)
        url = self._server.create_database()
        make_tables(url)
        return url

    def put_back(self, url: str) -> None:
        self._free.append(url)


def make_tables(url: str) -> None:
    database = open_database(url, sqlite_synchronous=False)
    migration.sync(database.engine)
    database.dispose()


def empty(url: str) -> bool:
    """Remove all rows of all tables, whoever still holds locks on them. :returns: whether the tables are those of the models."""
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as conn:
        _throw_others_out(conn)
        if set(sa.inspect(conn).get_table_names()) != {*models.metadata.tables, "alembic_version"}:
            return False
        used = _tables_with_rows(conn)
        if conn.dialect.name == "postgresql":
            if used:
                conn.exec_driver_sql(f"TRUNCATE {', '.join(used)} CASCADE")
            return True
        # TRUNCATE makes a new table, which takes MariaDB as long as CREATE TABLE.
        conn.exec_driver_sql("SET foreign_key_checks = 0")
        for table in used:
            conn.exec_driver_sql(f"DELETE FROM {table}")  # noqa: S608
    return True


def _throw_others_out(conn: sa.Connection) -> None:
    others = conn.exec_driver_sql(_THROW_OUT[conn.dialect.name]).scalars().all()
    for thread in others if conn.dialect.name == "mysql" else ():
        try:
            conn.exec_driver_sql(f"KILL {thread}")
        except sa.exc.OperationalError as error:
            if error.orig is None or error.orig.args[0] != _NO_SUCH_THREAD:
                raise


def _tables_with_rows(conn: sa.Connection) -> list[str]:
    names = list(models.metadata.tables)
    parts = (f"SELECT '{name}' FROM (SELECT 1) one WHERE EXISTS (SELECT 1 FROM {name})" for name in names)  # noqa: S608
    return list(conn.exec_driver_sql(" UNION ALL ".join(parts)).scalars())


@pytest.fixture(scope="session")
def postgresql_shelf(postgresql_server: PostgreSQL) -> Shelf:
    return Shelf(postgresql_server)


@pytest.fixture(scope="session")
def mariadb_shelf(mariadb_server: MariaDB) -> Shelf:
    return Shelf(mariadb_server)


@pytest.fixture(scope="session")
def sqlite_with_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to copy."""
    path = tmp_path_factory.mktemp("tables") / "lbaas.sqlite"
    make_tables(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_tables_url(tmp_path: Path, sqlite_with_tables: Path) -> str:
    """URL of an SQLite file with all tables and no rows."""
    return f"sqlite:///{shutil.copy(sqlite_with_tables, tmp_path)}"


@pytest.fixture
def postgresql_tables_url(postgresql_shelf: Shelf) -> Iterator[str]:
    """URL of a PostgreSQL database with all tables and no rows, that only this test uses."""
    url = postgresql_shelf.take()
    yield url
    postgresql_shelf.put_back(url)


@pytest.fixture
def mariadb_tables_url(mariadb_shelf: Shelf) -> Iterator[str]:
    """URL of a MariaDB database with all tables and no rows, that only this test uses."""
    url = mariadb_shelf.take()
    yield url
    mariadb_shelf.put_back(url)


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The test runs once on each database, each time with all tables and no rows.

    For some of them: ``@pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)``.
    """
    return request.getfixturevalue(f"{request.param}_tables_url")
