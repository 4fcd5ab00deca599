"""Transactions: the one way to the database, and the one place where they are repeated.

Stores are modules of plain functions that take a connection first; what must be atomic is one function handed to
:meth:`Database.write`::

    def enrol(conn: Connection) -> None:
        devices.insert(conn, device)
        loads.insert(conn, device.id)

    database.write(enrol)
"""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from oslo_config import cfg
from oslo_db import api
from oslo_db import exception as oslo_db_exception
from sqlalchemy import exc
from sqlalchemy.engine import Connection, Engine

from lbaas_scheduler.db import engine as engines
from lbaas_scheduler.db import faults
from lbaas_scheduler.errors import ConfigurationError, Unavailable

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.01

_FAULTS = (oslo_db_exception.DBError, exc.DBAPIError, sqlite3.OperationalError)
"""What the database says no with."""


class NestedTransaction(RuntimeError):
    """A programming error: ``work`` opened a second transaction on its own thread."""


class Database:
    """A database and its pool of connections. May be used from any number of threads.

    :param engine: from :func:`lbaas_scheduler.db.engine.create`.
    :param pauses: pauses, in seconds, between tries: first, longest, and how many (−1: without end).
    :param growing: whether the pause doubles after each try.
    """

    def __init__(self, engine: Engine, pauses: tuple[float, float, int], growing: bool = True) -> None:
        self.engine = engine
        self._reader, self._writer = engines.reader(engine), engines.writer(engine)
        self._by_themselves = engines.committing(engine)
        self._first_pause, self._longest_pause, retries = pauses
        # oslo.db's decorator takes -1 for "never", its options for "always".
        self._retries = math.inf if retries < 0 else retries
        self._growing = growing
        self._patience_seconds = self._sum_of_pauses()
        self._thread = threading.local()
        # One writer at a time is SQLite's rule: threads that queue here do not poll its lock.
        write_turn: AbstractContextManager[object] = threading.Lock() if engine.dialect.name == "sqlite" else nullcontext()
        self._write_turn = write_turn
        self._read_turn = write_turn if engines.is_memory(engine) else nullcontext()

    @classmethod
    def open(cls, conf: cfg.ConfigOpts) -> Database:
        """The database of ``[database] connection``. Connects with the first transaction only.

        :raises ConfigurationError: the option is wrong, or the database's driver is not installed.
        """
        engine = engines.create(conf)
        options = conf.database
        growing = options.db_inc_retry_interval
        first = FIRST_PAUSE_SECONDS if growing else options.db_retry_interval
        return cls(engine, (first, options.db_max_retry_interval, options.db_max_retries), growing)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one transaction that must not write: what it writes is lost (SQLite), or refused.

        Repeated, errors and all, as :meth:`write`.
        """
        return self._repeat("read", lambda: self._read_once(work))

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one transaction: committed when it returns, rolled back when it raises.

        The whole of ``work`` is run again after a deadlock, a serialisation failure, a lock time-out or a lost connection, so it
        must do nothing but SQL. A connection to a server that takes no writes, as a failover may leave it, counts as lost. The
        answer to a COMMIT can get lost, too: ``work`` may find that it was done already, and rows are keyed so that it notices.

        :raises Unavailable: such an error did not pass within ``[database] db_max_retries``.
        :raises ConfigurationError: the server lets us in by no means: wrong user, password or name.
        :raises NestedTransaction: called from inside another transaction's ``work``.
        Whatever else ``work`` raises comes out unchanged.
        """
        return self._repeat("write", lambda: self._write_once(work))

    def alone(self, work: Callable[[Connection], T]) -> T:
        """As :meth:`write`, for ``work`` that changes something with one statement or with none: a transaction by itself, and one
        round trip instead of three."""
        if self.engine.dialect.name == "sqlite":
            return self.write(work)
        return self._repeat("write", lambda: self._alone_once(work))

    def look(self, work: Callable[[Connection], T]) -> T:
        """As :meth:`read`, for ``work`` whose statements need not see the same moment: each of them is one round trip."""
        if self.engine.dialect.name == "sqlite":
            return self.read(work)
        return self._repeat("read", lambda: self._alone_once(work))

    def glance(self, work: Callable[[Connection], T]) -> T:
        """As :meth:`read`, but tried once: for health checks and metrics, whose callers ask again by themselves.

        :raises Unavailable: the database is away.
        """
        try:
            return self._read_once(work)
        except _FAULTS as error:
            raise Unavailable(dependency="The database", reason=faults.first_line(error)) from error

    def try_write(self, work: Callable[[Connection], T]) -> T:
        """As :meth:`write`, but tried once.

        :raises Unavailable: the database is away, or takes no writes.
        """
        try:
            return self._write_once(work)
        except _FAULTS as error:
            raise Unavailable(dependency="The database", reason=faults.first_line(error)) from error

    def dispose(self) -> None:
        """Close all connections that are not in use."""
        self.engine.dispose()

    def _read_once(self, work: Callable[[Connection], T]) -> T:
        with self._read_turn, self._reader.connect() as conn:
            result = work(conn)
            engines.end_read(conn)
            return result

    def _write_once(self, work: Callable[[Connection], T]) -> T:
        with self._write_turn, self._writer.begin() as conn:
            return work(conn)

    def _alone_once(self, work: Callable[[Connection], T]) -> T:
        with self._by_themselves.connect() as conn:
            return work(conn)

    def _repeat(self, kind: str, attempt: Callable[[], T]) -> T:
        running = getattr(self._thread, "running", None)
        if running is not None:
            raise NestedTransaction(
                f"Database.{kind} was called inside Database.{running} on the same thread; "
                "pass the connection that the outer work got, or call after it has returned"
            )
        self._thread.running = kind
        began = time.monotonic()
        try:
            return attempt()
        except (oslo_db_exception.RetryRequest, *_FAULTS) as error:
            return self._repeat_after(error, began, attempt)
        finally:
            self._thread.running = None

    def _repeat_after(self, error: Exception, began: float, attempt: Callable[[], T]) -> T:
        """What follows a first attempt that failed. oslo.db's decorator takes as long to build as a statement to run: whoever
        has no need of it is spared it."""
        first: list[Exception] = [error]
        give_up_at = began + self._patience_seconds

        def next_attempt() -> T:
            if first:
                raise first.pop()
            return attempt()

        def is_worth_repeating(error: Exception) -> bool:
            # By the clock as well: one try on SQLite waits up to busy_timeout by itself.
            return faults.is_transient(error) and time.monotonic() < give_up_at

        repeating: Callable[[], T] = api.wrap_db_retry(
            retry_interval=self._first_pause,
            max_retries=self._retries,
            inc_retry_interval=self._growing,
            max_retry_interval=self._longest_pause,
            exception_checker=is_worth_repeating,
        )(next_attempt)
        try:
            return repeating()
        except _FAULTS as last:
            if faults.is_transient(last):
                raise Unavailable(dependency="The database", reason=faults.first_line(last)) from last
            if faults.is_refused(last):
                name = self.engine.url.database
                raise ConfigurationError(reason=f"[database] connection ({name}): {faults.first_line(last)}") from last
            raise

    def _sum_of_pauses(self) -> float:
        if self._retries == math.inf:
            return math.inf
        factor = 2 if self._growing else 1
        return sum((min(self._first_pause * factor**n, self._longest_pause) for n in range(int(self._retries))), 0.0)
