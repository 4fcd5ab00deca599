"""Transactions on real databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import sqlalchemy as sa
from oslo_db import exception as oslo_db_exception

from lbaas_scheduler.db.session import Database, NestedTransaction
from lbaas_scheduler.errors import Conflict
from tests.database import open_database
from tests.functional.db.conftest import add_one, counters, value, value_of
from tests.rig.waiting import wait_for


def test_a_write_is_committed_when_its_work_returns(database: Database) -> None:
    assert database.write(lambda conn: (add_one(conn), "done")[1]) == "done"
    assert value_of(database) == 1


def test_an_error_of_the_work_rolls_back_and_comes_out_unchanged_after_one_try(database: Database) -> None:
    error, tries = Conflict("mine"), []

    def work(conn: sa.Connection) -> None:
        tries.append(1)
        add_one(conn)
        raise error

    with pytest.raises(Conflict) as caught:
        database.write(work)
    assert caught.value is error
    assert len(tries) == 1
    assert value_of(database) == 0


def test_a_duplicate_key_comes_out_as_oslo_dbs_error_after_one_try(database: Database) -> None:
    tries = []

    def work(conn: sa.Connection) -> None:
        tries.append(1)
        conn.execute(counters.insert(), {"id": 1, "value": 0})

    with pytest.raises(oslo_db_exception.DBDuplicateEntry):
        database.write(work)
    assert len(tries) == 1


def test_what_a_read_writes_is_lost_or_refused(database: Database) -> None:
    refuses = database.engine.dialect.name != "sqlite"
    errors = (oslo_db_exception.DBError, sa.exc.InvalidRequestError)
    with pytest.raises(errors, match="read-only") if refuses else nullcontext():
        database.read(add_one)
    assert value_of(database) == 0


def test_what_postgresql_prepared_outlives_reads_and_writes(postgresql_url: str) -> None:
    database = open_database(postgresql_url)
    names = sa.text("SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%often%'")
    for _ in range(10):  # psycopg prepares what it has seen five times
        database.read(lambda conn: conn.execute(sa.text("SELECT 1 AS often")).all())
        database.write(lambda conn: conn.execute(sa.text("SELECT 2 AS other")).all())
    assert database.read(lambda conn: conn.scalars(names).all())
    database.dispose()


@pytest.mark.parametrize("outer", ["read", "write"])
@pytest.mark.parametrize("inner", ["read", "write"])
def test_a_transaction_inside_a_transaction_is_refused_with_advice(database: Database, outer: str, inner: str) -> None:
    with pytest.raises(NestedTransaction, match=f"Database.{inner} was called inside Database.{outer}.*pass the connection"):
        getattr(database, outer)(lambda _conn: getattr(database, inner)(add_one))
    database.write(add_one)  # and the thread is free again


def test_two_databases_may_be_nested(sqlite_url: str) -> None:
    one, other = open_database(sqlite_url), open_database(sqlite_url)
    assert one.read(lambda _conn: other.read(lambda conn: conn.scalar(sa.select(sa.literal(1))))) == 1


def test_writers_of_many_threads_lose_no_update(database: Database) -> None:
    def read_then_write(conn: sa.Connection) -> None:
        seen = value(conn)
        changed = conn.execute(counters.update().where(counters.c.id == 1, counters.c.value == seen).values(value=seen + 1))
        if not changed.rowcount:
            raise oslo_db_exception.RetryRequest(Conflict("somebody was faster"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: database.write(read_then_write), range(80)))
    assert value_of(database) == 80


def test_a_deadlock_is_repeated_until_both_are_through(database: Database) -> None:
    both_hold_one = threading.Barrier(2)
    tries: list[int] = []

    def cross(first: int, second: int) -> None:
        def work(conn: sa.Connection) -> None:
            tries.append(first)
            add_one(conn, first)
            if len(tries) <= 2 and database.engine.name != "sqlite":
                both_hold_one.wait(timeout=10)
            add_one(conn, second)

        database.write(work)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(cross, 1, 2), threads.submit(cross, 2, 1)]:
            done.result(timeout=30)
    assert (value_of(database, 1), value_of(database, 2)) == (2, 2)
    # SQLite has one writer at a time and so no deadlock; the others must have met one, or this test proves nothing.
    assert len(tries) == (2 if database.engine.name == "sqlite" else 3)


@pytest.mark.parametrize("empty_database_url", ["postgresql", "mariadb"], indirect=True)
def test_reads_see_what_others_committed_meanwhile(database: Database) -> None:
    """READ COMMITTED: what is read after a guarded UPDATE must not come from a snapshot taken before it."""

    def work(conn: sa.Connection) -> tuple[int, int]:
        before = value(conn)
        with ThreadPoolExecutor(1) as other:
            other.submit(database.write, add_one).result()
        return before, value(conn)

    assert database.read(work) == (0, 1)


@pytest.mark.parametrize("empty_database_url", ["postgresql", "mariadb"], indirect=True)
def test_the_isolation_level_does_not_depend_on_the_servers_default(database: Database) -> None:
    for _ in range(2):  # the second time on a connection that was used before
        assert database.write(lambda conn: conn.get_isolation_level()) == "READ COMMITTED"


@pytest.mark.parametrize("empty_database_url", ["mariadb"], indirect=True)
def test_a_lock_that_takes_too_long_is_waited_for_again(database: Database) -> None:
    tries = []

    def impatient(conn: sa.Connection) -> None:
        tries.append(1)
        conn.exec_driver_sql("SET innodb_lock_wait_timeout = 1")
        add_one(conn)

    with ThreadPoolExecutor(1) as threads:
        with database.engine.begin() as holder:
            add_one(holder)
            done = threads.submit(database.write, impatient)
            wait_for(lambda: len(tries) == 2, 20, "the second try")
        done.result(timeout=30)
    assert value_of(database) == 2


@pytest.mark.parametrize("empty_database_url", ["postgresql"], indirect=True)
def test_a_serialisation_failure_is_repeated(database: Database) -> None:
    tries = []

    def work(conn: sa.Connection) -> None:
        tries.append(1)
        conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        value(conn)
        if len(tries) == 1:
            with ThreadPoolExecutor(1) as other:
                other.submit(database.write, add_one).result()
        add_one(conn)

    database.write(work)
    assert len(tries) == 2
    assert value_of(database) == 2


@pytest.mark.parametrize("empty_database_url", ["postgresql", "mariadb"], indirect=True)
def test_a_connection_that_was_cut_is_replaced(database: Database) -> None:
    """In the pool, and in the middle of a transaction."""
    tries = []

    def work(conn: sa.Connection) -> None:
        tries.append(1)
        add_one(conn)
        if len(tries) == 1:
            with ThreadPoolExecutor(1) as other:
                other.submit(cut, database, identity(conn)).result()
        add_one(conn)

    database.write(work)
    assert len(tries) == 2
    assert value_of(database) == 2

    idle = database.read(identity)
    other_database = open_database(database.engine.url.render_as_string(hide_password=False))
    cut(other_database, idle)
    other_database.dispose()
    database.write(add_one)
    assert value_of(database) == 3


def identity(conn: sa.Connection) -> int:
    query = "SELECT pg_backend_pid()" if conn.dialect.name == "postgresql" else "SELECT connection_id()"
    return int(conn.exec_driver_sql(query).scalar_one())


def cut(database: Database, connection_id: int) -> None:
    def work(conn: sa.Connection) -> None:
        if conn.dialect.name == "postgresql":
            conn.exec_driver_sql(f"SELECT pg_terminate_backend({connection_id})")
        else:
            conn.exec_driver_sql(f"KILL {connection_id}")

    database.write(work)


@pytest.mark.parametrize("empty_database_url", ["mariadb"], indirect=True)
def test_every_character_can_be_stored(database: Database) -> None:
    """oslo.db would choose MySQL's utf8, which has no characters of four bytes."""
    url = database.engine.url.difference_update_query(["charset"]).render_as_string(hide_password=False)
    plain = open_database(url)
    assert plain.read(lambda conn: conn.exec_driver_sql("SELECT @@character_set_connection").scalar()) == "utf8mb4"
    plain.dispose()
