"""Agents whose messages are of another major version, or of a release that knows methods that this one does not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from lbaas_scheduler.domain.agents import Agent
from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.dispatching import major

LOG = logging.getLogger(__name__)

INCOMPATIBLE = "incompatible_version"
"""In an agent's ``configurations``: the version that it speaks, where servers do not understand it."""


def incompatible_version(agent: Agent | None) -> str:
    """The version that an agent speaks, if servers do not understand it, else ""."""
    return "" if agent is None else str(agent.configurations.get(INCOMPATIBLE) or "")


class ForeignAgents:
    """Names each of them once, and lets them count as what they are: they live and serve what they have, and drive nothing new.

    Were they not heard at all, they would count as dead, and their devices would go to others while they still serve them.

    :param report: takes an agent's report: :meth:`lbaas_scheduler.plugins.agents.AgentDirectory.report`.
    """

    def __init__(self, report: Callable[[Any], None]) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._told: set[tuple[str, ...]] = set()

    def note(self, version: str, method: str, arguments: Mapping[str, Any]) -> None:
        """See :data:`lbaas_scheduler.rpc.dispatching.Foreign`. May block, for the database."""
        state = arguments.get("state") if method == "report_state" else arguments
        host = str(state.get("host"))[:255] if isinstance(state, Mapping) else "?"
        if major(version) == major(topics.VERSION):
            if self._is_news(host, method):
                LOG.warning("The agent on %s asks for %r, which this server does not know; is it newer?", host, method[:64])
            return
        if self._is_news(host, version):
            LOG.error(
                "The agent on %s speaks version %s of the messages, this server %s: nothing that changes can be told to it. Its "
                "devices take nothing new and go on serving what they have. Upgrade whichever of the two is older",
                *(host, version[:16], topics.VERSION),
            )
        if isinstance(state, Mapping) and method == "report_state":
            self._record({**state, "configurations": {"device_drivers": [], INCOMPATIBLE: version[:16]}})

    def _is_news(self, *fact: str) -> bool:
        with self._lock:
            if fact in self._told:
                return False
            self._told.add(fact)
            return True

    def _record(self, state: Mapping[str, Any]) -> None:
        try:
            self._report(state)
        except LBaaSError as error:
            LOG.warning("The report of an agent of another version could not be recorded: %s", error.message)
