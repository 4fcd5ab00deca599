"""The allocator by itself, for programs that use nothing else of this package: no configuration, no server, no migrations."""

from __future__ import annotations

from oslo_config import cfg
from oslo_db import exception as oslo_db_exception

from lbaas_scheduler.allocator.core.drivers import StateDriver
from lbaas_scheduler.allocator.core.resource import Resource
from lbaas_scheduler.allocator.drivers.sql import SqlDriver
from lbaas_scheduler.allocator.kinds.address import Address
from lbaas_scheduler.allocator.kinds.subnet import Subnet
from lbaas_scheduler.allocator.kinds.vlan import Vlan
from lbaas_scheduler.allocator.kinds.vxlan import Vxlan
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.conf import database as options
from lbaas_scheduler.db import models
from lbaas_scheduler.db.allocator_models import ALLOCATOR_TABLES
from lbaas_scheduler.db.session import Database

KINDS: tuple[type[Resource], ...] = (Vlan, Vxlan, Subnet, Address)


def open_allocator(driver: StateDriver, *more: Resource) -> ResourceAllocator:
    """An allocator with the kinds of this package and ``more``, one of which may take the place of one of ours."""
    kinds = (*(kind() for kind in KINDS), *more)
    return ResourceAllocator(driver, {kind.kind: kind for kind in kinds})


def open_sql(url: str) -> SqlDriver:
    """A database of its own, with the allocator's tables and no others; they are made where they are missing.

    :param url: such as ``sqlite:////var/lib/allocator.sqlite``; as ``[database] connection`` otherwise.
    :raises ConfigurationError: the URL is wrong, or the database's driver is not installed.
    """
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("connection", url, "database")
    database = Database.open(conf)
    try:
        _make_tables(database)
    except oslo_db_exception.DBError:
        # Somebody else made them between our look and our attempt.
        _make_tables(database)
    return SqlDriver(database)


def _make_tables(database: Database) -> None:
    models.metadata.create_all(database.engine, tables=list(ALLOCATOR_TABLES))
