"""A ``db sync`` that dies at whatever statement is repeated, and makes the same schema."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db.exception import DBError

from lbaas_scheduler.db import migration, models
from lbaas_scheduler.db.repeatable import JOURNAL
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import ConfigurationError
from tests.database import open_database
from tests.migration.test_schema import ddl, tables

READS = ("SELECT", "SHOW", "PRAGMA", "DO 0", "DESCRIBE", "SET")
BOOKKEEPING = ("BEGIN", "COMMIT")

EXAMPLE = Path(__file__).parents[2] / "examples" / "acme_mesh" / "acme_mesh" / "migrations"

EVERY_STEP = """
import sqlalchemy as sa
from alembic import op
revision, down_revision, branch_labels, depends_on = "acme1", None, ("acme",), None
def upgrade():
    op.create_table("acme_racks", sa.Column("id", sa.Integer, primary_key=True), sa.Column("boxes", sa.Integer))
    op.create_table("acme_boxes", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(9), index=True))
    op.add_column("acme_boxes", sa.Column("rack_id", sa.Integer))
    op.bulk_insert(sa.table("acme_racks", sa.column("id"), sa.column("boxes")), [{"id": 1, "boxes": 0}])
    op.execute("UPDATE acme_racks SET boxes = boxes + 1")
    with op.batch_alter_table("acme_boxes") as batch:
        batch.create_foreign_key("fk_acme_rack", "acme_racks", ["rack_id"], ["id"])
        batch.create_unique_constraint("uq_acme_name", ["name", "rack_id"])
        batch.alter_column("name", new_column_name="label", existing_type=sa.String(9))
    op.drop_index("ix_acme_boxes_name", "acme_boxes")
    op.create_index("ix_acme_label", "acme_boxes", ["label"])
    op.rename_table("acme_boxes", "acme_cases")
def downgrade():
    op.rename_table("acme_cases", "acme_boxes")
    with op.batch_alter_table("acme_boxes") as batch:
        batch.drop_constraint("fk_acme_rack", type_="foreignkey")
        batch.drop_constraint("uq_acme_name", type_="unique")
    with op.batch_alter_table("acme_boxes") as batch:
        batch.drop_column("rack_id")
    op.drop_table("acme_boxes")
    op.drop_table("acme_racks")
