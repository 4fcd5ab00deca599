"""Servers whose messages are of another major version, or of a release that knows methods that this one does not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.dispatching import major

LOG = logging.getLogger(__name__)


class ForeignServers:
    """Names what they say once. What they want is not done: devices go on serving what they have."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: set[str] = set()

    def note(self, version: str, method: str, _arguments: Mapping[str, Any]) -> None:
        """See :data:`lbaas_scheduler.rpc.dispatching.Foreign`."""
        same = major(version) == major(topics.VERSION)
        fact = method if same else version
        with self._lock:
            if fact in self._told:
                return
            self._told.add(fact)
        if same:
            LOG.warning("A server asks for %r, which this agent does not know; is it newer?", method[:64])
        else:
            LOG.error(
                "A server speaks version %s of the messages, this agent %s: what it wants is not done, and the devices go on "
                "serving what they have. Upgrade whichever of the two is older",
                *(version[:16], topics.VERSION),
            )
