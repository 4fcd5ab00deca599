"""The database comes back from a backup that its own tools made, beside etcd and alone."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.allocator.core.requests import Owner
from lbaas_scheduler.allocator.drivers.etcd import EtcdDriver
from lbaas_scheduler.allocator.drivers.etcd_client import Access
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import deployments, restores
from lbaas_scheduler.db.deployments import DeploymentRow
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.networks.comparison import compare
from tests.allocator_side import KINDS
from tests.database import open_database
from tests.functional.loadbalancer.lab import Lab

Restore = Callable[[], None]


def back_up(url: str, folder: Path) -> Restore:
    """Make a backup, as the guide says. :returns: what restores it."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _back_up_sqlite(str(parsed.database), folder)
    host, port, user, name = str(parsed.host), str(parsed.port), str(parsed.username), str(parsed.database)
    if parsed.get_backend_name() == "postgresql":
        words = ["-h", host, "-p", port, "-U", user]
        dump = ["pg_dump", *words, "--clean", "--if-exists", name]
        load = ["psql", *words, "-q", "-v", "ON_ERROR_STOP=1", name]
    else:
        words = ["--no-defaults", f"--host={host}", f"--port={port}", f"--user={user}", "--protocol=tcp"]
        dump, load = ["mariadb-dump", *words, "--single-transaction", name], ["mariadb", *words, name]
    password = str(parsed.password or "")
    environment = {**os.environ, "PGPASSWORD": password, "MYSQL_PWD": password}
    made = subprocess.run(dump, env=environment, stdout=subprocess.PIPE, check=True, timeout=120).stdout

    def restore() -> None:
        subprocess.run(load, env=environment, input=made, stdout=subprocess.DEVNULL, check=True, timeout=120)

    return restore


def _back_up_sqlite(path: str, folder: Path) -> Restore:
    copy = folder / "backup.sqlite"
    with closing(sqlite3.connect(path)) as here, closing(sqlite3.connect(copy)) as there:
        here.backup(there)

    def restore() -> None:
        for ending in ("-wal", "-shm"):
            Path(path + ending).unlink(missing_ok=True)
        Path(path).write_bytes(copy.read_bytes())

    return restore


@pytest.fixture
def lab(database_url: str) -> Iterator[Lab]:
    lab = Lab(open_database(database_url))
    lab.furnish()
    yield lab
    lab.database.dispose()


@pytest.fixture
def lab_beside_etcd(database_url: str, etcd_server: Any) -> Iterator[Lab]:
    driver = EtcdDriver(Access((etcd_server.url,)), etcd_server.new_namespace())
    lab = Lab(open_database(database_url), ResourceAllocator(driver, KINDS))
    lab.furnish()
    yield lab
    driver.close()
    lab.database.dispose()


def delete(lab: Lab, vip: dict[str, Any]) -> None:
    lab.plugin.delete_vip(lab.me, vip["id"])
    lab.report(Result(vip["id"], lab.version(vip["id"]), removed=True))


def rows(lab: Lab, vip: dict[str, Any]) -> list[DeploymentRow]:
    return lab.database.read(lambda conn: deployments.for_resources(conn, [vip["id"]]))


def settle(lab: Lab, vip: dict[str, Any]) -> None:
    lab.report(Result(vip["id"], lab.version(vip["id"])))


def test_beside_etcd_no_address_is_given_twice(lab_beside_etcd: Lab, database_url: str, tmp_path: Path) -> None:
    lab = lab_beside_etcd
    gone, kept = lab.vip(), lab.vip()
    settle(lab, kept)
    restore = back_up(database_url, tmp_path)
    delete(lab, gone)  # etcd gives its address to whoever comes next
    lab.database.engine.dispose()
    restore()

    lab.database.write(restores.begin)
    assert compare(lab.database, lab.allocator, repair=True) == []
    owners = {grant.owner: grant.value for grant in lab.allocator.list() if grant.owner.type == "vip"}
    assert owners == {Owner("vip", vip["id"]): vip["address"] for vip in (gone, kept)}
    assert lab.vip()["address"] not in owners.values()
    [row] = rows(lab, kept)
    assert row.due_at is not None
    assert row.due_at <= utcnow(), "it is applied anew at once"


def test_beside_etcd_a_vip_made_since_the_backup_keeps_its_address(
    lab_beside_etcd: Lab, database_url: str, tmp_path: Path
) -> None:
    lab = lab_beside_etcd
    old = lab.vip()
    restore = back_up(database_url, tmp_path)
    new = lab.vip()
    lab.database.engine.dispose()
    restore()

    lab.database.write(restores.begin)
    assert compare(lab.database, lab.allocator, repair=True) == []
    assert rows(lab, new) == []
    assert lab.vip()["address"] not in (old["address"], new["address"])


def test_alone_the_database_has_its_vips_and_their_addresses_again(lab: Lab, database_url: str, tmp_path: Path) -> None:
    gone, kept = lab.vip(), lab.vip()
    settle(lab, kept)
    restore = back_up(database_url, tmp_path)
    delete(lab, gone)
    lab.database.engine.dispose()
    restore()

    assert lab.database.write(restores.begin) == 2
    assert compare(lab.database, lab.allocator, repair=False) == []
    assert lab.vip()["address"] not in (gone["address"], kept["address"])
    [row] = rows(lab, kept)
    assert row.version.epoch > restores.EPOCHS
    assert row.due_at is not None
    assert row.due_at <= utcnow()
