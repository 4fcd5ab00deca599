"""Runs one command and ends it, at the latest, when the test run that wanted it is over.

Usage: ``python keeper.py OWNER_LOCK OWN_LOCK LOG STOP_SIGNAL END_SIGNAL USER -- COMMAND...``

The run holds a lock on the file OWNER_LOCK. The kernel drops it when the run's process ends, even by ``kill -9``; the keeper
waits for that lock and then ends its command by END_SIGNAL, so that nothing outlives the run and no process id has to be
trusted. While it lives it holds OWN_LOCK, by which the run sees when it is through. SIGTERM to the keeper makes it end the
command in the orderly way, by STOP_SIGNAL.

The keeper prints the command's process id; the command leads a process group of that number, and of USER if not empty.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from typing import Any

GRACE = 20.0
"""Seconds between the stop signal and SIGKILL."""


def main(argv: list[str]) -> int:
    owner_lock, own_lock, log, stop_signal, end_signal, user, _dashes, *command = argv
    own = _open(own_lock)
    fcntl.flock(own, fcntl.LOCK_EX)
    over, run_is_over = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_args: over.set())
    child = _start(command, log, user)
    print(child.pid, flush=True)
    threading.Thread(target=_when_owner_ends, args=(owner_lock, run_is_over, over), daemon=True).start()
    threading.Thread(target=_when_child_ends, args=(child, over), daemon=True).start()
    over.wait()
    return _end(child, int(end_signal if run_is_over.is_set() else stop_signal))


def _start(command: list[str], log: str, user: str) -> subprocess.Popen[bytes]:
    identity: dict[str, Any] = {"user": user, "group": user, "extra_groups": []} if user else {}
    with open(log, "ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **identity,
        )


def _when_owner_ends(owner_lock: str, *events: threading.Event) -> None:
    fcntl.flock(_open(owner_lock), fcntl.LOCK_SH)
    for event in events:
        event.set()


def _when_child_ends(child: subprocess.Popen[bytes], event: threading.Event) -> None:
    child.wait()
    event.set()


def _end(child: subprocess.Popen[bytes], stop_signal: int) -> int:
    """The signal goes to the leader alone, as an init system would do it; what is left of the group dies after it."""
    if child.poll() is None:
        child.send_signal(stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    code = child.wait()
    return code if code >= 0 else 128 - code


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
