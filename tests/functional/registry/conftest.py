"""A server on each database, and a quick one on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.registry.fleet import Fleet


@pytest.fixture
def fleet(sqlite_tables_url: str) -> Iterator[Fleet]:
    yield from _ready(sqlite_tables_url)


@pytest.fixture
def any_fleet(database_url: str) -> Iterator[Fleet]:
    """Once on each database."""
    yield from _ready(database_url)


def _ready(url: str) -> Iterator[Fleet]:
    fleet = Fleet(url)
    yield fleet
    fleet.database.dispose()
