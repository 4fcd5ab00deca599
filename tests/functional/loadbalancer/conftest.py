"""A furnished lab."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.database import open_database
from tests.functional.loadbalancer.lab import Lab


@pytest.fixture
def lab(sqlite_tables_url: str) -> Iterator[Lab]:
    yield from _furnished(sqlite_tables_url)


@pytest.fixture
def any_lab(database_url: str) -> Iterator[Lab]:
    """Once on each database."""
    yield from _furnished(database_url)


def _furnished(url: str) -> Iterator[Lab]:
    database = open_database(url, sqlite_synchronous=False)
    lab = Lab(database)
    lab.furnish()
    yield lab
    database.dispose()
