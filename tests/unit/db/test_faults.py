"""Which errors are worth another try, by the drivers' own codes."""

from __future__ import annotations

import sqlite3

import psycopg
import pymysql
import pytest
from oslo_db import exception
from sqlalchemy import exc

from lbaas_scheduler.db.faults import is_of_no_use, is_refused, is_transient


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


READ_ONLY = [
    *(pymysql.err.OperationalError(code, "text") for code in (1036, 1290, 1792, 1836, 1874)),
    psycopg.errors.ReadOnlySqlTransaction("text"),
    sqlite_error(sqlite3.SQLITE_READONLY),
]


@pytest.mark.parametrize("error", READ_ONLY, ids=repr)
def test_a_server_that_takes_no_writes_is_of_no_use_to_who_writes_and_a_mistake_of_who_reads(error: Exception) -> None:
    assert (is_of_no_use(error, True), is_of_no_use(error, False)) == (True, False)


def test_what_was_prepared_for_another_schema_is_of_no_use_to_anybody() -> None:
    error = psycopg.errors.FeatureNotSupported("text")
    assert (is_of_no_use(error, True), is_of_no_use(error, False)) == (True, True)


@pytest.mark.parametrize("error", [ValueError(), pymysql.err.OperationalError(1213, "text"), psycopg.errors.UniqueViolation("x")])
def test_other_errors_tell_nothing_of_the_connection(error: Exception) -> None:
    assert not is_of_no_use(error, True)
