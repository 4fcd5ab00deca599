"""Runs one command and ends it, at the latest, when the test run that wanted it is over.

Usage: ``python keeper.py OWNER_LOCK OWN_LOCK LOG STOP_SIGNAL USER -- COMMAND...``

The run holds a lock on the file OWNER_LOCK. The kernel drops it when the run's process ends, even by ``kill -9``; the keeper
waits for that lock and then ends its command, so that nothing outlives the run and no process id has to be trusted. While
it lives it holds OWN_LOCK, by which the run sees when it is through. SIGTERM ends the command as well.

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
    owner_lock, own_lock, log, stop_signal, user, _dashes, *command = argv
    own = _open(own_lock)
    fcntl.flock(own, fcntl.LOCK_EX)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_args: over.set())
    child = _start(command, log, user)
    print(child.pid, flush=True)
    threading.Thread(target=_when_owner_ends, args=(owner_lock, over.set), daemon=True).start()
    threading.Thread(target=_when_child_ends, args=(child, over.set), daemon=True).start()
    # With a timeout: a wait without one would hold signals back until the thread gets the lock.
    while not over.wait(1.0):
        pass
    return _end(child, int(stop_signal))


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


def _when_owner_ends(owner_lock: str, then: Any) -> None:
    fcntl.flock(_open(owner_lock), fcntl.LOCK_SH)
    then()


def _when_child_ends(child: subprocess.Popen[bytes], then: Any) -> None:
    child.wait()
    then()


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
