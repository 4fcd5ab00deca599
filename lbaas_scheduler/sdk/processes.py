"""Processes that outlive the agent that started them, found again by pid and command line. Linux only (``/proc``).

A pid alone proves nothing: it may have been given to somebody else since. Every function therefore takes a *marker*, a
text that only the wanted process has in its command line (the path of its configuration, say).
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lbaas_scheduler.errors import DriverError

ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
"""Enough for a data plane. The agent's own environment may hold secrets, and what is started can read its environment."""

GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
"""What ``/proc`` says of a process that has ended, or that is hidden from us. Any other error (no file can be opened, say) tells
nothing of it: to take it for dead would be to end it."""

_POLL_SECONDS = 0.02


def spawn_detached(
    argv: Sequence[str], log_path: Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> int:
    """Start ``argv`` in a session of its own: it goes on when we stop, and no signal of our terminal reaches it.

    Its output is appended to ``log_path``; its input is empty. Returns as soon as it is started, not when it is ready.

    :param environment: all that it finds in its environment. None = ours, which may hold secrets.
    :returns: its pid.
    :raises OSError: ``argv[0]`` cannot be run.
    """
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=cwd, env=environment
        )
    # The kernel fills the command line in a moment after the program was taken: until then alive() would say no.
    while process.poll() is None and not command_line(process.pid):
        time.sleep(_POLL_SECONDS / 20)
    # Somebody has to collect the exit status while we live, else a dead child stays a zombie and keeps its pid.
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()
    return process.pid


def alive(pid: int, marker: str) -> bool:
    """Whether ``pid`` runs and has ``marker`` in its command line. A zombie has no command line and is not alive."""
    return os.fsencode(marker) in command_line(pid)


def ended(pid: int) -> bool:
    """Whether a process is gone. Unlike its command line, its state can be read while it executes another program."""
    return _state(pid) in ("Z", "X")


def command_line(pid: int) -> bytes:
    """Its arguments, each with a NUL at its end; empty for one that has ended or is hidden from us."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except GONE:
        return b""


def find(marker: str) -> list[int]:
    """The pids of all processes that have ``marker`` in their command line, ascending; one's own is left out.

    A NUL stands between two arguments: ``"-c\\0/path"`` is found only where these are two arguments in a row.
    """
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return sorted(pid for pid in pids if pid != os.getpid() and alive(pid, marker))


def paths_after(option: str, folder: Path) -> set[Path]:
    """What all processes have in their command lines after ``option``, as far as it lies in ``folder``; relative to that."""
    start = os.fsencode(f"{folder}/")
    lines = (command_line(pid).split(b"\0") for pid in find(f"{option}\0{folder}/"))
    words = (second for line in lines for first, second in itertools.pairwise(line) if first == os.fsencode(option))
    return {Path(os.fsdecode(word[len(start) :])) for word in words if word.startswith(start)}


def stop(pid: int, marker: str, grace_seconds: float) -> None:
    """End the process: SIGTERM, then SIGKILL after ``grace_seconds``. One that is gone, or is not ours, is left alone.

    Returns once it is gone.

    :raises DriverError: it survived both (a process in uninterruptible sleep), or we may not signal it.
    """
    if not alive(pid, marker):
        return
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, max(grace_seconds, 5.0))):
        if alive(pid, marker):
            _signal(pid, number)
        if wait_gone(pid, marker, seconds):
            return
    raise DriverError(f"Process {pid} could not be stopped.", operator_message=f"pid {pid} ({marker}) survived SIGKILL")


def wait_gone(pid: int, marker: str, seconds: float) -> bool:
    """Wait up to ``seconds`` for the process to end and its files and sockets to be closed; whether they are."""
    deadline = time.monotonic() + seconds
    while alive(pid, marker) or _dying(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _dying(pid: int) -> bool:
    """Whether it is on its way out: the kernel drops a process's command line first, and closes its sockets after that."""
    return not ended(pid) and not command_line(pid)


def _state(pid: int) -> str:
    """One letter, as ps shows it; a zombie (Z) has closed everything. X for one that is gone."""
    try:
        # After the name, which stands in brackets and may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except GONE:
        return "X"


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise DriverError(f"Process {pid} belongs to another user.", operator_message=str(error)) from error