"""


class Killed(BaseException):
    """What a process sees of its own death: nothing after it. Says at which statement."""


@contextmanager
def killed_after(database: Database, writes: int, fine: bool) -> Iterator[None]:
    """Cut the connection, as the death of the process does, when the next statement would change something.

    :param fine: also between a change and the note that it is done.
    """
    done = 0

    def count(conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal done
        if statement.lstrip().startswith(READS) or (not fine and (JOURNAL in statement or statement in BOOKKEEPING)):
            return
        if done == writes:
            connection = conn.connection.dbapi_connection
            getattr(connection, "_force_close", connection.close)()
            raise Killed(statement)
        done += 1

    sa.event.listen(database.engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", count)


def repeat_until_done(database: Database, command: Callable[[sa.Engine], None]) -> int:
    """Run ``command``, killed at each of its statements in turn. :returns: how often it was killed.

    What MariaDB has done stays done: there each attempt is killed at the statement after that which the one before ended with.
    The other databases take all back and begin anew each time, which is seen as well at one statement in eleven.
    """
    is_transactional = database.engine.name != "mysql"
    killed_at: list[str] = []
    writes = 0
    while True:
        try:
            with killed_after(database, writes, fine=False):
                command(database.engine)
        except (Killed, sa.exc.SQLAlchemyError, DBError) as error:
            statement = of_the_kill(error)
            # Statements that change rows come again each time.
            again = statement in killed_at[-1:]
            writes = writes + 11 if is_transactional else writes + 1 if again else 1
            killed_at.append(statement)
            assert len(killed_at) < 300, f"it does not get on: {killed_at[-3:]}"
        else:
            return len(killed_at)
        finally:
            with suppress(Exception):  # its connection is cut
                database.engine.dispose()


def repeat_each(database: Database, command: Callable[[sa.Engine], None], undo: Callable[[sa.Engine], None]) -> int:
    """Run ``command`` killed at its first statement, repeat and undo it; then killed at its second, and so on.

    :returns: how often it was killed.
    """
    for writes in range(200):
        try:
            with killed_after(database, writes, fine=True):
                command(database.engine)
        except (Killed, sa.exc.SQLAlchemyError, DBError) as error:
            of_the_kill(error)
        else:
            return writes
        with suppress(Exception):  # its connection is cut
            database.engine.dispose()
        command(database.engine)
        undo(database.engine)
    raise AssertionError("it does not end")


def of_the_kill(error: BaseException) -> str:
    """The statement: the end of the transaction may have failed, too, because the connection is gone."""
    following: BaseException | None = error
    while following is not None:
        if isinstance(following, Killed):
            return str(following)
        following = following.__cause__ or following.__context__
    raise error


@pytest.fixture
def database(empty_database_url: str) -> Iterator[Database]:
    # What is tested is the end of a process, and not of the machine.
    database = open_database(empty_database_url, sqlite_synchronous=False)
    yield database
    database.dispose()


def expected(database: Database) -> dict[str, list[str]]:
    models.metadata.create_all(database.engine)
    made = ddl(database)
    models.metadata.drop_all(database.engine)
    return made


def test_a_sync_killed_at_any_statement_is_repeated(database: Database) -> None:
    wanted = expected(database)

    kills = repeat_until_done(database, migration.sync)

    assert kills > (60 if database.engine.name == "mysql" else 6)
    assert database.read(migration.current) == migration.heads()
    assert database.read(migration.differences) == []
    assert tables(database) == set(wanted)
    assert ddl(database) == wanted


def test_a_downgrade_killed_at_any_statement_is_repeated(database: Database) -> None:
    migration.sync(database.engine)

    kills = repeat_until_done(database, migration.downgrade)

    assert kills > (35 if database.engine.name == "mysql" else 3)
    assert tables(database) == set()


def test_every_kind_of_step_of_a_vendors_revision_is_repeated(database: Database, tmp_path: Path) -> None:
    (tmp_path / "acme1_initial.py").write_text(EVERY_STEP)
    locations = [str(tmp_path)]

    def up(engine: sa.Engine) -> None:
        migration.sync(engine, "acme@head", locations)

    def down(engine: sa.Engine) -> None:
        migration.downgrade(engine, "acme@base", locations)

    kills = repeat_each(database, up, down)

    assert kills > (25 if database.engine.name == "mysql" else 8)
    inspector = sa.inspect(database.engine)
    assert {column["name"] for column in inspector.get_columns("acme_cases")} == {"id", "label", "rack_id"}
    assert {key["name"] for key in inspector.get_foreign_keys("acme_cases")} == {"fk_acme_rack"}
    assert "ix_acme_label" in {it["name"] for it in inspector.get_indexes("acme_cases")}
    assert {it["name"] for it in inspector.get_unique_constraints("acme_cases")} == {"uq_acme_name"}
    assert tables(database) == {"acme_cases", "acme_racks"}
    boxes = database.read(lambda conn: conn.exec_driver_sql("SELECT boxes FROM acme_racks").scalars().all())
    assert boxes == [1], "rows were changed more than once"

    repeat_until_done(database, down)
    assert tables(database) == set()


def test_the_example_of_a_vendor_is_repeated(database: Database) -> None:
    repeat_until_done(database, lambda engine: migration.sync(engine, "acme_mesh@head", [str(EXAMPLE)]))
    assert tables(database) == {"acme_meshes"}


def test_what_an_older_release_left_half_done_is_completed(mariadb_url: str) -> None:
    """It wrote nothing down."""
    database = open_database(mariadb_url)
    with suppress(Killed), killed_after(database, 20, fine=True):
        migration.sync(database.engine)
    database.engine.dispose()
    with database.engine.begin() as conn:
        conn.exec_driver_sql(f"DROP TABLE {JOURNAL}")
    assert tables(database)

    migration.sync(database.engine)
    assert database.read(migration.differences) == []
    database.dispose()


def test_a_revision_of_another_branch_may_come_first_the_next_time(mariadb_url: str, tmp_path: Path) -> None:
    (tmp_path / "acme1_initial.py").write_text(EVERY_STEP)
    database = open_database(mariadb_url)
    with suppress(Killed), killed_after(database, 3, fine=False):
        migration.sync(database.engine)
    database.engine.dispose()

    migration.sync(database.engine, "acme@head", [str(tmp_path)])
    migration.sync(database.engine, locations=[str(tmp_path)])
    assert database.read(migration.differences) == []
    database.dispose()


KILL_ITSELF = """
import os, signal, sys
import sqlalchemy as sa
from lbaas_scheduler.db import migration
from tests.database import open_database
done = 0
def count(conn, cursor, statement, *rest):
    global done
    done += statement.startswith(("CREATE", "\\nCREATE"))
    if done > 12:
        os.kill(os.getpid(), signal.SIGKILL)
engine = open_database(sys.argv[1]).engine
sa.event.listen(engine, "before_cursor_execute", count)
migration.sync(engine)
"""


def test_a_process_that_is_really_killed_leaves_a_database_that_can_be_synced(
    empty_database_url: str, database: Database
) -> None:
    command = [sys.executable, "-c", KILL_ITSELF, empty_database_url]
    ended = subprocess.run(command, check=False, timeout=60, cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL

    migration.sync(database.engine)
    assert database.read(migration.differences) == []


def test_a_table_of_somebody_else_is_not_taken_for_ours(mariadb_url: str) -> None:
    database = open_database(mariadb_url)
    with database.engine.begin() as conn:
        conn.exec_driver_sql("CREATE TABLE vips (id INTEGER, colour VARCHAR(7))")

    with pytest.raises(ConfigurationError, match=r"There is a table vips already, without address, .*not of this schema"):
        migration.sync(database.engine)
    database.dispose()
