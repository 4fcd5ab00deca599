"""A server with devices whose interfaces tell networks apart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.networks.site import Site


@pytest.fixture
def site(sqlite_tables_url: str) -> Iterator[Site]:
    yield from _opened(sqlite_tables_url)


@pytest.fixture
def any_site(database_url: str) -> Iterator[Site]:
    """Once on each database."""
    yield from _opened(database_url)


def _opened(url: str) -> Iterator[Site]:
    site = Site(url)
    yield site
    site.close()
