"""What is special about SQLite."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import event

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import ConfigurationError, Unavailable
from tests.database import open_database
from tests.functional.db.conftest import add_one, prepare, value_of


@pytest.fixture
def database(sqlite_url: str) -> Database:
    database = open_database(sqlite_url)
    prepare(database)
    return database


def pragma(database: Database, name: str) -> object:
    return database.read(lambda conn: conn.exec_driver_sql(f"PRAGMA {name}").scalar())


@pytest.mark.parametrize(
    ("name", "value"), [("journal_mode", "wal"), ("busy_timeout", 30_000), ("synchronous", 2), ("foreign_keys", 1)]
)
def test_each_connection_is_set_up(database: Database, name: str, value: object) -> None:
    assert pragma(database, name) == value


def test_synchronous_can_be_given_up_for_speed(sqlite_url: str) -> None:
    assert pragma(open_database(sqlite_url, sqlite_synchronous=False), "synchronous") == 0


def test_connections_are_kept(database: Database) -> None:
    opened = []
    event.listen(database.engine, "connect", lambda *_: opened.append(1))
    for _ in range(10):
        database.write(add_one)
    assert opened == []


def test_writers_take_the_write_lock_at_once_and_readers_never(database: Database) -> None:
    statements: list[str] = []
    connection = database.engine.raw_connection()
    connection.dbapi_connection.set_trace_callback(statements.append)  # type: ignore[union-attr]
    connection.close()

    database.write(add_one)
    value_of(database)
    assert [word for word in statements if "UPDATE" not in word and "SELECT" not in word] == [
        "BEGIN IMMEDIATE",
        "COMMIT",
        "BEGIN DEFERRED",
        "ROLLBACK",
    ]


def test_a_reader_is_not_held_up_by_a_writer(database: Database) -> None:
    def work(conn: object) -> int:
        add_one(conn)  # type: ignore[arg-type]
        with ThreadPoolExecutor(1) as other:
            return other.submit(value_of, database).result(timeout=10)

    assert database.write(work) == 0


def test_a_lock_that_another_process_holds_is_waited_for(database: Database, sqlite_url: str) -> None:
    """Even without SQLite's own patience."""
    event.listen(database.engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout = 0"))
    database.dispose()
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(database.write, add_one)
        with pytest.raises(TimeoutError):
            written.result(timeout=0.3)
        other.execute("COMMIT")
        written.result(timeout=10)
    assert value_of(database) == 1


def test_a_lock_that_is_never_given_back_is_reported(sqlite_url: str) -> None:
    prepare(open_database(sqlite_url))
    database = open_database(sqlite_url, db_max_retries=3)
    event.listen(database.engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout = 0"))
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unavailable, match="database is locked"):
        database.write(add_one)
    other.close()


def test_processes_that_write_at_once_lose_nothing(database: Database, sqlite_url: str) -> None:
    program = (
        "import sys\n"
        "from tests.database import open_database\n"
        "from tests.functional.db.conftest import add_one, value\n"
        "database = open_database(sys.argv[1])\n"
        "for _ in range(50): database.write(lambda conn: (value(conn), add_one(conn)))\n"
    )
    command = [sys.executable, "-c", program, sqlite_url]
    root = Path(__file__).parents[3]
    processes = [subprocess.Popen(command, cwd=root) for _ in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0, 0]
    assert value_of(database) == 200


def test_a_database_in_memory_serves_many_threads() -> None:
    database = open_database("sqlite://")
    prepare(database)
    run: Callable[[int], None] = lambda _: (database.write(add_one), value_of(database))[0]  # noqa: E731
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(100)))
    assert value_of(database) == 100


def test_a_database_in_memory_is_rolled_back_too() -> None:
    database = open_database("sqlite://")
    prepare(database)

    def work(conn: object) -> None:
        add_one(conn)  # type: ignore[arg-type]
        raise KeyError

    with pytest.raises(KeyError):
        database.write(work)
    assert value_of(database) == 0


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/absent/lbaas.sqlite")
    with pytest.raises(ConfigurationError, match=r"\[database\] connection \(.*/absent/lbaas.sqlite\): unable to open"):
        value_of(database)
