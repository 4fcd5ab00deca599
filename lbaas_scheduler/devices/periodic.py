"""A thread that does the same again and again until it is told to end."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Periodic:
    """Calls ``step`` in a thread of its own, ``pause_seconds()`` before each call.

    :param step: must not raise: nobody would take the next one.
    """

    def __init__(self, name: str, step: Callable[[], object], pause_seconds: Callable[[], float]) -> None:
        self._name = name
        self._step = step
        self._pause_seconds = pause_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def stopping(self) -> bool:
        """For steps that could go on for long: whether to end soon."""
        return self._stop.is_set()

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and return once the step that is under way has ended. May be called without :meth:`start`, and twice."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._stop.wait(self._pause_seconds()):
            self._step()
