"""A server on the bus whose memory is bounded.

oslo.messaging takes messages as fast as they come and confirms them at once, and lets them wait in memory for a thread. While a
database is slow or away, all threads stand there, and what agents report again and again piles up in the process.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import oslo_messaging
from oslo_messaging.rpc.server import RPCServer

LOG = logging.getLogger(__name__)

THREADS = 24
"""Of each server, unless the operator says otherwise (``executor_thread_pool_size``). Each may hold a connection to the database,
and its memory is never given back."""

MAX_WAITING = 100
"""So many messages are being served or wait for it; the broker keeps the others."""

PATIENCE_SECONDS = 15.0
"""How long a message waits for its place: the thread that reads must be back in time for the broker's heartbeats."""

SAY_AGAIN_SECONDS = 60.0


class BoundedServer(RPCServer):  # type: ignore[misc]
    """Reads on only when there is room. What finds none for too long is dropped: every message may be lost, and is repeated."""

    def __init__(self, transport: oslo_messaging.Transport, target: oslo_messaging.Target, dispatcher: Any) -> None:
        super().__init__(transport, target, dispatcher)
        self._room = threading.BoundedSemaphore(MAX_WAITING)
        self._said_at = 0.0

    def _on_incoming(self, incoming: Any) -> None:
        if not self._room.acquire(timeout=PATIENCE_SECONDS):
            self._say_dropped()
            return
        try:
            super()._on_incoming(incoming)
        except BaseException:
            self._room.release()
            raise

    def _process_incoming(self, incoming: Any) -> None:
        try:
            super()._process_incoming(incoming)
        finally:
            self._room.release()

    def _say_dropped(self) -> None:
        now = time.monotonic()
        if now - self._said_at >= SAY_AGAIN_SECONDS:
            self._said_at = now
            LOG.warning("More messages come than are worked off, and some are dropped: is the database slow or away?")
