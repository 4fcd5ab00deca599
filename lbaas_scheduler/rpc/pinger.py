"""Whether a server answers on the bus, asked in bounded time."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import oslo_messaging

from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.transport import delivering, get_client, service_context

SPARE_SECONDS = 0.5
"""The library's own time-out comes first, where it comes: what it says is more."""


@dataclass(eq=False, slots=True)
class _Question:
    """``error``: what came of it, once ``done``; None = a server answered."""

    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


class Pinger:
    """Asks whether a server is there.

    oslo.messaging's time-out of a call does not count before its first connection: until that is made, a call waits for ever, and
    all others with it. So a thread asks. There is one at most: a question that hangs is not asked again, but waited for.
    """

    def __init__(self, transport: oslo_messaging.Transport) -> None:
        self._client = get_client(transport, topics.SERVERS)
        self._lock = threading.Lock()
        self._asked: _Question | None = None

    def ping(self, timeout_seconds: float) -> None:
        """Return once a server answered.

        :raises oslo_messaging.MessagingException: none answers in time, or the broker is away.
        """
        with self._lock:
            question = self._asked
            if question is None or question.done.is_set():
                question = self._asked = _Question()
                threading.Thread(target=self._ask, args=(question, timeout_seconds), name="ping", daemon=True).start()
        if not question.done.wait(timeout_seconds + SPARE_SECONDS):
            raise oslo_messaging.MessagingTimeout("The message bus does not answer.")
        if question.error is not None:
            raise question.error

    def _ask(self, question: _Question, timeout_seconds: float) -> None:
        try:
            with delivering():
                self._client.prepare(timeout=timeout_seconds).call(service_context(), "ping")
        except Exception as error:
            question.error = error
        finally:
            question.done.set()
