"""Requests to whichever API answers, with what a client can know of their outcome."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 60.0

UNKNOWN = 0
"""Status of a request that was sent, and got no answer."""

UNSENT = -1
"""Nobody took the request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """:ivar doubtful: it was tried more than once, so that what an earlier try did is not known."""

    status: int
    body: Any = None
    doubtful: bool = False

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def known(self) -> bool:
        """Whether the server said what it did."""
        return self.status > 0 and self.status < 500


class Http:
    """Thread-safe.

    :ivar wrong: what no server should ever answer.
    :ivar counts: status → how often.
    """

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports
        self.wrong: list[str] = []
        self.counts: Counter[int] = Counter()
        self.slowest = 0.0
        self._lock = threading.Lock()

    def admin(self, method: str, path: str, body: Any = None) -> Answer:
        """One try, by an administrator, at whichever server takes it."""
        for port in self.ports:
            answer = self.once(port, method, path, body)
            if answer.status != UNSENT:
                return answer
        return Answer(UNSENT)

    def patiently(
        self, chance: random.Random, method: str, path: str, body: Any = None, project: str = "", seconds: float = 45
    ) -> Answer:
        """Repeat a request as long as servers say that something is away, or do not listen. An answer that got lost is final."""
        deadline = time.monotonic() + seconds
        doubtful = False
        while True:
            answer = self.once(chance.choice(self.ports), method, path, body, project)
            if answer.status not in (UNSENT, 503) or time.monotonic() > deadline:
                return Answer(answer.status, answer.body, doubtful or not answer.known)
            # What was answered with 503 may have been committed all the same: a commit whose answer was lost is such a case.
            doubtful = doubtful or answer.status == 503
            time.sleep(0.3)

    def once(self, port: int, method: str, path: str, body: Any = None, project: str = "") -> Answer:
        headers = {"Content-Type": "application/json"}
        if project:
            headers |= {"X-Project-Id": project, "X-User-Id": project, "X-Roles": "member"}
        began = time.monotonic()
        answer = _exchange(port, method, path, json.dumps(body) if body is not None else None, headers)
        with self._lock:
            self.counts[answer.status] += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            if answer.status >= 500 and answer.status != 503:
                self.wrong.append(f"port {port}: {method} {path} {body} was answered with {answer.status}: {answer.body}")
        return answer


def _exchange(port: int, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CONNECT_SECONDS)
    try:
        connection.connect()
    except OSError:
        return Answer(UNSENT)
    try:
        connection.sock.settimeout(ANSWER_SECONDS)
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        text = answer.read()
        return Answer(answer.status, json.loads(text) if text else None)
    except (OSError, http.client.HTTPException, ValueError):
        return Answer(UNKNOWN)
    finally:
        connection.close()
