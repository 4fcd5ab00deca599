"""Whether this server can do its work: asked by load balancers and supervisors, without a token."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_messaging import MessagingException

from lbaas_scheduler.api.operations import Call, Operation, Ping, Raw
from lbaas_scheduler.db import gauges
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import LBaaSError

PING_SECONDS = 2.0
"""How long the message bus may take."""

FRESH_SECONDS = 2.0
"""How long an answer holds: whoever asks without a token must not keep database and bus busy."""

OK = "ok"


class Health:
    """Checks, with the last answer kept for a moment.

    :param ping: raises if no server answers on the bus within so many seconds.
    :param heard_since: an agent that was heard since then counts as alive.
    """

    def __init__(self, database: Database, ping: Ping, heard_since: Callable[[], datetime]) -> None:
        self._database = database
        self._ping = ping
        self._heard_since = heard_since
        self._lock = threading.Lock()
        self._until = 0.0
        self._answer: dict[str, Any] = {}

    def check(self) -> dict[str, Any]:
        """``{"status": "ok" or "failed", "checks": {database, bus, agents}}``.

        Without agents the API still works, and so does what is deployed: their number is shown, and fails nothing.
        """
        with self._lock:
            if time.monotonic() >= self._until:
                self._answer = self._ask()
                self._until = time.monotonic() + FRESH_SECONDS
            return self._answer

    def _ask(self) -> dict[str, Any]:
        checks = {"database": _outcome(self._ask_database), "bus": _outcome(self._ask_bus)}
        status = OK if all(outcome == OK for outcome in checks.values()) else "failed"
        return {"status": status, "checks": {**checks, "agents": self._agents() if checks["database"] == OK else "unknown"}}

    def _ask_database(self) -> None:
        self._database.glance(lambda conn: conn.execute(sa.select(1)))

    def _ask_bus(self) -> None:
        self._ping(PING_SECONDS)

    def _agents(self) -> Any:
        try:
            return self._database.glance(lambda conn: gauges.agents_by_state(conn, self._heard_since()))
        except LBaaSError:
            return "unknown"


def _outcome(check: Callable[[], None]) -> str:
    """Whoever asks learns that it failed; why is in the log of those who use it."""
    try:
        check()
    except (LBaaSError, MessagingException):
        return "failed"
    return OK


def _health(call: Call) -> Raw:
    answer = call.services.health.check()
    return Raw(json.dumps(answer).encode(), "application/json", 200 if answer["status"] == OK else 503)


_ANSWER = {
    "type": "object",
    "properties": {"status": {"enum": [OK, "failed"]}, "checks": {"type": "object"}},
    "required": ["status", "checks"],
}
HEALTH = Operation(
    run=_health,
    rule=None,
    summary="Say whether this server can do its work",
    tag="Operations",
    gives=_ANSWER,
    also={503: _ANSWER},
)
