"""HAProxy as root, and without it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lbaas_scheduler.domain.loadbalancers import Vip
from tests.functional.haproxy.lab import Lab, request

ROOT = Path(__file__).parents[3]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run by root")


@pytest.fixture
def nobodys_folder() -> Iterator[str]:
    """Not below pytest's temporary folder, which belongs to its user alone."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
        yield folder


@as_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_user_without_rights_can_run_devices(nobodys_folder: str) -> None:
    nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", sys.executable]
    if subprocess.run([*nobody, "-c", "import oslo_config"], capture_output=True, cwd=ROOT, check=False).returncode:
        pytest.skip("nobody may not run this Python")
    ran = subprocess.run(
        [*nobody, "-m", "tests.functional.haproxy.unprivileged", nobodys_folder],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@as_root
def test_roots_workers_give_up_their_rights(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    assert os.stat(f"/proc/{lab.worker}").st_uid == pwd.getpwnam("nobody").pw_uid
    assert request(web)[0] == 200


def test_only_the_agents_user_may_read_or_command_a_device(lab: Lab, web: Vip) -> None:
    lab.serve(web)
    assert {path.name: path.stat().st_mode & 0o077 for path in lab.folder.iterdir() if path.name != "pid"} == dict.fromkeys(
        ("00-base.cfg", "master.sock", "worker.sock", "state", f"vip-{web.id}.cfg"), 0
    )
    assert lab.folder.stat().st_mode & 0o777 == 0o700


def test_haproxy_does_not_see_the_agents_environment(lab: Lab, web: Vip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_PASSWORD", "not-for-haproxy")
    lab.serve(web)
    assert b"not-for-haproxy" not in Path(f"/proc/{lab.worker}/environ").read_bytes()
