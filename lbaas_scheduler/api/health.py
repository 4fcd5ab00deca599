"""Whether this server can do its work: asked by load balancers and supervisors, without a token."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_messaging import MessagingException

from lbaas_scheduler.api.operations import Call, Operation, Ping, Raw
from lbaas_scheduler.db import gauges
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import LBaaSError

LOG = logging.getLogger(__name__)

LIMIT_SECONDS = 1.5
"""How long an answer may take, whatever is away. What has not answered by then has failed."""

FRESH_SECONDS = 2.0
"""How long an answer holds: whoever asks without a token must not keep database and bus busy."""

OK = "ok"
FAILED = "failed"
UNKNOWN = "unknown"

_ERRORS = (LBaaSError, MessagingException)
"""What checks say no with. Whoever asks learns that one failed; why is in the log of those who use it."""


class Health:
    """Checks, with the last answer kept for a moment.

    :param ping: raises if no server answers on the bus within so many seconds.
    :param heard_since: an agent that was heard since then counts as alive.
    :param clock_trouble: what is wrong with this server's clock; "" = nothing.
    """

    def __init__(
        self,
        database: Database,
        ping: Ping,
        heard_since: Callable[[], datetime],
        clock_trouble: Callable[[], str] = lambda: "",
    ) -> None:
        self._database = database
        self._heard_since = heard_since
        self._clock_trouble = clock_trouble
        self._probes = {"database": _Probe("database", self._ask_database), "bus": _Probe("bus", lambda: ping(LIMIT_SECONDS))}
        self._lock = threading.Lock()
        self._until = 0.0
        self._answer: dict[str, Any] = {}

    def check(self) -> dict[str, Any]:
        """``{"status": "ok" or "failed", "checks": {database, bus, clock, agents}}``, within :data:`LIMIT_SECONDS`.

        Without agents the API still works, and so does what is deployed: their number is shown, and fails nothing.
        """
        with self._lock:
            if time.monotonic() >= self._until:
                self._answer = self._ask()
                self._until = time.monotonic() + FRESH_SECONDS
            return self._answer

    def _ask(self) -> dict[str, Any]:
        deadline = time.monotonic() + LIMIT_SECONDS
        for probe in self._probes.values():
            probe.begin()
        found = {name: probe.outcome(deadline) for name, probe in self._probes.items()}
        checks = {name: OK if outcome is not None else FAILED for name, outcome in found.items()}
        checks["clock"] = FAILED if self._clock_trouble() else OK
        status = OK if all(outcome == OK for outcome in checks.values()) else FAILED
        return {"status": status, "checks": {**checks, "agents": UNKNOWN if found["database"] is None else found["database"]}}

    def _ask_database(self) -> Mapping[str, int]:
        """Whether it takes writes, too: after a failover the present server may be one that only reads."""
        return self._database.try_write(self._look)

    def _look(self, conn: sa.Connection) -> Mapping[str, int]:
        gauges.write_nothing(conn)
        return gauges.agents_by_state(conn, self._heard_since())


class _Probe:
    """One check, in a thread of its own: what is away may let it hang for minutes. Meanwhile no second one is begun.

    :param ask: raises one of :data:`_ERRORS` if what it asks is not well.
    """

    def __init__(self, name: str, ask: Callable[[], object]) -> None:
        self._name = name
        self._ask = ask
        self._thread: threading.Thread | None = None
        self._found: object = None

    def begin(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._found = None
            self._thread = threading.Thread(target=self._run, name=f"health-{self._name}", daemon=True)
            self._thread.start()

    def outcome(self, deadline: float) -> Any:
        """:returns: what the check gave, or True; None = it failed, or has not ended by ``deadline``."""
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        return self._found

    def _run(self) -> None:
        try:
            found = self._ask()
        except _ERRORS:
            return
        except Exception:
            LOG.exception("The health check of %s failed", self._name)
            return
        self._found = True if found is None else found


def _health(call: Call) -> Raw:
    answer = call.services.health.check()
    return Raw(json.dumps(answer).encode(), "application/json", 200 if answer["status"] == OK else 503)


_ANSWER = {
    "type": "object",
    "properties": {"status": {"enum": [OK, FAILED]}, "checks": {"type": "object"}},
    "required": ["status", "checks"],
}
HEALTH = Operation(
    run=_health,
    rule=None,
    summary="Say whether this server is ready: whether it can do its work now",
    tag="Operations",
    gives=_ANSWER,
    also={503: _ANSWER},
)
LIVE = Operation(
    run=lambda _call: {"status": OK},
    rule=None,
    summary="Say whether this server lives: one that does not answer is to be restarted, one that is not ready is not",
    tag="Operations",
    gives={"type": "object", "properties": {"status": {"enum": [OK]}}, "required": ["status"]},
)
