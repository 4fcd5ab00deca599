"""A message bus that is away, silent or blocked, beside a server that answers REST: what a request costs then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.database import open_database
from tests.functional.system.bus_site import OUTAGES, Change, Site
from tests.rig.daemon import Daemon
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.waiting import wait_for

LEAST_SECONDS = 0.5
"""Below that, a busy machine decides what the p95 is."""


@pytest.fixture
def site(tmp_path: Path, postgresql_tables_url: str, own_rabbitmq: RabbitMQ, spawn: Callable[..., Daemon]) -> Iterator[Site]:
    database = open_database(postgresql_tables_url)
    made = Site(tmp_path, database, postgresql_tables_url, own_rabbitmq, spawn)
    yield made
    made.close()
    database.dispose()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kombu leaves sockets that were cut
@pytest.mark.parametrize(("breaks", "mends"), OUTAGES.values(), ids=OUTAGES.keys())
def test_requests_take_no_longer_and_nothing_is_lost_while_the_broker_is(breaks: Change, mends: Change, site: Site) -> None:
    site.seconds()  # so that all connections and caches are there
    put, get = site.seconds()
    breaks(site)
    for _ in range(3):  # the first of them finds the connections of before
        broken_put, broken_get = site.seconds()
        print(f"p95 PUT {put * 1000:.0f} -> {broken_put * 1000:.0f} ms, GET {get * 1000:.0f} -> {broken_get * 1000:.0f} ms")
        assert broken_put <= max(2 * put, LEAST_SECONDS), (put, broken_put)
        assert broken_get <= max(2 * get, LEAST_SECONDS), (get, broken_get)
    assert site.agent.heard != site.wanted(), "the broker is not as it should be"
    assert site.health_seconds() < 5
    mends(site)
    wait_for(lambda: site.agent.heard == site.wanted(), 60, "the agent to be sent all that is due")
