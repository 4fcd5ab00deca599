"""Which database errors go away when the whole transaction is repeated.

oslo.db translates most errors of the drivers. What it leaves as a plain ``OperationalError`` is recognised here by the
driver's own codes, never by a text that a server may translate.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from oslo_db import exception
from sqlalchemy import exc

TRANSIENT = (exception.DBDeadlock, exception.DBConnectionError, exception.DBConsistencyError)

MYSQL_CODES = frozenset(
    {
        1020,  # record has changed since last read (innodb_snapshot_isolation)
        1040,  # too many connections
        1047,  # WSREP has not yet prepared the node for use
        1053,  # server shutdown in progress
        1205,  # lock wait timeout exceeded
        1213,  # deadlock, and a certification failure of Galera at COMMIT
        1317,  # query execution was interrupted (Galera's brute-force abort)
        1927,  # connection was killed
        2002,
        2003,
        2006,
        2013,
        2055,
        4031,  # disconnected by the server because of inactivity
    }
)
POSTGRESQL_STATES = frozenset(
    {
        "40001",  # serialization_failure
        "40P01",  # deadlock_detected
        "55P03",  # lock_not_available
        "53300",  # too_many_connections
        "57P01",  # admin_shutdown
        "57P02",  # crash_shutdown
        "57P03",  # cannot_connect_now: starting up or shutting down
    }
)
MYSQL_READ_ONLY = frozenset(
    {
        1036,  # table is read only (innodb_read_only)
        1290,  # running with --read-only
        1792,  # cannot execute statement in a READ ONLY transaction
        1836,  # running in read-only mode
        1874,  # InnoDB is in read only mode
    }
)
POSTGRESQL_READ_ONLY = "25006"
POSTGRESQL_OUTDATED = "0A000"
"""feature_not_supported: a standby is asked to write, or what a connection prepared no longer fits the schema."""

MYSQL_REFUSALS = frozenset({1044, 1045, 1049, 1698})  # access denied (user, database, plugin), unknown database

# A connection that PostgreSQL refuses has no SQLSTATE in psycopg; these refusals do not pass by themselves.
POSTGRESQL_REFUSALS = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
)


def is_transient(error: BaseException) -> bool:
    """Whether repeating the whole transaction can cure ``error``."""
    if isinstance(error, TRANSIENT):
        return True
    if isinstance(error, sqlite3.OperationalError):
        return _is_transient_in_driver(error)
    if isinstance(error, exc.DBAPIError):
        return error.connection_invalidated or _is_transient_in_driver(error.orig)
    if isinstance(error, exception.DBError):
        return isinstance(error.inner_exception, exc.DBAPIError) and is_transient(error.inner_exception)
    return False


def is_of_no_use(orig: BaseException, writing: bool) -> bool:
    """Whether a driver's error tells of a connection that works and is of no use, as all that were made before it: after a
    failover it leads to a server that takes no writes, or it remembers a schema that is gone.

    :param writing: the transaction may write. Of others PostgreSQL says "read-only" by our own wish.
    """
    if isinstance(orig, sqlite3.OperationalError):
        return writing and _primary_code(orig) == sqlite3.SQLITE_READONLY
    if isinstance(_code(orig), int):
        return writing and _code(orig) in MYSQL_READ_ONLY
    state = getattr(orig, "sqlstate", None)
    return state == POSTGRESQL_OUTDATED or (writing and state == POSTGRESQL_READ_ONLY)


def is_refused(error: BaseException) -> bool:
    """Whether the database cannot be entered with what ``[database] connection`` says: wrong user, password, name, or folder."""
    if isinstance(error, exception.DBNonExistentDatabase):
        return True
    if not isinstance(error, exc.DBAPIError):
        return False
    return _code(error.orig) in MYSQL_REFUSALS or _is_refused_by_postgresql(error.orig)


def first_line(error: BaseException) -> str:
    """What the driver said, without the statement and its parameters."""
    inner = getattr(error, "inner_exception", None) or error
    orig = getattr(inner, "orig", None) or inner
    lines = str(orig).strip().splitlines()
    return lines[0] if lines else type(orig).__name__


def _is_transient_in_driver(orig: Any) -> bool:
    if isinstance(orig, sqlite3.OperationalError):
        return _primary_code(orig) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    if isinstance(_code(orig), int):
        return _code(orig) in MYSQL_CODES
    if getattr(orig, "sqlstate", None):
        return orig.sqlstate in POSTGRESQL_STATES or orig.sqlstate.startswith("08")
    is_connecting = type(orig).__name__ in ("OperationalError", "ConnectionTimeout")
    return is_connecting and not _is_refused_by_postgresql(orig)


def _is_refused_by_postgresql(orig: Any) -> bool:
    return getattr(orig, "sqlstate", "") is None and any(refusal in str(orig) for refusal in POSTGRESQL_REFUSALS)


def _primary_code(orig: sqlite3.Error) -> int:
    # In the low byte; the rest tells variants such as SQLITE_BUSY_SNAPSHOT apart.
    return getattr(orig, "sqlite_errorcode", 0) & 0xFF


def _code(orig: Any) -> object:
    """MySQL's error number: its drivers put it first, the others put a text there."""
    arguments = getattr(orig, "args", None)
    return arguments[0] if arguments else None
