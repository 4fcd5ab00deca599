"""Moves that wait for their turn: servers take them, a bounded time in each cycle, and begin them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from lbaas_scheduler.db import move_queue, move_reasons, moves_under_way
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.breaker import CircuitBreaker
from lbaas_scheduler.domain.moves import Move, retry_seconds
from lbaas_scheduler.errors import Conflict, LBaaSError, NotFound, StateInvalid, Unavailable
from lbaas_scheduler.plugins.casts import Casts
from lbaas_scheduler.plugins.fleet.starting import Crowded, Starter

LOG = logging.getLogger(__name__)

BATCH = 50
"""So many moves off lost devices are taken, and told to agents, together."""

TURN_SECONDS = 5.0
"""So long a cycle begins moves; then the server's other work has its turn."""

MAX_CROWDED = 10
"""After so many moves that found no room on their targets the others wait for the next cycle: they would hardly find any."""

CROWDED_SECONDS = 1.0


class _Turn:
    """One cycle's share."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ends_at = now() + TURN_SECONDS
        self.crowded = 0

    @property
    def over(self) -> bool:
        return self.crowded >= MAX_CROWDED or self._now() >= self._ends_at


class MoveQueue:
    """Begins moves that wait.

    :param heard_since: an agent that was heard since then is alive.
    :param monotonic: the clock that bounds a cycle's share; for tests.
    """

    def __init__(
        self,
        database: Database,
        starter: Starter,
        caster: Casts,
        breaker: CircuitBreaker,
        heard_since: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._starter = starter
        self._caster = caster
        self._breaker = breaker
        self._heard_since = heard_since
        self._monotonic = monotonic

    def begin(self) -> None:
        """Begin what may begin, as far as the cycle's share goes, first what leaves lost devices, since nobody serves it."""
        turn = _Turn(self._monotonic)
        frozen = self._breaker.frozen
        for take in (self._take_rescues, self._take):
            while not turn.over and (taken := take(frozen)):
                self._begin_all(taken, turn)

    def _take_rescues(self, frozen: bool) -> Sequence[Move]:
        heard_since = self._heard_since()
        return self._database.write(lambda conn: move_queue.take_rescues(conn, heard_since, BATCH, frozen))

    def _take(self, frozen: bool) -> Sequence[Move]:
        heard_since, limits = self._heard_since(), self._starter.limits
        under_way = self._database.read(lambda conn: moves_under_way.read(conn, heard_since))
        if under_way.live() >= limits.moves:
            return ()
        return self._database.write(lambda conn: move_queue.take(conn, heard_since, under_way, limits, frozen))

    def _begin_all(self, taken: Sequence[Move], turn: _Turn) -> None:
        """Each by itself: one that cannot begin stops no other. Agents are told of all of them together."""
        wanted = self._database.read(lambda conn: move_reasons.still_wanted(conn, taken))
        self._database.write(lambda conn: move_queue.drop(conn, [it for it in taken if it.resource_id not in wanted]))
        left = [it for it in taken if it.resource_id in wanted]
        plans = self._starter.plans(left)
        begun: list[str] = []
        try:
            while left and not turn.over:
                move = left.pop(0)
                try:
                    self._starter.begin(move, plans[move.resource_id])
                    begun.append(move.resource_id)
                except Unavailable:
                    raise
                except Exception as error:
                    turn.crowded += isinstance(error, Crowded)
                    self._cannot_begin(move, error)
            if left:
                self._database.write(lambda conn: move_queue.hand_back(conn, left))
        finally:
            if begun:
                self._caster.cast(begun)

    def _cannot_begin(self, move: Move, error: Exception) -> None:
        if isinstance(error, Crowded):
            text = "Waits for others that are on their way."
            self._database.write(lambda conn: move_queue.postpone(conn, move, text, CROWDED_SECONDS))
            return
        if isinstance(error, NotFound | StateInvalid | Conflict):
            LOG.debug("The move of %s is out of date: %s", move.resource_id, error.message)
            self._database.write(lambda conn: move_queue.drop(conn, [move]))
            return
        if not isinstance(error, LBaaSError):
            LOG.error("The move of %s cannot begin", move.resource_id, exc_info=error)
        text = error.message if isinstance(error, LBaaSError) else f"{type(error).__name__}: {error}"
        if not move.cause.persistent:
            self._database.write(lambda conn: move_queue.give_up(conn, move, text))
            return
        LOG.info("%s cannot leave device %s yet: %s", move.resource_id, move.source_id, text)
        tries = move.attempts + 1
        # Devices that failed before get another chance: none of the others would do.
        again = {"attempts": tries, "tried": ()}
        self._database.write(lambda conn: move_queue.postpone(conn, move, text, retry_seconds(tries), **again))
