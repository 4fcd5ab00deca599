"""Two servers that race for the last slots, over the bus."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from lbaas_scheduler.errors import NoValidDevice
from tests.functional.system.cluster import Cluster, Site

pytestmark = pytest.mark.timeout(300)

FULL = "none that suits it has room now; try again later, or ask your operator."

CREATES, SLOTS, DEVICES = 200, 50, 5


def test_two_servers_race_for_the_last_slots_and_none_is_lost_or_given_twice(site_cluster: Cluster) -> None:
    site_cluster.register_devices(DEVICES, vips=SLOTS // DEVICES)
    site = Site(site_cluster)
    with ThreadPoolExecutor(16) as clients:
        pools = list(clients.map(lambda _: site.pool({}), range(CREATES)))
        outcomes = list(clients.map(lambda pool_id: _create(site, pool_id), pools))
    assert Counter(outcomes)["placed"] == SLOTS
    refused = [outcome for outcome in outcomes if outcome != "placed"]
    assert len(refused) == CREATES - SLOTS
    # Devices were full when looked at, or filled up before they could be claimed.
    assert set(refused) == {FULL}
    assert set(site_cluster.used().values()) == {SLOTS // DEVICES}
    assert len(site_cluster.vip_statuses()) == SLOTS


def _create(site: Site, pool_id: str) -> str:
    try:
        site.vip(pool_id)
    except NoValidDevice as error:
        return error.message.partition(": ")[2]
    return "placed"
