"""Tells the servers that the agent lives, and what it can drive."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from lbaas_scheduler.agent.contact import Contact
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.server_api import ServerAPI

LOG = logging.getLogger(__name__)

BINARY = "lbaas-scheduler-agent"
AGENT_TYPE = "Loadbalancer agent"
"""As LBaaS v1 clients know it."""


class Heartbeat:
    """One report per step. ``start_flag`` is on the first one that the broker took.

    :param counts: what the agent counts, by name: how many devices it holds, say.
    """

    def __init__(
        self, host: str, server: ServerAPI, contact: Contact, drivers: Iterable[str], counts: Callable[[], Mapping[str, int]]
    ) -> None:
        self._server = server
        self._contact = contact
        self._counts = counts
        self._drivers = sorted(drivers)
        self._started = False
        self._started_at, self._began = utcnow(), time.monotonic()
        self._identity = {
            "host": host,
            "binary": BINARY,
            "topic": topics.AGENTS,
            "agent_type": AGENT_TYPE,
            "started_at": self._started_at.isoformat(),
        }

    def beat(self) -> None:
        configurations = {"device_drivers": self._drivers, "message_version": topics.VERSION, **self._counts()}
        state: dict[str, Any] = {
            **self._identity,
            "configurations": configurations,
            "start_flag": not self._started,
            # Puts the reports of one agent in order, whatever becomes of its host's clock. No server compares it with its own.
            "sent_at": (self._started_at + timedelta(seconds=time.monotonic() - self._began)).isoformat(),
        }
        try:
            self._server.report_state(state)
        except Exception as error:
            self._contact.note(error)
            LOG.debug("The state report could not be sent: %r", error)
        else:
            # A cast says nothing of servers, so that contact is not made by it.
            self._started = True
            self._contact.heard()
