"""Backends, and clusters on the run's own services."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lbaas_scheduler.cmd.demo.backends import Backend
from tests.functional.system.cluster import Cluster, cluster
from tests.rig.daemon import Daemon
from tests.rig.fixtures import require


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, unlike tmp_path, and open to the user that HAProxy drops to."""
    with tempfile.TemporaryDirectory(prefix="lbs-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(autouse=True)
def haproxy() -> None:
    require("haproxy", "" if shutil.which("haproxy") else "HAProxy is not installed")


@pytest.fixture
def site_cluster(spawn: Callable[..., Daemon], folder: Path, database_url: str, rabbitmq_url: str) -> Iterator[Cluster]:
    """Two servers and two agents on the run's RabbitMQ."""
    with cluster(spawn, folder, database_url, rabbitmq_url) as made:
        for name in ("server-1", "server-2"):
            made.server(name)
        for name in ("agent-1", "agent-2"):
            made.agent(name)
        made.wait_for_agents("agent-1", "agent-2")
        yield made


@pytest.fixture
def backends() -> Iterator[list[Backend]]:
    """Three HTTP servers that answer with their names."""
    made = [Backend(f"web{n}", f"127.91.0.{n}") for n in (1, 2, 3)]
    for backend in made:
        backend.start()
    yield made
    for backend in made:
        backend.stop()
