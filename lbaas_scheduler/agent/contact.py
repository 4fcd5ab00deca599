"""Whether the servers can be reached."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import oslo_messaging

LOG = logging.getLogger(__name__)

AWAY = (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure)
"""Errors that mean: nobody is there. All others are answers, or come from elsewhere."""


class Contact:
    """Remembers whether the servers answer, and logs the changes of that only.

    :param lost: called once when contact is lost: what came in between must be made good for. Must not block.
    """

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost
        self._lock = threading.Lock()
        self._since: float | None = None
        self._heard = time.monotonic()
        self.away = False

    @property
    def silent_seconds(self) -> float:
        """How long ago anything was heard of the bus; before the first time, since the start."""
        return time.monotonic() - self._heard

    def heard(self) -> None:
        """The broker took a message. That says nothing of servers."""
        self._heard = time.monotonic()

    def settled(self, seconds: float) -> bool:
        """Whether there has been contact for so long, without a gap."""
        since = self._since
        return since is not None and time.monotonic() - since >= seconds

    def made(self) -> None:
        """A server answered, if only with an error."""
        self.heard()
        with self._lock:
            changed, self.away = self.away, False
            if self._since is None:
                self._since = time.monotonic()
        if changed:
            LOG.info("A server answers again")

    def note(self, error: BaseException) -> None:
        """Take note of an error, if it is one that says that nobody is there."""
        if not isinstance(error, AWAY):
            return
        with self._lock:
            changed, self.away = not self.away, True
            self._since = None
        if changed:
            LOG.warning("No server can be reached: %s. Devices go on serving.", type(error).__name__)
            self._lost()
