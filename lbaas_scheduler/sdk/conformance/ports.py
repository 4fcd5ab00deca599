"""Free ports for VIPs."""

from __future__ import annotations

import errno
import itertools
import random
import socket

# Below the range from which Linux picks source ports, so that no outgoing connection takes a port before the device does.
_FIRST, _LAST = 2000, 12000
_BLOCK = 500


class Ports:
    """Hands out ports of a block that belongs to this process until it ends: test processes may run at once."""

    def __init__(self) -> None:
        self._lock: int | None = None
        """Descriptor of the socket that reserves our block; the kernel closes it when the process ends."""
        self._ports = iter(range(0))

    def free(self, address: str) -> int:
        """The next port that can be bound on ``address``, or on any address where ``address`` is not this host's.

        :raises RuntimeError: none is left.
        """
        if self._lock is None:
            self._claim()
        for port in itertools.islice(self._ports, _BLOCK):
            if _bindable(address, port):
                return port
        raise RuntimeError("no free port is left for the conformance suite")

    def _claim(self) -> None:
        """Take a block by binding a socket of that name in Linux' abstract namespace: it frees itself however we end."""
        blocks = range(_FIRST, _LAST, _BLOCK)
        for first in random.sample(blocks, len(blocks)):
            lock = socket.socket(socket.AF_UNIX)
            try:
                lock.bind(f"\0lbaas-scheduler-conformance-{first}")
            except OSError:
                lock.close()
                continue
            self._lock, self._ports = lock.detach(), itertools.cycle(range(first, first + _BLOCK))
            return
        raise RuntimeError("too many processes run the conformance suite")


def _bindable(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno == errno.EADDRNOTAVAIL
    return True
