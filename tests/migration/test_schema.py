"""The migrations make what the models say, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import deployments, epochs, migration, models
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.errors import ConfigurationError
from tests.database import open_database
from tests.factories import add_agent, add_devices, new_device


@pytest.fixture
def database(empty_database_url: str) -> Iterator[Database]:
    database = open_database(empty_database_url)
    yield database
    database.dispose()


def tables(database: Database) -> set[str]:
    return set(sa.inspect(database.engine).get_table_names()) - {"alembic_version"}


def test_the_migrations_make_exactly_the_models(database: Database) -> None:
    migration.sync(database.engine)

    assert database.read(migration.differences) == []
    assert tables(database) == set(models.metadata.tables)


def test_the_history_walks_up_down_and_up(database: Database) -> None:
    migration.sync(database.engine)
    migration.downgrade(database.engine)
    assert tables(database) == set()

    migration.sync(database.engine)
    assert database.read(migration.differences) == []


def test_the_migrations_and_the_models_give_the_same_ddl(database: Database) -> None:
    """Finer than alembic's comparison, which overlooks collations, constraints of SQLite and actions of foreign keys."""
    models.metadata.create_all(database.engine)
    from_models = ddl(database)
    models.metadata.drop_all(database.engine)

    migration.sync(database.engine)
    assert ddl(database) == from_models


def ddl(database: Database) -> dict[str, list[str]]:
    """Table → what the database itself says of it."""
    describe = {"sqlite": describe_sqlite, "postgresql": describe_postgresql, "mysql": describe_mariadb}[database.engine.name]
    return database.read(lambda conn: {name: describe(conn, name) for name in tables(database) | {"vips"}})


def describe_sqlite(conn: sa.Connection, table: str) -> list[str]:
    rows = conn.execute(sa.text("SELECT sql FROM sqlite_master WHERE tbl_name = :t AND sql IS NOT NULL"), {"t": table})
    # Constraints may be listed in any order.
    return sorted(line.strip().rstrip(",") for sql in rows.scalars() for line in sql.splitlines())


def describe_mariadb(conn: sa.Connection, table: str) -> list[str]:
    sql = conn.exec_driver_sql(f"SHOW CREATE TABLE `{table}`").one()[1]
    return sorted(line.strip().rstrip(",") for line in sql.splitlines())


def describe_postgresql(conn: sa.Connection, table: str) -> list[str]:
    columns = """
        SELECT concat_ws(' ', column_name, data_type, character_maximum_length, is_nullable, column_default)
        FROM information_schema.columns WHERE table_name = :t"""
    constraints = "SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = CAST(:t AS regclass)"
    indexes = "SELECT indexdef FROM pg_indexes WHERE tablename = :t"
    return sorted(
        row for query in (columns, constraints, indexes) for row in conn.execute(sa.text(query), {"t": table}).scalars()
    )


def test_differences_are_told_in_sentences(database: Database) -> None:
    migration.sync(database.engine)
    with database.engine.begin() as conn:
        conn.exec_driver_sql("DROP TABLE pool_stats")
        conn.exec_driver_sql("ALTER TABLE vips ADD COLUMN colour VARCHAR(7)")
        conn.exec_driver_sql("CREATE TABLE of_somebody_else (id INTEGER)")

    assert database.read(migration.differences) == ["table pool_stats: is missing", "column vips.colour: should not be there"]


def test_two_that_sync_at_once_wait_for_each_other(empty_database_url: str) -> None:
    databases = [open_database(empty_database_url) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(migration.sync, database.engine) for database in databases]:
            done.result(timeout=60)
    for database in databases:
        assert database.read(migration.current) == migration.heads()
        database.dispose()


def test_a_failed_sync_leaves_nothing_behind_where_ddl_is_transactional(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    with database.engine.begin() as conn:
        conn.exec_driver_sql("CREATE TABLE vips (id INTEGER)")

    with pytest.raises(sa.exc.OperationalError, match="already exists"):
        migration.sync(database.engine)
    assert tables(database) == {"vips"}


class TestRequireCurrent:
    def test_passes_at_the_newest_revision(self, database: Database) -> None:
        migration.sync(database.engine)
        migration.require_current(database)

    def test_says_what_to_run_on_an_empty_database(self, database: Database) -> None:
        with pytest.raises(ConfigurationError, match="no tables yet; run 'lbaas-scheduler-manage db sync'"):
            migration.require_current(database)

    def test_says_what_to_run_on_an_older_database(self, sqlite_url: str, tmp_path: Path) -> None:
        database = open_database(sqlite_url)
        migration.sync(database.engine)
        branch = vendor_branch(tmp_path)

        (head,) = migration.heads()
        with pytest.raises(ConfigurationError, match=f"is at {head}, this version needs {head}, acme1; run"):
            migration.require_current(database, locations=[branch])

    def test_names_a_revision_from_a_newer_version(self, sqlite_url: str) -> None:
        database = open_database(sqlite_url)
        migration.sync(database.engine)
        database.write(lambda conn: conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'"))

        with pytest.raises(ConfigurationError, match="at revision 9999, which this version does not know"):
            migration.require_current(database)


def vendor_branch(folder: Path) -> str:
    """A vendor's folder of versions with one table."""
    (folder / "acme1_initial.py").write_text(
        "from alembic import op\n"
        "import sqlalchemy as sa\n"
        "revision, down_revision, branch_labels, depends_on = 'acme1', None, ('acme',), None\n"
        "def upgrade(): op.create_table('acme_boxes', sa.Column('id', sa.Integer, primary_key=True))\n"
        "def downgrade(): op.drop_table('acme_boxes')\n"
    )
    return str(folder)


def test_a_vendors_branch_is_migrated_beside_ours(database: Database, tmp_path: Path) -> None:
    branch = vendor_branch(tmp_path)
    migration.sync(database.engine, locations=[branch])

    assert "acme_boxes" in tables(database)
    assert database.read(migration.current) == (*migration.heads(), "acme1")
    assert database.read(migration.differences) == []


def test_an_unknown_revision_is_named(sqlite_url: str) -> None:
    with pytest.raises(ConfigurationError, match="'nonsense'"):
        migration.sync(open_database(sqlite_url).engine, "nonsense")


def test_an_epoch_that_was_used_before_an_upgrade_is_not_given_after_it(database: Database) -> None:
    migration.sync(database.engine, "0003")
    add_agent(database)
    add_devices(database, new_device("device"))
    database.write(lambda conn: deployments.create(conn, "vip", "device", epoch=5, due_at=utcnow()))
    migration.sync(database.engine)
    database.write(lambda conn: deployments.delete(conn, "vip"))
    assert database.write(lambda conn: epochs.take(conn, "vip")) == 6
