"""Databases for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from lbaas_scheduler.conf import opts
from lbaas_scheduler.db.session import Database


def configured(url: str, **database: object) -> cfg.ConfigOpts:
    """A configuration of its own, with the database at ``url`` and other options of ``[database]``."""
    conf = cfg.ConfigOpts()
    opts.register_all(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    for name, value in {"connection": url, **database}.items():
        conf.set_override(name, value, "database")
    return conf


def open_database(url: str, **options: object) -> Database:
    return Database.open(configured(url, **options))


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    sent: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)
