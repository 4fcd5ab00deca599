"""``lbaas-scheduler-manage``: the database, the keys, and whether an upgrade may go ahead."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from oslo_config import cfg
from oslo_db import exception as oslo_db_exception
from sqlalchemy.exc import SQLAlchemyError

from lbaas_scheduler import extensions
from lbaas_scheduler.cli.output import for_readers
from lbaas_scheduler.cmd import restore
from lbaas_scheduler.cmd.upgrade_checks import UpgradeChecks
from lbaas_scheduler.conf import loading
from lbaas_scheduler.db import counters, faults, migration
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.assignments import Assignments
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.devices.secrets import Vault, generate_key
from lbaas_scheduler.errors import LBaaSError

PROG = "lbaas-scheduler-manage"

PATIENCE = {"db_max_retries": 8, "db_max_retry_interval": 1, "db_inc_retry_interval": True}
"""Somebody waits at a terminal: about 2 s instead of the servers' 30 s for a database that is away."""


@for_readers
def main(argv: Sequence[str] | None = None, conf: cfg.ConfigOpts = cfg.CONF) -> int:
    """Run one command.

    :returns: 0, or 1 if the command failed or a check found something; of ``upgrade check`` its worst code, 255 if it failed.
        Wrong usage or configuration exits with 2.
    """
    arguments = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    if arguments.command is generate:
        generate()
        return 0
    loading.load(conf, _options(arguments), PROG)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    for name, value in PATIENCE.items():
        conf.set_override(name, value, "database")
    try:
        return _run(conf, arguments)
    except LBaaSError as error:
        reason = error.message
    except (oslo_db_exception.DBError, SQLAlchemyError) as error:
        reason = f"The database refuses: {faults.first_line(error)}"
    print(f"{PROG}: {reason}", file=sys.stderr)
    # 1 is a mere warning there.
    return 255 if arguments.command is upgrade_check else 1


def _run(conf: cfg.ConfigOpts, arguments: argparse.Namespace) -> int:
    database = Database.open(conf)
    try:
        return int(arguments.command(conf, database, arguments))
    finally:
        database.dispose()


def sync(_conf: cfg.ConfigOpts, database: Database, arguments: argparse.Namespace) -> int:
    # First with patience, and with errors that tell what is wrong: the server may be just starting.
    database.read(migration.current)
    migration.sync(database.engine, arguments.revision, extensions.migration_folders())
    print(f"The database is at {_at(database)}.")
    return 0


def current(_conf: cfg.ConfigOpts, database: Database, _arguments: argparse.Namespace) -> int:
    print(_at(database))
    return 0


def history(_conf: cfg.ConfigOpts, _database: Database, _arguments: argparse.Namespace) -> int:
    for revision in migration.history(extensions.migration_folders()):
        head = " (head)" if revision.is_head else ""
        print(f"{revision.id}{head}: {revision.title} After: {', '.join(revision.after) or 'nothing'}.")
    return 0


def check(_conf: cfg.ConfigOpts, database: Database, arguments: argparse.Namespace) -> int:
    """Schema against models, then counters against placements."""
    migration.require_current(database, extensions.migration_folders())
    differences = database.read(migration.differences)
    drift = counters.check(database, arguments.repair)
    for finding in (*differences, *drift):
        print(finding)
    if not differences and not drift:
        print("The schema is as it should be, and all counters agree with the placements.")
        return 0
    repaired = arguments.repair and bool(drift)
    print(f"{len(differences)} differences in the schema, {len(drift)} counters that drifted{'; repaired' if repaired else ''}.")
    if drift and not repaired:
        print("Repeat with --repair to set the counters right.")
    return 0 if repaired and not differences else 1


def revision(_conf: cfg.ConfigOpts, database: Database, arguments: argparse.Namespace) -> int:
    print(migration.new_revision(database.engine, arguments.message))
    return 0


def generate() -> None:
    print(generate_key())


def rotate(conf: cfg.ConfigOpts, database: Database, _arguments: argparse.Namespace) -> int:
    vault = Vault(conf.security.encryption_keys)
    migration.require_current(database, extensions.migration_folders())
    registry = Registry(database, {}, vault, Assignments(database, conf.scheduler.agent_down_seconds))
    print(f"Secrets of {registry.rotate_secrets()} devices are encrypted with the first key.")
    return 0


def upgrade_check(conf: cfg.ConfigOpts, database: Database, _arguments: argparse.Namespace) -> int:
    return UpgradeChecks(database, conf.security.encryption_keys).check()


def _at(database: Database) -> str:
    return ", ".join(database.read(migration.current)) or "nothing: it has no tables yet"


def _options(arguments: argparse.Namespace) -> list[str]:
    """The part of the command line that oslo.config reads."""
    files = [word for path in arguments.config_file for word in ("--config-file", path)]
    folders = [word for path in arguments.config_dir for word in ("--config-dir", path)]
    return [*files, *folders, *(["--debug"] if arguments.debug else [])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROG, description="Manage the database and the keys of lbaas-scheduler.")
    parser.add_argument("--config-file", action="append", default=[], metavar="PATH", help="scheduler.conf; may be repeated")
    parser.add_argument("--config-dir", action="append", default=[], metavar="DIR", help="folder of *.conf files")
    parser.add_argument("--debug", action="store_true", help="log what is done")
    nouns = parser.add_subparsers(required=True, metavar="db|keys|restore|upgrade")
    _add_db(nouns.add_parser("db", help="the schema and its counters"))
    keys = nouns.add_parser("keys", help="keys for the devices' secrets").add_subparsers(required=True)
    _add(keys, "generate", generate, "print a new key for [security] encryption_keys")
    _add(keys, "rotate", rotate, "encrypt all devices' secrets anew with the first key")
    _add_restore(nouns.add_parser("restore", help="after the database came from a backup, before servers are started"))
    upgrade = nouns.add_parser("upgrade", help="before starting a new version").add_subparsers(required=True)
    _add(upgrade, "check", upgrade_check, "say whether this version can start; exits with 0, 1 (warnings) or 2 (failures)")
    return parser


def _add_db(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="sync|current|history|check|revision")
    command = _add(verbs, "sync", sync, "create the tables, or bring them up to this version")
    command.add_argument("--revision", default="heads", help="stop at this one (default: the newest)")
    _add(verbs, "current", current, "print the revision that the database is at")
    _add(verbs, "history", history, "print all revisions, the newest first")
    command = _add(verbs, "check", check, "compare the schema with this version, and the counters with the placements")
    command.add_argument("--repair", action="store_true", help="set counters that drifted to what the placements say")
    command = _add(verbs, "revision", revision, "for developers: write a new revision with what the models have changed")
    command.add_argument("-m", "--message", required=True, help="its title")


def _add_restore(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="begin|list|remove|end")
    _add(verbs, "begin", restore.begin, "apply anew what the database has, keep on devices what it lacks, and take its addresses")
    _add(verbs, "list", restore.show, "print what agents found on devices, and the database does not know")
    command = _add(verbs, "remove", restore.remove, "let some of that go")
    command.add_argument("ids", nargs="*", metavar="ID", help="a VIP, or a device with all that is unknown of it")
    command.add_argument("--all", action="store_true", help="all that was found so far")
    command = _add(verbs, "end", restore.end, "have agents remove again what the database does not know")
    command.add_argument("--force", action="store_true", help="although something of it is still kept")


def _add(verbs: argparse._SubParsersAction, name: str, command: object, text: str) -> argparse.ArgumentParser:  # type: ignore[type-arg]
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(command=command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
