"""An agent that is cut off from the bus: by default its devices serve on; fenced, they come back when it hears again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from lbaas_scheduler.cmd.demo import traffic
from lbaas_scheduler.cmd.demo.backends import Backend
from tests.functional.system.cluster import Cluster, Site
from tests.rig.daemon import Daemon
from tests.rig.proxy import Proxy
from tests.rig.waiting import wait_for

pytestmark = [
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FENCED = "\n[agent]\nfence_after_seconds = 5\n[scheduler]\nagent_down_seconds = 3600\n"


class Partitioned(Cluster):
    """Agents reach the broker through a proxy, servers directly."""

    proxy: Proxy

    def _process(self, name: str, module: str, environment: Mapping[str, str] | None = None) -> Daemon:
        values = self._values
        if name.startswith("agent-"):
            url = re.sub(r":\d+/", f":{self.proxy.port}/", values["transport_url"])
            self._values = {**values, "transport_url": url}
        try:
            return super()._process(name, module, environment)
        finally:
            self._values = values


@pytest.fixture
def partitioned(spawn: Callable[..., Daemon], folder: Path, database_url: str, rabbitmq_url: str) -> Iterator[Partitioned]:
    made = Partitioned(spawn, folder, database_url, rabbitmq_url)
    made.proxy = Proxy(int(re.findall(r":(\d+)/", rabbitmq_url)[-1]))
    try:
        yield made
    finally:
        made.purge()
        made.proxy.close()


def answers(vip: dict) -> bool:
    return not traffic.send(vip["address"], vip["protocol_port"], 1).failures


def test_a_fenced_agent_that_is_cut_off_takes_its_vips_down_and_brings_its_own_back(
    partitioned: Partitioned, backends: list[Backend]
) -> None:
    partitioned.more = FENCED
    partitioned.server("server-1")
    partitioned.agent("agent-1")
    partitioned.wait_for_agents("agent-1")
    partitioned.register_devices(1)
    site = Site(partitioned)
    members = {backend.address: backend.port for backend in backends}
    vip = site.wait_active(site.vip(site.pool(members))["id"])
    assert answers(vip)
    partitioned.proxy.swallow()
    wait_for(lambda: not answers(vip), 60, "the fence")
    partitioned.proxy.pass_on()
    wait_for(lambda: answers(vip), 90, "the VIP to be back")
