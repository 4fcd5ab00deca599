"""What tests of the allocator share: stores, kinds, a clock that is set by hand, short ways to say things."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lbaas_scheduler.allocator.core.drivers import Query, StateDriver
from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.allocator.core.resource import Resource
from lbaas_scheduler.allocator.drivers.etcd import EtcdDriver
from lbaas_scheduler.allocator.drivers.etcd_client import Access
from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from lbaas_scheduler.allocator.drivers.sql import SqlDriver
from lbaas_scheduler.allocator.keys import registered
from lbaas_scheduler.allocator.kinds.address import Address
from lbaas_scheduler.allocator.kinds.subnet import Subnet
from lbaas_scheduler.allocator.kinds.vlan import Vlan
from lbaas_scheduler.allocator.kinds.vxlan import Vxlan
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db.allocator_models import ALLOCATOR_TABLES
from lbaas_scheduler.db.session import Database
from tests.database import open_database

EXAMPLE = Path(__file__).parents[1] / "examples" / "acme_slots"
sys.path.append(str(EXAMPLE))

from acme_slots.kind import Slot  # noqa: E402  # type: ignore[import-not-found]

STORES = ("memory", "sqlite", "postgresql", "mariadb", "etcd")
SHARED = ("postgresql", "mariadb", "etcd")
"""Stores that several processes on several machines can use."""

KINDS: dict[str, Resource] = {kind.kind: kind for kind in (Vlan(), Vxlan(), Subnet(), Address(), Slot())}


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def forward(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def empty(database: Database) -> None:
    def work(conn: Any) -> None:
        for table in ALLOCATOR_TABLES:
            conn.execute(table.delete())

    database.write(work)


def url_of(store: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """The place of a store that nothing but tables is in yet, as a process of its own can open it."""
    if store == "sqlite":
        return f"sqlite:///{shutil.copy(request.getfixturevalue('sqlite_with_tables'), folder)}"
    if store == "etcd":
        server = request.getfixturevalue("etcd_server")
        return f"{server.url}{server.new_namespace()}"
    url: str = request.getfixturevalue(f"{store}_shelf").take()
    return url


def open_store(url: str, **options: Any) -> StateDriver:
    """A driver for a URL of :func:`url_of`."""
    if url.startswith("http"):
        scheme, _, host, namespace = url.split("/", 3)
        return EtcdDriver(Access((f"{scheme}//{host}",)), f"/{namespace}")
    return SqlDriver(open_database(url, **options), poll_seconds=0.05)


@contextmanager
def opened(store: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[StateDriver]:
    """A store of one's own."""
    if store == "memory":
        yield MemoryDriver()
        return
    url = url_of(store, request, folder)
    driver = open_store(url)
    yield driver
    driver.close()
    if store in ("postgresql", "mariadb"):
        request.getfixturevalue(f"{store}_shelf").put_back(url)


def wipe(driver: StateDriver) -> None:
    """Remove everything."""
    if isinstance(driver, SqlDriver):
        empty(driver._database)
        return
    for cls in registered():
        found = driver.read(Query(cls))
        for start in range(0, len(found), 20):
            txn = driver.begin()
            for stored in found[start : start + 20]:
                txn.delete(stored)
            driver.apply(txn.changes)


def new_allocator(driver: StateDriver, clock: Clock | None = None) -> ResourceAllocator:
    return ResourceAllocator(driver, KINDS, clock) if clock else ResourceAllocator(driver, KINDS)


def vlan(owner: str = "n1", value: Any = None, pool: str = "v", **more: Any) -> Request:
    return Request("vlan", Owner("network", owner), pool, value=value, **more)


def vxlan(owner: str = "n1", value: Any = None, pool: str = "x", **more: Any) -> Request:
    return Request("vxlan", Owner("network", owner), pool, value=value, **more)


def subnet(owner: str = "n1", value: Any = None, pool: str = "s", **more: Any) -> Request:
    return Request("subnet", Owner("network", owner), pool, value=value, **more)


def address(owner: str = "p1", value: Any = None, pool: str = "a", **more: Any) -> Request:
    return Request("address", Owner("port", owner), pool, value=value, **more)


def slot(owner: str = "c1", value: Any = None, pool: str = "r", **more: Any) -> Request:
    return Request("slot", Owner("card", owner), pool, value=value, **more)


V = Selector("vlan", "v")
X = Selector("vxlan", "x")
S = Selector("subnet", "s")
A = Selector("address", "a")
R = Selector("slot", "r")


def lowest(**config: Any) -> dict[str, Any]:
    """A configuration that hands out the smallest value first."""
    return {**config, "pick": "lowest"}
