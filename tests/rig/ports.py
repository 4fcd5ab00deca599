"""Free ports that no other test process is handed at the same time."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

# Below the range from which Linux picks source ports (32768 and up), so that no outgoing connection takes a port between
# its choice here and the moment when a daemon binds it.
_FIRST, _LAST = 12000, 32000
_held: list[int] = []
"""Descriptors of the locks; the kernel drops them when this process ends, however it ends."""


def free_port() -> int:
    """A loopback TCP port that nobody listens on, reserved for this process until it ends.

    Reserved among the tests' processes of this user by a lock per port; a daemon that was stopped finds its port free again.
    """
    folder = Path(tempfile.gettempdir()) / f"lbaas-rig-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for port in random.sample(range(_FIRST, _LAST), 500):
        descriptor = os.open(folder / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _lock(descriptor) and _is_free(port):
            _held.append(descriptor)
            return port
        os.close(descriptor)
    raise RuntimeError(f"no free port between {_FIRST} and {_LAST} on this machine")


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(port: int) -> bool:
    # The wildcard address: a daemon elsewhere that listens on all addresses would take the connections too.
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
