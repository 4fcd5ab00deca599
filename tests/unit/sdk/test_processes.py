"""Processes that outlive their parent are found, and only they are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lbaas_scheduler.sdk import processes
from lbaas_scheduler.sdk.conformance.documents import LOOPBACK, free_port
from lbaas_scheduler.sdk.listening import listening


@pytest.fixture
def marker() -> Iterator[str]:
    marker = f"marker-{uuid.uuid4()}"
    yield marker
    for pid in processes.find(marker):
        os.kill(pid, signal.SIGKILL)


def spawn(tmp_path: Path, marker: str, code: str = "import signal; signal.pause()") -> int:
    return processes.spawn_detached([sys.executable, "-c", code, marker], tmp_path / "log", cwd=tmp_path)


def test_a_process_is_alive_from_the_moment_that_it_was_started(tmp_path: Path, marker: str) -> None:
    for _ in range(20):
        pid = spawn(tmp_path, marker)
        assert processes.alive(pid, marker)
        processes.stop(pid, marker, 5)


def test_a_process_has_a_session_of_its_own_and_the_wanted_folder(tmp_path: Path, marker: str) -> None:
    pid = spawn(tmp_path, marker)
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == str(tmp_path)


def test_what_a_process_says_is_appended_to_its_log(tmp_path: Path, marker: str) -> None:
    (tmp_path / "log").write_text("before\n")
    pid = spawn(tmp_path, marker, "import sys; print('out'); print('err', file=sys.stderr)")
    assert processes.wait_gone(pid, marker, 10)
    assert sorted((tmp_path / "log").read_text().split()) == ["before", "err", "out"]


def test_a_dead_child_is_neither_alive_nor_a_zombie(tmp_path: Path, marker: str) -> None:
    pid = spawn(tmp_path, marker)
    os.kill(pid, signal.SIGKILL)
    assert processes.wait_gone(pid, marker, 10)
    assert processes.find(marker) == []


def test_a_process_is_found_by_two_arguments_in_a_row(tmp_path: Path, marker: str) -> None:
    pid = processes.spawn_detached([sys.executable, "-c", "import signal; signal.pause()", "-c", marker], tmp_path / "log")
    assert processes.find(f"-c\0{marker}\0") == [pid]
    assert processes.find(f"-d\0{marker}\0") == []
    processes.stop(pid, marker, 5)


def test_another_process_with_the_same_pid_is_left_alone(tmp_path: Path, marker: str) -> None:
    pid = spawn(tmp_path, marker)
    processes.stop(pid, "some-other-marker", 0.1)
    assert processes.alive(pid, marker)


def test_a_process_that_ignores_sigterm_is_killed(marker: str) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", code, marker], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    processes.stop(child.pid, marker, 0.1)
    assert child.wait(10) == -signal.SIGKILL
    child.stdout.close()


def test_stopping_what_is_gone_is_no_error(marker: str) -> None:
    processes.stop(2**22 - 1, marker, 0.1)


def test_a_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        processes.spawn_detached([str(tmp_path / "absent")], tmp_path / "log")


def test_the_port_of_a_stopped_process_is_free_at_once(tmp_path: Path, marker: str) -> None:
    """The kernel forgets a process's command line before it closes its sockets."""
    code = "import signal, socket, sys; s = socket.create_server((sys.argv[2], int(sys.argv[3]))); signal.pause()"
    port = free_port()
    for _ in range(10):
        argv = [sys.executable, "-c", code, marker, LOOPBACK, str(port)]
        pid = processes.spawn_detached(argv, tmp_path / "log")
        deadline = time.monotonic() + 20
        while (LOOPBACK, port) not in listening():
            assert time.monotonic() < deadline
        processes.stop(pid, marker, 5)
        assert (LOOPBACK, port) not in listening()


def test_processes_that_proc_hides_from_us_are_not_ours(marker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does when it is mounted with hidepid."""
    read = Path.read_bytes

    def hidden(path: Path) -> bytes:
        if path == Path("/proc/1/cmdline"):
            raise PermissionError
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", hidden)
    assert processes.find(marker) == []
    assert not processes.alive(1, marker)
