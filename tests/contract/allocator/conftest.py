"""Every test of this folder runs on every store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lbaas_scheduler.allocator.core.drivers import StateDriver
from lbaas_scheduler.allocator.manager import ResourceAllocator
from tests.allocator_side import STORES, Clock, new_allocator, opened, wipe


@pytest.fixture(scope="session", params=STORES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateDriver]:
    with opened(request.param, request, tmp_path_factory.mktemp("allocator")) as driver:
        yield driver


@pytest.fixture
def driver(store: StateDriver) -> Iterator[StateDriver]:
    """A store with nothing in it."""
    yield store
    wipe(store)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def allocator(driver: StateDriver, clock: Clock) -> ResourceAllocator:
    return new_allocator(driver, clock)
