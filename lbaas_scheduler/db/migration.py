"""The schema's history, as commands on an engine.

A package of a vendor may bring tables of its own: an alembic branch whose folder of versions is handed in as ``locations``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import autogenerate, command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.engine import Connection, Engine

from lbaas_scheduler.db import engine as engines
from lbaas_scheduler.db import models, repeatable
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import ConfigurationError

HERE = Path(__file__).parent / "migrations"

SYNC = "run 'lbaas-scheduler-manage db sync'"

LOCK_NAME = "lbaas_scheduler_migrations"
LOCK_NUMBER = 0x4C42_5343
LOCK_WAIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Revision:
    """One step of the history."""

    id: str
    after: tuple[str, ...]
    title: str
    is_head: bool


def sync(engine: Engine, revision: str = "heads", locations: Sequence[str] = ()) -> None:
    """Bring the schema up to ``revision``. One at a time: others on the same database wait.

    On SQLite and PostgreSQL all or nothing. MariaDB commits each statement: what was interrupted there is repeated, and goes on
    where it ended.

    :raises ConfigurationError: there is no such revision, here or in the database.
    """
    _run(engine, locations, lambda config: command.upgrade(config, revision))


def downgrade(engine: Engine, revision: str = "base", locations: Sequence[str] = ()) -> None:
    """Take the schema back to ``revision``; what only newer tables and columns hold is lost.

    :raises ConfigurationError: there is no such revision, here or in the database.
    """
    _run(engine, locations, lambda config: command.downgrade(config, revision))


def current(connection: Connection) -> tuple[str, ...]:
    """Revisions that the database is at; none when it was never synced."""
    return tuple(sorted(MigrationContext.configure(connection).get_current_heads()))


def heads(locations: Sequence[str] = ()) -> tuple[str, ...]:
    """The newest revision of each branch."""
    return tuple(sorted(_scripts(locations).get_heads()))


def history(locations: Sequence[str] = ()) -> list[Revision]:
    """All revisions, the newest first."""
    return [
        Revision(script.revision, tuple(script._normalized_down_revisions), script.doc, script.is_head)
        for script in _scripts(locations).walk_revisions()
    ]


def differences(connection: Connection) -> list[str]:
    """What the database has otherwise than the models say, a sentence each. Tables that are not ours are left out."""
    options = {"compare_type": True, "include_object": _is_ours}
    context = MigrationContext.configure(connection, opts=options)
    return [_sentence(step) for step in _flat(autogenerate.compare_metadata(context, models.metadata))]


def require_current(database: Database, locations: Sequence[str] = ()) -> None:
    """For the start of a server.

    :raises ConfigurationError: the schema is not the one that this version needs; says what to do.
    :raises Unavailable: the database does not answer.
    """
    found, wanted = database.read(current), heads(locations)
    if found == wanted:
        return
    if not found:
        raise ConfigurationError(f"The database has no tables yet; {SYNC}.")
    unknown = sorted(set(found) - {revision.id for revision in history(locations)})
    if unknown:
        raise ConfigurationError(
            f"The database is at revision {', '.join(unknown)}, which this version does not know; install the newer version "
            "that made it, or the vendor's package that it belongs to."
        )
    raise ConfigurationError(f"The database is at {', '.join(found)}, this version needs {', '.join(wanted)}; {SYNC}.")


def new_revision(engine: Engine, message: str) -> Path:
    """For developers: write the file of a new revision with what :func:`differences` finds.

    :returns: the file.
    """
    with engine.connect() as connection:
        script = command.revision(_config((), connection), message, autogenerate=True)
    return Path(script.path)  # type: ignore[union-attr]  # a list only with --splice, which is not used


def _run(engine: Engine, locations: Sequence[str], step: Any) -> None:
    with engines.writer(engine).begin() as connection, _alone(connection), repeatable.steps(connection):
        try:
            step(_config(locations, connection))
        except CommandError as error:
            raise ConfigurationError(f"The schema was not changed: {error}") from error


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """SQLite's writer is alone anyhow, PostgreSQL's lock ends with the transaction; MariaDB's DDL would end a transaction's."""
    name = connection.dialect.name
    if name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK_NUMBER)))
    if name != "mysql":
        yield
        return
    if connection.execute(sa.select(sa.func.get_lock(LOCK_NAME, LOCK_WAIT_SECONDS))).scalar() != 1:
        raise ConfigurationError(f"Another 'db sync' has been running for {LOCK_WAIT_SECONDS} s; wait for it and repeat.")
    try:
        yield
    finally:
        # The lock of a connection that is lost went with it, and asking would hide why.
        if not connection.invalidated:
            connection.execute(sa.select(sa.func.release_lock(LOCK_NAME)))


def _config(locations: Sequence[str], connection: Connection | None = None) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", _escaped(str(HERE)))
    config.set_main_option("version_locations", _escaped(os.pathsep.join([str(HERE / "versions"), *locations])))
    # The second is the name before alembic 1.16.
    config.set_main_option("path_separator", "os")
    config.set_main_option("version_path_separator", "os")
    return config


def _escaped(value: str) -> str:
    return value.replace("%", "%%")


def _scripts(locations: Sequence[str]) -> ScriptDirectory:
    return ScriptDirectory.from_config(_config(locations))


def _is_ours(_item: Any, name: str | None, type_: str, reflected: bool, _compare_to: Any) -> bool:
    return not (type_ == "table" and reflected and name not in models.metadata.tables)


def _flat(steps: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Alembic groups changes of one column in a list."""
    for step in steps:
        if isinstance(step, list):
            yield from step
        else:
            yield step


def _sentence(step: tuple[Any, ...]) -> str:
    verb, *rest = step
    what = verb.partition("_")[2].replace("_", " ")
    if verb.startswith("modify_"):
        _schema, table, column, _kwargs, found, wanted = rest
        return f"column {table}.{column}: the {what} is {found!r}, should be {wanted!r}"
    item = rest[-1]
    owner = rest[-2] if what == "column" else getattr(getattr(item, "table", None), "name", "")
    name = f"{owner}.{item.name}" if owner else str(item.name)
    return f"{what} {name}: {'is missing' if verb.startswith('add_') else 'should not be there'}"
