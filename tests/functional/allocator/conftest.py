"""Stores for tests that need one of a certain sort."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lbaas_scheduler.allocator.core.drivers import StateDriver
from lbaas_scheduler.allocator.drivers.etcd import EtcdDriver
from lbaas_scheduler.allocator.drivers.etcd_client import Access
from lbaas_scheduler.db.session import Database
from tests.allocator_side import opened
from tests.database import open_database


@pytest.fixture
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateDriver]:
    """By ``indirect``: a store of the test's own."""
    with opened(request.param, request, tmp_path) as driver:
        yield driver


@pytest.fixture
def etcd(etcd_server) -> Iterator[EtcdDriver]:
    driver = EtcdDriver(Access((etcd_server.url,)), etcd_server.new_namespace())
    yield driver
    driver.close()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """With the allocator's tables."""
    database = open_database(database_url)
    yield database
    database.dispose()
