"""Connections that answer and are of no use: a failover left them with a server that takes no writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db import exception as oslo_db_exception

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import Unavailable
from tests.database import open_database
from tests.functional.db.conftest import add_one, prepare, value, value_of
from tests.rig.postgresql import PostgreSQL

POOLED = 5
READ_ONLY = {
    "own_postgresql": "ALTER DATABASE {} SET default_transaction_read_only = {}",
    "own_mariadb": "SET GLOBAL tx_read_only = {1}",
}
"""What holds for new connections only: those that are there stay as they are, as after a failover behind one address."""


class Site:
    """A server of one database, which an administrator turns read-only and back."""

    def __init__(self, kind: str, service: Any) -> None:
        self.url = service.create_database()
        self._kind, self._service = kind, service
        self.admin = open_database(self.url)
        prepare(self.admin)

    def new_connections(self, *, read_only: bool) -> None:
        name = self.admin.engine.url.database
        self._service._execute(READ_ONLY[self._kind].format(name, "on" if read_only else "off"))

    def worker(self, **options: object) -> Database:
        return open_database(self.url, **options)


@pytest.fixture(params=sorted(READ_ONLY))
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    made = Site(request.param, request.getfixturevalue(request.param))
    yield made
    made.new_connections(read_only=False)
    made.admin.dispose()


def fill_pool(database: Database) -> None:
    """Have several connections at once, so that as many stay in the pool."""
    everybody = threading.Barrier(POOLED)

    def work(conn: sa.Connection) -> None:
        value(conn)
        everybody.wait(30)

    with ThreadPoolExecutor(POOLED) as threads:
        list(threads.map(lambda _: database.write(work), range(POOLED)))


def backend(conn: sa.Connection) -> int:
    return conn.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()


def one_statement(database: Database) -> None:
    database.alone(add_one)


def transaction(database: Database) -> None:
    database.write(lambda conn: (value(conn), add_one(conn)))


@pytest.mark.parametrize("write", [one_statement, transaction])
def test_pooled_connections_to_a_demoted_server_cost_a_delay_in_every_worker(
    site: Site, write: Callable[[Database], None]
) -> None:
    site.new_connections(read_only=True)
    workers = [site.worker() for _ in range(2)]
    for worker in workers:
        fill_pool(worker)
    site.new_connections(read_only=False)
    with ThreadPoolExecutor(POOLED) as threads:
        list(threads.map(lambda n: write(workers[n % 2]), range(2 * POOLED)))
    assert value_of(site.admin) == 2 * POOLED
    assert [value_of(worker) for worker in workers] == [2 * POOLED] * 2
    for worker in workers:
        worker.dispose()


def test_a_server_that_stays_read_only_is_reported_after_the_configured_patience_and_goes_on_reading(site: Site) -> None:
    site.new_connections(read_only=True)
    worker = site.worker(db_max_retries=4)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"The database is unavailable for now: .*(?i:read.only)"):
            worker.write(add_one)
    with pytest.raises(Unavailable):
        worker.try_write(add_one)
    assert value_of(worker) == 0
    worker.dispose()


def test_a_mariadb_that_is_set_read_only_costs_a_delay_until_it_is_not(own_mariadb: Any) -> None:
    """As Galera, MaxScale and orchestrators demote a server; who has the privilege READ_ONLY ADMIN would not notice."""
    url = own_mariadb.create_database()
    admin = open_database(url)
    prepare(admin)
    for statement in (
        "CREATE USER app IDENTIFIED BY 'app'",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON `{admin.engine.url.database}`.* TO app",
        "SET GLOBAL read_only = 1",
    ):
        own_mariadb._execute(statement)
    ours = admin.engine.url.set(username="app", password="app").render_as_string(hide_password=False)
    impatient, patient = open_database(ours, db_max_retries=3), open_database(ours)
    with pytest.raises(Unavailable, match="--read-only"):
        impatient.write(add_one)
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(patient.write, add_one)
        with pytest.raises(TimeoutError):
            written.result(timeout=0.5)
        own_mariadb._execute("SET GLOBAL read_only = 0")
        written.result(timeout=60)
    assert value_of(impatient) == 1
    for database in (admin, impatient, patient):
        database.dispose()


def test_a_postgresql_standby_costs_a_delay_until_it_is_promoted(own_postgresql: PostgreSQL) -> None:
    admin = open_database(own_postgresql.create_database())
    prepare(admin)
    admin.dispose()
    own_postgresql.stop()
    Path(own_postgresql.folder, "data", "standby.signal").touch()
    own_postgresql.start()
    assert value_of(admin) == 0, "a standby reads, and its connection is used for the next write"
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(admin.write, add_one)
        with pytest.raises(TimeoutError):
            written.result(timeout=0.5)
        own_postgresql._execute("SELECT pg_promote()")
        written.result(timeout=60)
    assert value_of(admin) == 1
    admin.dispose()


def test_what_postgresql_prepared_for_a_schema_that_changed_is_prepared_anew(postgresql_url: str) -> None:
    database, other = open_database(postgresql_url), open_database(postgresql_url)
    prepare(database)
    everything = sa.text("SELECT * FROM counters WHERE id = 1")
    for _ in range(10):  # psycopg prepares what it has seen five times
        database.read(lambda conn: conn.execute(everything).all())
    other.write(lambda conn: conn.execute(sa.text("ALTER TABLE counters ADD COLUMN more integer")))
    assert database.read(lambda conn: conn.execute(everything).one()) == (1, 0, None)
    for it in (database, other):
        it.dispose()


def test_our_own_mistake_of_writing_in_a_read_is_no_fault_of_the_servers(postgresql_url: str) -> None:
    database = open_database(postgresql_url)
    prepare(database)
    before = database.read(backend)
    with pytest.raises(oslo_db_exception.DBError, match="read-only"):
        database.read(add_one)
    assert database.read(backend) == before, "no connection is made anew for it"
    database.dispose()
