"""Servers with three devices, on one database and on each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.fleet.lab import Lab


@pytest.fixture
def lab(sqlite_tables_url: str) -> Iterator[Lab]:
    yield from _furnished(sqlite_tables_url)


@pytest.fixture
def any_lab(database_url: str) -> Iterator[Lab]:
    """Once on each database."""
    yield from _furnished(database_url)


def _furnished(url: str) -> Iterator[Lab]:
    lab = Lab(url)
    lab.furnish("a", "b", "c")
    yield lab
    lab.close()
