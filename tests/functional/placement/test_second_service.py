"""A second service from a package of its own: the scheduler places what it has never heard of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lbaas_scheduler.db.session import Database
from tests.factories import add_devices, new_device

TESTS = Path(__file__).parents[2]

CONFIGURATION = """
[database]
connection = {url}
[LoadBalancer]
device_handlers = fake
[Firewall]
device_handlers = {handlers}
scheduling_algorithm = {algorithm}
[wall]
max_rack_distance = 5
"""


pytestmark = pytest.mark.xdist_group("firewall")  # installed once


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put the firewall package."""
    source, target = tmp_path_factory.mktemp("source") / "firewall", tmp_path_factory.mktemp("site")
    shutil.copytree(TESTS / "packages" / "firewall", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, timeout=120)
    return target


def run(installed: Path, tmp_path: Path, url: str, handlers: str = "wall", algorithm: str = "nearest") -> Any:
    """What the other process, which has the package installed, says."""
    config = tmp_path / "scheduler.conf"
    config.write_text(CONFIGURATION.format(url=url, handlers=handlers, algorithm=algorithm))
    script = TESTS / "packages" / "place_firewalls.py"
    environment = {**os.environ, "PYTHONPATH": f"{installed}:{TESTS.parent}"}
    command = [sys.executable, str(script), str(config)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def add_walls(database: Database) -> None:
    common: dict[str, Any] = {"service": "Firewall", "device_type": "wall", "traits": frozenset({"CUSTOM_STATEFUL"}), "vips": -1}
    capacities = {"CUSTOM_RULES": 100}
    add_devices(
        database,
        *(new_device(f"wall-{rack}", extra={"rack": rack}, capacities=capacities, **common) for rack in (1, 4, 9)),
        new_device("balancer"),
    )


def test_firewalls_are_placed_by_their_own_algorithm_and_handler(
    database: Database, database_url: str, installed: Path, tmp_path: Path
) -> None:
    add_walls(database)
    said = run(installed, tmp_path, database_url)
    assert said["services"] == ["Firewall", "LoadBalancer"]
    assert said["placed"] == {"near": "wall-4", "bulky": "wall-1", "balanced": "balancer"}
    assert said["refused"]["far"] == {"handler.wall": 3}
    assert said["refused"]["huge"] == {"capacity.CUSTOM_RULES": 3}
    assert said["algorithm"] == "nearest"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_handlers_and_algorithms_may_be_named_by_their_class(
    database: Database, database_url: str, installed: Path, tmp_path: Path
) -> None:
    add_walls(database)
    said = run(installed, tmp_path, database_url, "acme_firewall.handler:WallHandler", "acme_firewall.algorithm.Nearest")
    assert said["placed"]["near"] == "wall-4"
    assert said["algorithm"] == "acme_firewall.algorithm.Nearest"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_installed_service_without_configured_handlers_disturbs_nobody(
    database: Database, database_url: str, installed: Path, tmp_path: Path
) -> None:
    add_walls(database)
    said = run(installed, tmp_path, database_url, handlers="")
    assert said["services"] == ["LoadBalancer"]
    assert said["placed"] == {"balanced": "balancer"}
