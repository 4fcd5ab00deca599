"""Threads that repeat something until they are stopped, and how long to wait after a failure."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable

LOG = logging.getLogger(__name__)


class Loop:
    """Calls ``step`` in a thread of its own, again and again, ``pause_seconds()`` apart.

    What ``step`` raises is logged in full and ends that step only.
    """

    def __init__(self, name: str, step: Callable[[], None], pause_seconds: Callable[[], float]) -> None:
        self._name = name
        self._step = step
        self._pause_seconds = pause_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin no more steps. Does not wait for the present one."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._step()
            except Exception:
                LOG.exception("The loop %s failed and goes on", self._name)
            self._stop.wait(self._pause_seconds())


class Backoff:
    """Waits that double from ``first`` to ``most`` seconds, each up to a quarter shorter: agents must not march in step."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self._failures = 0

    @property
    def failing(self) -> bool:
        return self._failures > 0

    def next(self) -> float:
        """Seconds to wait after one more failure."""
        seconds: float = min(self._most, self._first * 2 ** min(self._failures, 30))
        self._failures += 1
        return seconds * random.uniform(0.75, 1.0)  # noqa: S311

    def reset(self) -> None:
        self._failures = 0
