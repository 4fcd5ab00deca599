"""Revisions that go on where a killed ``db sync`` ended, on databases that commit each change of the schema at once.

Alembic notes a revision when all of it is done. Where a process died in between, MariaDB keeps what was done of it, and the
next ``db sync`` starts the revision anew. So each statement of the revision under way is written down in :data:`JOURNAL`, and
those that are there are left out the next time. What is not written down is looked for: the process may have died right after it,
or been one of a release that wrote nothing down. PostgreSQL and SQLite take the whole revision back, and need nothing of that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from alembic.ddl.base import AddColumn, DropColumn, RenameTable
from alembic.ddl.mysql import MySQLChangeColumn
from sqlalchemy.engine import Connection
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable, DropConstraint, DropIndex, DropTable

from lbaas_scheduler.errors import ConfigurationError

JOURNAL = "lbaas_scheduler_sync"
"""A table that is there while the schema is changed, and when that was interrupted."""

_NOTHING = "DO 0"
_ROWS = ("INSERT", "UPDATE", "DELETE", "REPLACE")
_SCHEMA = ("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")
_OF_ALEMBIC = "alembic_version"


@contextmanager
def steps(connection: Connection) -> Iterator[None]:
    """Meanwhile, what was done of an interrupted revision is not repeated on ``connection``.

    Changes of rows are made exactly once. So are those of the schema, but for one that was given as a text and that the process
    died right after: such a text has to say IF EXISTS or IF NOT EXISTS.
    """
    if connection.dialect.name != "mysql":
        yield
        return
    journal = _Journal(connection)
    listeners: dict[str, Callable[..., Any]] = {
        "before_execute": journal.note_step,
        "before_cursor_execute": journal.before,
        "after_cursor_execute": journal.after,
    }
    for name, listener in listeners.items():
        sa.event.listen(connection, name, listener, retval=name == "before_cursor_execute")
    try:
        yield
    finally:
        for name, listener in listeners.items():
            sa.event.remove(connection, name, listener)
    journal.close()


class _Journal:
    """What was done of the revision under way: a row for each statement, in their order."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._written: list[str] | None = None
        """Digests that were found; None = not read yet."""
        self._position = 0
        self._step: Any = None
        self._in_own_statement = False

    def note_step(self, _connection: Connection, step: Any, *_: Any) -> None:
        if not self._in_own_statement:
            self._step = step

    def before(self, _conn: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> tuple[str, Any]:
        if self._in_own_statement or not _changes(statement):
            return statement, parameters
        written = self._read()
        if self._position < len(written) and written[self._position] != _digest(statement):
            # Another revision comes first now, of a vendor's package that was installed since: what is there is looked for.
            self._forget()
        if self._is_written() or self._is_done():
            self._write(statement)
            return _NOTHING, [()] if many else ()
        if statement.lstrip().upper().startswith(_ROWS):
            # The rows and the note of them come together.
            self._run("BEGIN")
        return statement, parameters

    def after(self, _conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if self._in_own_statement or not _changes(statement):
            return
        of_rows = statement.lstrip().upper().startswith(_ROWS)
        if of_rows and _OF_ALEMBIC in statement:
            self._forget()  # the revision is complete
        else:
            self._write(statement)
        if of_rows:
            self._run("COMMIT")

    def close(self) -> None:
        """All is done."""
        self._run(f"DROP TABLE IF EXISTS {JOURNAL}")

    def _is_written(self) -> bool:
        return self._position < len(self._read())

    def _is_done(self) -> bool:
        done = next((rule for kind, rule in _RULES if isinstance(self._step, kind)), None)
        return done is not None and done(sa.inspect(self._connection), self._step)

    def _read(self) -> list[str]:
        if self._written is None:
            columns = "position INTEGER PRIMARY KEY, digest VARCHAR(64) NOT NULL"
            self._run(f"CREATE TABLE IF NOT EXISTS {JOURNAL} ({columns}) ENGINE=InnoDB")
            found = self._run(f"SELECT digest FROM {JOURNAL} ORDER BY position")  # noqa: S608
            self._written = list(found.scalars())
        return self._written

    def _write(self, statement: str) -> None:
        if not self._is_written():
            self._run(f"INSERT INTO {JOURNAL} VALUES ({self._position}, '{_digest(statement)}')")  # noqa: S608
        self._position += 1

    def _forget(self) -> None:
        self._run(f"DELETE FROM {JOURNAL}")  # noqa: S608
        self._written, self._position = [], 0

    def _run(self, statement: str) -> Any:
        self._in_own_statement = True
        try:
            return self._connection.exec_driver_sql(statement)
        finally:
            self._in_own_statement = False


def _changes(statement: str) -> bool:
    return statement.lstrip().upper().startswith((*_ROWS, *_SCHEMA)) and f"CREATE TABLE {_OF_ALEMBIC}" not in statement


def _digest(statement: str) -> str:
    return hashlib.sha256(statement.encode()).hexdigest()


def _is_created(database: sa.Inspector, step: CreateTable) -> bool:
    """:raises ConfigurationError: there is a table of that name that was not made by us."""
    table = step.element
    if not database.has_table(table.name):
        return False
    missing = {column.name for column in table.columns} - _columns(database, table.name)
    if missing:
        raise ConfigurationError(
            f"There is a table {table.name} already, without {', '.join(sorted(missing))}: it is not of this schema. Use a "
            "database of its own, or remove the table, and repeat."
        )
    return True


def _is_dropped(database: sa.Inspector, step: DropTable) -> bool:
    return not database.has_table(step.element.name)


def _is_renamed(database: sa.Inspector, step: RenameTable) -> bool:
    return not database.has_table(step.table_name) and database.has_table(step.new_table_name)


def _has_index(database: sa.Inspector, step: CreateIndex) -> bool:
    return step.element.name in _indexes(database, step.element.table)


def _lacks_index(database: sa.Inspector, step: DropIndex) -> bool:
    return step.element.name not in _indexes(database, step.element.table)


def _has_column(database: sa.Inspector, step: AddColumn) -> bool:
    return step.column.name in _columns(database, step.table_name)


def _lacks_column(database: sa.Inspector, step: DropColumn) -> bool:
    return step.column.name not in _columns(database, step.table_name)


def _has_new_name(database: sa.Inspector, step: MySQLChangeColumn) -> bool:
    """Another type, default or nullability is set again: that is repeatable by itself."""
    there = _columns(database, step.table_name)
    return step.newname is not None and step.column_name not in there and step.newname in there


def _has_constraint(database: sa.Inspector, step: AddConstraint) -> bool:
    return _is_there(database, step.element)


def _lacks_constraint(database: sa.Inspector, step: DropConstraint) -> bool:
    return not _is_there(database, step.element)


def _is_there(database: sa.Inspector, constraint: Any) -> bool:
    table = constraint.table.name
    if isinstance(constraint, sa.PrimaryKeyConstraint):
        return bool(database.get_pk_constraint(table)["constrained_columns"])
    found: list[Any] = [
        *database.get_foreign_keys(table),
        *database.get_unique_constraints(table),
        *database.get_check_constraints(table),
    ]
    return constraint.name in {it["name"] for it in found}


def _columns(database: sa.Inspector, table: str) -> set[str]:
    return {column["name"] for column in database.get_columns(table)}


def _indexes(database: sa.Inspector, table: Any) -> set[str | None]:
    return {index["name"] for index in database.get_indexes(table.name)}


_RULES: tuple[tuple[type, Callable[[sa.Inspector, Any], bool]], ...] = (
    (CreateTable, _is_created),
    (DropTable, _is_dropped),
    (RenameTable, _is_renamed),
    (CreateIndex, _has_index),
    (DropIndex, _lacks_index),
    (AddColumn, _has_column),
    (DropColumn, _lacks_column),
    (MySQLChangeColumn, _has_new_name),
    (AddConstraint, _has_constraint),
    (DropConstraint, _lacks_constraint),
)
