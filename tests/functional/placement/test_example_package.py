"""The example of a vendor's package: installed as its user would, with handler, algorithm and a table of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import migration
from lbaas_scheduler.errors import ConfigurationError
from tests.database import open_database

ROOT = Path(__file__).parents[3]

Run = Callable[..., subprocess.CompletedProcess[str]]

CONFIGURATION = """
[database]
connection = {url}
[LoadBalancer]
device_handlers = fake,acme_mesh
scheduling_algorithm = mesh_together
"""


pytestmark = pytest.mark.xdist_group("example")  # installed once


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put the package."""
    source, target = tmp_path_factory.mktemp("source") / "acme_mesh", tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "examples" / "acme_mesh", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, timeout=120)
    return target


@pytest.fixture
def run(installed: Path, empty_database_url: str, tmp_path: Path) -> Run:
    """Run Python where the package is installed, with the configuration as the last argument of a script."""
    config = tmp_path / "scheduler.conf"
    config.write_text(CONFIGURATION.format(url=empty_database_url))
    environment = {**os.environ, "PYTHONPATH": f"{installed}:{ROOT}"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *(str(config) if it == "CONF" else it for it in arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    return run


def manage(run: Run, *arguments: str) -> str:
    done = run("-m", "lbaas_scheduler.cmd.manage", "--config-file", "CONF", *arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_db_sync_makes_the_vendors_table_in_a_branch_of_its_own(run: Run, empty_database_url: str) -> None:
    said = manage(run, "db", "sync")
    assert "acme_mesh_0001" in said
    assert "acme_mesh_0001 (head): Meshes." in manage(run, "db", "history")
    assert "all counters agree" in manage(run, "db", "check")
    database = open_database(empty_database_url)
    assert "acme_meshes" in sa.inspect(database.engine).get_table_names()
    with pytest.raises(
        ConfigurationError, match=r"at revision acme_mesh_0001, which this version does not know; .* vendor's package"
    ):
        migration.require_current(database)
    database.dispose()


def test_meshed_devices_take_a_tenants_vips_together_and_say_what_they_refuse(run: Run) -> None:
    manage(run, "db", "sync")
    done = run(str(ROOT / "tests" / "packages" / "place_on_meshes.py"), "CONF")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {device[0] for device in said["together"]} == {said["home"]}
    assert len(set(said["together"])) == 2
    assert said["clashing"][0] != said["home"]
    assert len(said["frozen"]) == 2
    assert all(reason.endswith("which is under maintenance") for reason in said["frozen"])
    assert "extra.mesh must be the name of the device's mesh" in said["refused"][0]
    assert "max_vlans of eth9 must be 0 to 128 on an Acme appliance" in said["refused"][1]


@pytest.mark.parametrize("empty_database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("acme_absent.migrations", "'broken' of lbaas_scheduler.migrations cannot be imported: ModuleNotFoundError"),
        ("json.decoder", "'broken' in lbaas_scheduler.migrations is no package with revisions"),
    ],
)
def test_a_package_whose_revisions_cannot_be_found_is_named(run: Run, tmp_path: Path, target: str, said: str) -> None:
    info = tmp_path / "broken" / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lbaas_scheduler.migrations]\nbroken = {target}\n")
    script = (
        f"import sys; sys.path.append({str(info.parent)!r}); "
        "from lbaas_scheduler.cmd.manage import main; sys.exit(main(sys.argv[1:]))"
    )
    done = run("-c", script, "--config-file", "CONF", "db", "sync")
    assert done.returncode == 1
    assert said in done.stderr
