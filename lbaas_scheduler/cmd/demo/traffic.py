"""Sends requests through a VIP and counts who answered."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException

REQUEST_TIMEOUT_SECONDS = 5.0


@dataclass
class Tally:
    """What came of some requests. ``by_member``: name of the backend that answered → how often."""

    sent: int = 0
    by_member: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def succeeded(self) -> int:
        return sum(self.by_member.values())

    def add(self, other: Tally) -> None:
        self.sent += other.sent
        self.by_member.update(other.by_member)
        self.failures.extend(other.failures)


def send(address: str, port: int, count: int) -> Tally:
    """Send ``count`` GETs, one after the other, each on a connection of its own."""
    tally = Tally()
    for _ in range(count):
        _send_one(address, port, tally)
    return tally


class Load:
    """Sends requests in the background for as long as the ``with`` lasts; ``tally`` has the result."""

    def __init__(self, address: str, port: int, pause_seconds: float = 0.005) -> None:
        self.tally = Tally()
        self._address = address
        self._port = port
        self._pause_seconds = pause_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause_seconds):
            _send_one(self._address, self._port, self.tally)


def _send_one(address: str, port: int, tally: Tally) -> None:
    tally.sent += 1
    connection = HTTPConnection(address, port, timeout=REQUEST_TIMEOUT_SECONDS)
    started = time.monotonic()
    try:
        connection.request("GET", "/")
        response = connection.getresponse()
        body = response.read().decode()
    except (OSError, HTTPException) as error:
        tally.failures.append(f"{type(error).__name__} after {time.monotonic() - started:.2f} s: {error}")
        return
    finally:
        connection.close()
    if response.status == 200:
        tally.by_member[body] += 1
    else:
        tally.failures.append(f"HTTP {response.status}")
