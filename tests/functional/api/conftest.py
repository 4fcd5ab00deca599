"""Furnished houses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.api.house import House


@pytest.fixture
def house(sqlite_url: str) -> Iterator[House]:
    yield from _furnished(sqlite_url)


@pytest.fixture(params=["sqlite", "mariadb"])
def any_house(request: pytest.FixtureRequest) -> Iterator[House]:
    """Once on SQLite and once on MariaDB."""
    yield from _furnished(request.getfixturevalue(f"{request.param}_url"))


def _furnished(url: str) -> Iterator[House]:
    house = House(url)
    house.furnish()
    yield house
    house.close()
