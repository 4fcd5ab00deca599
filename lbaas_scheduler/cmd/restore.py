"""``lbaas-scheduler-manage restore``: after the database came from a backup."""

from __future__ import annotations

import argparse

from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.allocator import api as allocator_api
from lbaas_scheduler.db import migration, restores
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.networks.comparison import compare


def begin(conf: cfg.ConfigOpts, database: Database, _arguments: argparse.Namespace) -> int:
    migration.require_current(database, extensions.migration_folders())
    due = database.write(restores.begin)
    print(
        f"{due} deployments are applied anew as soon as servers run. What agents have and the database lacks is kept: see 'list'."
    )
    return addresses(conf, database, _arguments)


def addresses(conf: cfg.ConfigOpts, database: Database, _arguments: argparse.Namespace) -> int:
    """Take for VIPs in the allocator what they use."""
    driver = extensions.load_state_driver(conf)
    allocator = allocator_api.build(conf, driver, extensions.load_resources(conf), database)
    wrong = compare(database, allocator, repair=True)
    for text in wrong:
        print(f"{text}. Look which of them serves, and delete the other.")
    return 1 if wrong else 0


def show(_conf: cfg.ConfigOpts, database: Database, _arguments: argparse.Namespace) -> int:
    since, found = database.read(lambda conn: (restores.started_at(conn), restores.found(conn)))
    if since is None:
        print("No restore is under way.")
        return 0
    for row in found:
        what = f"VIP {row.vip_id}" if row.vip_id else "a device that the database does not know"
        fate = "to be removed" if row.to_remove else "kept"
        print(f"{what} on device {row.device_name or row.device_id}, host {row.host}, found {row.found_at.isoformat()}: {fate}")
    print(f"{len(found)} found since {since.isoformat()}.")
    return 0


def remove(_conf: cfg.ConfigOpts, database: Database, arguments: argparse.Namespace) -> int:
    if not arguments.ids and not arguments.all:
        print("Name VIPs or devices of 'list', or say --all.")
        return 2
    count = database.write(lambda conn: restores.remove(conn, None if arguments.all else arguments.ids))
    print(f"{count} go when their agents next compare their devices.")
    return 0 if count or arguments.all else 1


def end(_conf: cfg.ConfigOpts, database: Database, arguments: argparse.Namespace) -> int:
    kept = [row for row in database.read(restores.found) if not row.to_remove]
    if kept and not arguments.force:
        print(
            f"{len(kept)} that agents found are kept, and would be removed now: decide with 'list' and 'remove', or say --force."
        )
        return 1
    database.write(restores.end)
    print("The restore is over: agents remove again what the database does not know.")
    return 0
