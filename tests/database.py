"""Databases for tests."""

from __future__ import annotations

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
