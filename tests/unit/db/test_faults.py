"""Which errors are worth another try, by the drivers' own codes."""

from __future__ import annotations

import sqlite3

import psycopg
import pymysql
import pytest
from oslo_db import exception
from sqlalchemy import exc

from lbaas_scheduler.db.faults import is_refused, is_transient


def sqlalchemy_error(orig: Exception) -> exc.OperationalError:
    return exc.OperationalError("UPDATE t", {}, orig)


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("text that says nothing")
    error.sqlite_errorcode = code
    return error


TRANSIENT = [
    exception.DBDeadlock(),
    exception.DBConnectionError(),
    exception.DBConsistencyError(),
    *(
        sqlalchemy_error(sqlite_error(code))
        for code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_BUSY_SNAPSHOT)
    ),
    *(sqlalchemy_error(pymysql.err.OperationalError(code, "text")) for code in (1020, 1047, 1205, 1213, 2003, 2006, 2013)),
    sqlalchemy_error(psycopg.errors.SerializationFailure("text")),
    sqlalchemy_error(psycopg.errors.DeadlockDetected("text")),
    sqlalchemy_error(psycopg.errors.AdminShutdown("text")),
    sqlalchemy_error(psycopg.errors.CannotConnectNow("text")),
    sqlalchemy_error(psycopg.OperationalError("connection failed: Connection refused")),
    exception.DBError(sqlalchemy_error(psycopg.errors.SerializationFailure("text"))),
]

FINAL = [
    ValueError(),
    exception.DBDuplicateEntry(),
    exception.DBReferenceError("t", "c", "k", "kt"),
    exception.DBError(ValueError()),
    sqlalchemy_error(sqlite_error(sqlite3.SQLITE_FULL)),
    sqlalchemy_error(sqlite3.OperationalError("no such table: t")),
    sqlalchemy_error(pymysql.err.OperationalError(1045, "Access denied")),
    sqlalchemy_error(psycopg.errors.UndefinedTable("text")),
    sqlalchemy_error(psycopg.errors.DiskFull("text")),
    sqlalchemy_error(psycopg.OperationalError('connection failed: FATAL: password authentication failed for user "u"')),
    sqlalchemy_error(psycopg.OperationalError('connection failed: FATAL: database "d" does not exist')),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=repr)
def test_is_repeated(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize("error", FINAL, ids=repr)
def test_is_not_repeated(error: Exception) -> None:
    assert not is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        exception.DBNonExistentDatabase("d"),
        sqlalchemy_error(pymysql.err.OperationalError(1045, "Access denied")),
        sqlalchemy_error(psycopg.OperationalError('connection failed: FATAL: password authentication failed for user "u"')),
    ],
    ids=repr,
)
def test_is_a_refusal(error: Exception) -> None:
    assert is_refused(error)


@pytest.mark.parametrize("error", [sqlalchemy_error(psycopg.errors.UndefinedTable('"t" does not exist')), KeyError()], ids=repr)
def test_is_no_refusal(error: Exception) -> None:
    assert not is_refused(error)
