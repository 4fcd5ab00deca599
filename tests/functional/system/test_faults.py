"""What may break while VIPs are created. Each time, without anybody's hand, every accepted VIP ends ACTIVE and serves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest

from lbaas_scheduler.cmd.demo import traffic
from lbaas_scheduler.cmd.demo.backends import Backend
from lbaas_scheduler.db import models
from lbaas_scheduler.errors import LBaaSError
from tests.functional.system.cluster import Cluster, Site, cluster
from tests.rig.daemon import Daemon
from tests.rig.mariadb import MariaDB
from tests.rig.postgresql import PostgreSQL
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.waiting import wait_for

SOAK = os.environ.get("LBAAS_TEST_SOAK") == "1"
OUTAGE_SECONDS = 20 if SOAK else 5
VIPS = 40 if SOAK else 10
NOT_ACCEPTED = (LBaaSError, oslo_messaging.MessagingException)

# kombu leaves the sockets of connections that were cut to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BOTH = ["postgresql", "mariadb"]
on_both = pytest.mark.parametrize("database_url", BOTH, indirect=True)
on_either = pytest.mark.parametrize("database_url", BOTH if SOAK else BOTH[:1], indirect=True)
"""For what does not depend on the database."""


@pytest.fixture
def bare_cluster(spawn: Callable[..., Daemon], folder: Path, database_url: str, rabbitmq_url: str) -> Iterator[Cluster]:
    with cluster(spawn, folder, database_url, rabbitmq_url) as made:
        yield made


@on_both
def test_a_server_that_dies_between_commit_and_cast_costs_a_delay(
    bare_cluster: Cluster, backends: list[Backend], rabbitmq_server: RabbitMQ, rabbitmq_url: str
) -> None:
    bare_cluster.server("server-1")
    bare_cluster.agent("agent-1")
    bare_cluster.wait_for_agents("agent-1")
    bare_cluster.register_devices(2)
    site = Site(bare_cluster)
    pools = [site.pool({backend.address: backend.port}) for backend in backends * 3]
    broken = bare_cluster.server("server-2", "tests.functional.system.broken_server")
    wait_for(lambda: _listens(rabbitmq_server, rabbitmq_url, "server-2"), 60, "the second server to listen")

    # The broker hands calls to the two servers in turn: the broken one gets one soon, and its caller never hears of it.
    with ThreadPoolExecutor(len(pools)) as creators:
        for pool_id in pools:
            creators.submit(_create, site, pool_id)
    assert not broken.running
    assert len(bare_cluster.vip_statuses()) > 1
    _everything_serves(bare_cluster, at_least=2)


def _listens(broker: RabbitMQ, url: str, host: str) -> bool:
    # The broker's count of consumers lags by many seconds; a server declares its queue right before it consumes.
    return any(queue["name"] == f"lbaas_scheduler.{host}" for queue in broker.queues(url))


def _create(site: Site, pool_id: str) -> None:
    """Whether the caller hears that it failed, or nothing at all: what was stored must serve all the same."""
    with suppress(*NOT_ACCEPTED):
        site.vip(pool_id)


@on_either
@pytest.mark.parametrize("taken_over", [True, False], ids=["another agent takes over", "the agent is started again"])
def test_an_agent_that_dies_before_it_applies_costs_a_delay(
    bare_cluster: Cluster, backends: list[Backend], taken_over: bool
) -> None:
    bare_cluster.server("server-1")
    broken = bare_cluster.agent("agent-1", "tests.functional.system.broken_agent")
    bare_cluster.wait_for_agents("agent-1")
    bare_cluster.register_devices(2)
    site = Site(bare_cluster)
    for backend in backends:
        site.vip(site.pool({backend.address: backend.port}))
    broken.wait(30)
    bare_cluster.agent("agent-2" if taken_over else "agent-1")
    _everything_serves(bare_cluster, at_least=len(backends))


@on_either
def test_a_broker_outage_during_creates_loses_nothing(
    spawn: Callable[..., Daemon], folder: Path, database_url: str, own_rabbitmq: RabbitMQ, backends: list[Backend]
) -> None:
    with cluster(spawn, folder, database_url, own_rabbitmq.create_vhost()) as made:
        _survives(made, backends, own_rabbitmq)


def test_a_restart_of_postgresql_during_creates_loses_nothing(
    spawn: Callable[..., Daemon],
    folder: Path,
    own_postgresql: PostgreSQL,
    rabbitmq_url: str,
    backends: list[Backend],
) -> None:
    with cluster(spawn, folder, own_postgresql.create_database(), rabbitmq_url) as made:
        _survives(made, backends, own_postgresql)


def test_a_restart_of_mariadb_during_creates_loses_nothing(
    spawn: Callable[..., Daemon], folder: Path, own_mariadb: MariaDB, rabbitmq_url: str, backends: list[Backend]
) -> None:
    with cluster(spawn, folder, own_mariadb.create_database(), rabbitmq_url) as made:
        _survives(made, backends, own_mariadb)


def _survives(made: Cluster, backends: list[Backend], service: Any) -> None:
    """Create VIPs while ``service`` is stopped and comes back."""
    for name in ("server-1", "server-2"):
        made.server(name)
    for name in ("agent-1", "agent-2"):
        made.agent(name)
    made.wait_for_agents("agent-1", "agent-2")
    made.register_devices(3)
    site = Site(made)
    pools = [site.pool({backend.address: backend.port}) for backend in (backends * VIPS)[:VIPS]]

    with ThreadPoolExecutor(4) as creators:
        first = [creators.submit(_create, site, pool_id) for pool_id in pools[: VIPS // 2]]
        wait_for(lambda: any(each.done() for each in first), 30, "a first VIP")
        service.stop()
        rest = [creators.submit(_create, site, pool_id) for pool_id in pools[VIPS // 2 :]]
        time.sleep(OUTAGE_SECONDS)  # the length of the outage, not a wait for something
        service.start()
        for each in (*first, *rest):
            each.result(120)
    _everything_serves(made, at_least=1)


def _everything_serves(made: Cluster, at_least: int) -> None:
    def settled() -> bool:
        statuses = made.vip_statuses()
        return len(statuses) >= at_least and set(statuses.values()) == {"ACTIVE"}

    wait_for(settled, 90, "every accepted VIP to be ACTIVE", interval=0.3, ignore=(Exception,))
    for vip in _vips(made):
        tally = traffic.send(vip.address, vip.protocol_port, 3)
        assert tally.failures == [], vip.id
    count = len(made.vip_statuses())
    assert made.count(models.placements) == count
    assert made.count(models.deployments) == count
    assert sum(made.used().values()) == count


def _vips(made: Cluster) -> list[Any]:
    return list(made.database.read(lambda conn: conn.execute(models.vips.select()).all()))
