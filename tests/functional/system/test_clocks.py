"""Servers whose clocks differ, on one database."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import models
from tests.functional.system.cluster import Cluster, cluster
from tests.rig.daemon import Daemon
from tests.rig.fixtures import require
from tests.rig.waiting import wait_for

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)

CYCLES = 15
"""Seconds by the database's clock, and so many cycles of each server: several times as long as it takes to give an agent up."""


@pytest.fixture
def wrong_clock() -> dict[str, str]:
    """The environment of a process that is ten minutes ahead. How long something takes it measures right, as any host does."""
    require("faketime", "" if LIBRARY else "faketime is not installed")
    return {**os.environ, "LD_PRELOAD": str(LIBRARY), "FAKETIME": "+600s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def bindings(site: Cluster) -> dict[str, tuple[str, int]]:
    columns = sa.select(models.device_agents.c.device_id, models.device_agents.c.agent_id, models.device_agents.c.epoch)
    return {row.device_id: (row.agent_id, row.epoch) for row in site.database.read(lambda conn: conn.execute(columns).all())}


def heard(site: Cluster) -> float:
    """When the agent that was heard longest ago was heard."""
    oldest = sa.select(sa.func.min(models.agents.c.heartbeat_at))
    return site.database.read(lambda conn: conn.execute(oldest).scalar_one()).timestamp()


@pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)
def test_a_server_ten_minutes_off_moves_and_closes_no_device(
    spawn: Callable[..., Daemon], folder: Path, database_url: str, rabbitmq_url: str, wrong_clock: dict[str, str]
) -> None:
    with cluster(spawn, folder, database_url, rabbitmq_url) as site:
        site.server("server-1")
        wrong = site.server("server-2", environment=wrong_clock)
        for name in ("agent-1", "agent-2"):
            site.agent(name)
        site.wait_for_agents("agent-1", "agent-2")
        ids = sorted(site.register_devices(4))
        wait_for(lambda: "600 s ahead of the database" in wrong.tail(), 30, "the wrong server to say so")
        before, began = bindings(site), heard(site)

        def undisturbed() -> bool:
            assert (bindings(site), sorted(site.open_devices())) == (before, ids)
            return heard(site) > began + CYCLES

        wait_for(undisturbed, 60, "agents to be heard for long enough")
        assert abs(heard(site) - began) < 120, "nobody wrote the time of the wrong clock"
        assert wrong.running
