"""The circuit breaker. When a large part of the fleet vanishes at once, it is rather the way to it that is lost: then nothing is
moved that nobody has asked for, until it is back or an administrator says that it is gone indeed."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from lbaas_scheduler.db import breakers
from lbaas_scheduler.db.breakers import Losses
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import DATABASE_CLOCK, DatabaseClock, utcnow
from lbaas_scheduler.domain.moves import Breaker

LOG = logging.getLogger(__name__)

KINDS = (breakers.DEVICES, breakers.AGENTS)


class CircuitBreaker:
    """Shared by all servers: its state is a row per kind. Any of them may trip it, and one alone says so in its log.

    :param conf: its group ``scheduler`` is read anew each time.
    """

    def __init__(self, database: Database, conf: cfg.ConfigOpts, clock: DatabaseClock = DATABASE_CLOCK) -> None:
        self._database = database
        self._conf = conf
        self._clock = clock

    def update(self) -> bool:
        """Count what is lost, trip or close accordingly.

        :returns: whether moves that nobody asked for are frozen; here at least, where this server's clock is wrong.
        """
        if self._is_blind():
            return True
        # Each kind is counted, whatever another one says.
        frozen = [self._update(kind) for kind in KINDS]
        return any(frozen)

    @property
    def frozen(self) -> bool:
        """As :meth:`update` left it, here or in another server; or this server's clock is wrong, and others are to decide."""
        return self._is_blind() or any(breaker.tripped_at is not None for breaker in self.state())

    def state(self) -> list[Breaker]:
        """What is frozen, since when and why."""
        return self._database.read(lambda conn: [breakers.get(conn, kind) for kind in KINDS])

    def losses(self) -> dict[str, Losses]:
        """What is lost now, by kind."""
        return self._database.read(lambda conn: {kind: self._look(conn, kind)[1] for kind in KINDS})

    def acknowledge(self) -> None:
        """An administrator knows what was lost: go on without it."""

        def work(conn: sa.Connection) -> list[str]:
            return [kind for kind in KINDS if breakers.close(conn, kind, acknowledged=True)]

        for kind in self._database.write(work):
            LOG.warning("An administrator unfroze automatic moves; the lost %s are given up", kind)

    def _update(self, kind: str) -> bool:
        breaker, lost = self._database.read(lambda conn: self._look(conn, kind))
        if breaker.tripped_at is None and self._is_suspicious(lost.lately, lost.total):
            self._trip(kind, lost)
            return True
        if breaker.tripped_at is not None and not self._is_suspicious(lost.now, lost.total):
            self._close(kind)
            return False
        return breaker.tripped_at is not None

    def _look(self, conn: sa.Connection, kind: str) -> tuple[Breaker, Losses]:
        breaker = breakers.get(conn, kind)
        return breaker, self._lost(conn, breaker)

    def _lost(self, conn: sa.Connection, breaker: Breaker) -> Losses:
        options = self._options
        now = utcnow()
        window = timedelta(seconds=options.breaker_window_seconds)
        known_until = breaker.acknowledged_at
        if breaker.kind == breakers.DEVICES:
            since = now - window
            return breakers.devices_lost(conn, max(since, known_until) if known_until else since)
        # An agent is dead some time after it was heard last.
        heard_since = now - timedelta(seconds=options.agent_down_seconds)
        since = heard_since - window
        return breakers.agents_lost(conn, heard_since, max(since, known_until) if known_until else since)

    def _is_blind(self) -> bool:
        """Whether this server cannot tell by its clock who is lost."""
        options = self._options
        return bool(self._clock.trouble(options.max_clock_difference_seconds, options.agent_down_seconds))

    def _is_suspicious(self, lost: int, total: int) -> bool:
        options = self._options
        return bool(lost >= options.breaker_min_losses and lost * 100 > total * options.breaker_lost_percent)

    def _trip(self, kind: str, lost: Losses) -> None:
        reason = (
            f"{lost.lately} of {lost.total} {kind} vanished within {self._options.breaker_window_seconds} s, "
            f"more than {self._options.breaker_lost_percent} %"
        )
        if self._database.write(lambda conn: breakers.trip(conn, kind, reason)):
            LOG.critical("Automatic moves are frozen: %s. Look for a fault that they have in common", reason)

    def _close(self, kind: str) -> None:
        if self._database.write(lambda conn: breakers.close(conn, kind)):
            LOG.warning("Enough %s are back: automatic moves go on", kind)

    @property
    def _options(self) -> Any:
        return self._conf.scheduler
