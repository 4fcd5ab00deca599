"""Measures the database's clock: with each new connection, and from time to time with one that a transaction takes up.

No transaction waits for more than the one round trip that this takes, and a process that does nothing measures nothing. SQLite
has the clock of the host that its file is on, and so has whoever may open the file.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from lbaas_scheduler.domain.clock import DATABASE_CLOCK, DatabaseClock, Measurement

MEASURE_SECONDS = 5.0
"""How long a measurement holds."""

MOST_SECONDS = 1.0
"""A measurement that takes longer says too little: the clock may have been read at either end of it."""

REPEAT_SECONDS = 1.0
"""Pause after one that took too long."""

_QUESTIONS = {"postgresql": "SELECT clock_timestamp()", "mysql": "SELECT UTC_TIMESTAMP(6)"}
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def listen(engine: Engine, clock: DatabaseClock = DATABASE_CLOCK) -> None:
    """Keep ``clock`` right from now on. Does nothing for SQLite."""
    if engine.dialect.name in _QUESTIONS:
        # PyMySQL's connections commit by themselves.
        meter = _Meter(_QUESTIONS[engine.dialect.name], engine.dialect.name == "postgresql", clock)
        event.listen(engine, "connect", meter.connected)
        event.listen(engine, "checkout", meter.taken)


class _Meter:
    def __init__(self, question: str, commits: bool, clock: DatabaseClock) -> None:
        self._question = question
        self._commits = commits
        self._clock = clock
        self._due = 0.0

    def connected(self, _dbapi_connection: Any, _record: Any) -> None:
        # Another server may be behind it. Asked when it is taken: a pool closes no connection that fails before.
        self._due = 0.0

    def taken(self, dbapi_connection: Any, _record: Any, _proxy: Any) -> None:
        if time.monotonic() >= self._due:
            self._measure(dbapi_connection)

    def _measure(self, dbapi_connection: Any) -> None:
        # Other threads need not do the same meanwhile.
        self._due = time.monotonic() + MEASURE_SECONDS
        wall, began = time.time(), time.monotonic_ns()
        said = self._ask(dbapi_connection)
        took = time.monotonic_ns() - began
        if took > MOST_SECONDS * 1e9:
            self._due = time.monotonic() + REPEAT_SECONDS
            return
        database_ns = (said - _EPOCH) // _MICROSECOND * 1000
        ahead = wall + took / 2e9 - database_ns / 1e9
        self._clock.set(Measurement(database_ns, began + took // 2, took // 2, ahead))

    def _ask(self, dbapi_connection: Any) -> datetime:
        # Past SQLAlchemy: no transaction has begun, and none must be open afterwards.
        cursor = dbapi_connection.cursor()
        try:
            cursor.execute(self._question)
            said: datetime = cursor.fetchone()[0]
        finally:
            cursor.close()
        if self._commits:
            dbapi_connection.commit()
        return said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
