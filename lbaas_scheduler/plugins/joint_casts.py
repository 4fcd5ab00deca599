"""Casts of requests that are answered at the same time, read and sent together."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Protocol


class Casts(Protocol):
    def cast(self, vip_ids: Collection[str]) -> object: ...


class JointCaster:
    """Of callers that come while others are being served, the first one serves them all: what a cast reads takes as many
    statements for a hundred VIPs as for one. Nobody returns before his own VIPs were cast, and nobody who is alone waits.
    """

    def __init__(self, caster: Casts) -> None:
        self._caster = caster
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._waiting: set[str] = set()

    def cast(self, vip_ids: Collection[str]) -> None:
        """Send each VIP's whole desired state to its device's agent. After the commit; never raises."""
        with self._lock:
            self._waiting.update(vip_ids)
        with self._turn:
            with self._lock:
                taken, self._waiting = self._waiting, set()
            if taken:
                self._caster.cast(taken)
