"""Furnished houses."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database import configured
from tests.functional.api.house import House, migrate


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with all tables and nothing in them."""
    path = tmp_path_factory.mktemp("migrated") / "lbaas.sqlite"
    migrate(configured(f"sqlite:///{path}", sqlite_synchronous=False))
    return path


@pytest.fixture
def api_sqlite_url(tmp_path: Path, migrated: Path) -> str:
    return f"sqlite:///{shutil.copy(migrated, tmp_path)}"


@pytest.fixture
def house(api_sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    yield from _furnished(api_sqlite_url, tmp_path)


@pytest.fixture(params=["api_sqlite_url", "mariadb_url"], ids=["sqlite", "mariadb"])
def any_house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """Once on SQLite and once on MariaDB."""
    yield from _furnished(request.getfixturevalue(request.param), tmp_path)


def _furnished(url: str, folder: Path) -> Iterator[House]:
    house = House(url, folder)
    house.furnish()
    yield house
    house.close()
