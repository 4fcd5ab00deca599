"""Furnished houses: of a test's own, or one for all tests, in which each is a tenant."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.api.house import House
from tests.tables import Shelf


@pytest.fixture
def house(sqlite_tables_url: str, tmp_path: Path) -> Iterator[House]:
    """The test's own, on SQLite: for what changes the fleet, or counts everything that there is."""
    yield from _furnished(sqlite_tables_url, tmp_path)


@pytest.fixture(params=["sqlite_tables_url", "mariadb_tables_url"], ids=["sqlite", "mariadb"])
def own_any_house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """The test's own, once on SQLite and once on MariaDB."""
    yield from _furnished(request.getfixturevalue(request.param), tmp_path)


@pytest.fixture(scope="session")
def sqlite_house(tmp_path_factory: pytest.TempPathFactory, sqlite_with_tables: Path) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    yield from _furnished(f"sqlite:///{shutil.copy(sqlite_with_tables, folder)}", folder)


@pytest.fixture(scope="session")
def mariadb_house(tmp_path_factory: pytest.TempPathFactory, mariadb_shelf: Shelf) -> Iterator[House]:
    yield from _furnished(mariadb_shelf.take(), tmp_path_factory.mktemp("house"))


@pytest.fixture
def shared_house(sqlite_house: House) -> Iterator[House]:
    """All tests' house, on SQLite, with a tenant, a network and a subnet that only this test has."""
    yield from _visited(sqlite_house)


@pytest.fixture(params=["sqlite_house", "mariadb_house"], ids=["sqlite", "mariadb"])
def any_house(request: pytest.FixtureRequest) -> Iterator[House]:
    """As ``shared_house``, once on SQLite and once on MariaDB."""
    yield from _visited(request.getfixturevalue(request.param))


def _furnished(url: str, folder: Path) -> Iterator[House]:
    house = House(url, folder)
    house.furnish()
    yield house
    house.close()


def _visited(house: House) -> Iterator[House]:
    yield house.as_new_tenant()
    house.agents.reset()
