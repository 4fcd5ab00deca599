"""The one place where wall-clock time is read.

Times in rows are the database's time, whoever writes them and whoever compares them: a process that has a database measures the
database's clock again and again (:mod:`lbaas_scheduler.db.database_clock`) and goes on from there by its own monotonic clock. So
two servers whose clocks differ agree on what is overdue and on who is alive. A process without a database, as an agent, has the
time of its host.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LOG = logging.getLogger(__name__)

STEP_SECONDS = 5.0
"""By how much the database's clock must disagree with what was measured before to count as another clock, or as set anew."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The database's clock, read once.

    ``database_ns``: nanoseconds since 1970 by that clock, at the moment ``monotonic_ns`` of this process, known to within
    ``uncertain_ns``. ``ahead_seconds``: how far the clock of this host was ahead of it then; negative = behind.
    """

    database_ns: int
    monotonic_ns: int
    uncertain_ns: int
    ahead_seconds: float


class DatabaseClock:
    """Tells the database's time between measurements. May be used from any number of threads.

    :param monotonic_ns: the clock that carries a measurement on; for tests.
    """

    def __init__(self, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._monotonic_ns = monotonic_ns
        self.ahead_seconds = 0.0
        """How far this host's clock was ahead of the database's when it was measured last."""
        self._measured: Measurement | None = None
        self._stepped_at_ns: int | None = None

    def set(self, measured: Measurement) -> None:
        """Go on from a new measurement."""
        before = self._measured
        step = 0 if before is None else measured.database_ns - self._carried_on(before, measured.monotonic_ns)
        self.ahead_seconds = measured.ahead_seconds
        if before is not None and abs(step) <= measured.uncertain_ns:
            return  # the same; and time does not go back by the jitter of measurements
        self._measured = measured
        if abs(step) > STEP_SECONDS * 1e9:
            self._stepped_at_ns = measured.monotonic_ns
            LOG.warning(
                "The database's clock jumped by %.1f s: it was set, or another database server with another clock answers now. "
                "Let the clocks of all database servers be synchronised",
                step / 1e9,
            )

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        measured = self._measured
        if measured is None:
            return time.time_ns()
        return self._carried_on(measured, self._monotonic_ns())

    def trouble(self, max_difference_seconds: float, settle_seconds: float = 0.0) -> str:
        """Why this server must not judge by the time that somebody is late or dead; "" = it may.

        :param settle_seconds: for so long after the database's clock jumped, times in its rows say nothing of who is alive.
        """
        if self._stepped_at_ns is not None and self._monotonic_ns() - self._stepped_at_ns < settle_seconds * 1e9:
            return "The database's clock has just jumped."
        ahead = self.ahead_seconds
        if abs(ahead) <= max_difference_seconds:
            return ""
        return (
            f"The clock of this server is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the database's, more than "
            f"[scheduler] max_clock_difference_seconds ({max_difference_seconds:g} s)."
        )

    @staticmethod
    def _carried_on(measured: Measurement, monotonic_ns: int) -> int:
        return measured.database_ns + monotonic_ns - measured.monotonic_ns


DATABASE_CLOCK = DatabaseClock()
"""That of this process, which has one database or none."""


def utcnow() -> datetime:
    """Now, timezone-aware, in UTC: by the database's clock where this process has a database, else by its host's."""
    return _EPOCH + timedelta(microseconds=DATABASE_CLOCK.time_ns() // 1000)


def time_ns() -> int:
    """:func:`utcnow` in nanoseconds since 1970."""
    return DATABASE_CLOCK.time_ns()
