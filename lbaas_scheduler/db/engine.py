"""The SQLAlchemy engine: oslo.db's, tuned for short transactions on SQLite, PostgreSQL and MariaDB.

oslo.db gives the options, the translation of errors and the guards against forked connections. A SQLAlchemy engine plugin
(:class:`ShortTransactions`) changes what oslo.db leaves no option for: SQLite gets a real pool, and no engine asks
"are you alive" before each transaction, since :class:`~lbaas_scheduler.db.session.Database` repeats what a lost connection broke.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
from sqlalchemy import event, pool
from sqlalchemy.dialects import plugins
from sqlalchemy.engine import URL, Connection, CreateEnginePlugin, Engine, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, InvalidRequestError, NoSuchModuleError

from lbaas_scheduler.conf import database as options
from lbaas_scheduler.db import database_clock, faults
from lbaas_scheduler.errors import ConfigurationError

BEGIN = "lbaas_scheduler_begin"
"""Execution option of a connection: the kind of SQLite's BEGIN; of MariaDB's, whether there is one."""

_IN_TRANSACTION = 1
"""Of the status that MariaDB sends with each answer."""

NONE, READ = "NONE", "READ"
"""Values of :data:`BEGIN`: statements without a transaction around them; and ones that only read."""

SQLITE_BUSY_MILLISECONDS = 30_000
SQLITE_POOL_SIZE = 10
SQLITE_CACHE_KIBIBYTES = 16_384
"""Of a connection."""

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mysql+pymysql"}
"""Backend in the URL → SQLAlchemy driver, where the URL names none. MariaDB goes by MySQL's name, the only one of the two that
oslo.db's error filters know."""

EXTRAS = {"postgresql": "postgresql", "mysql": "mysql"}
"""Backend → extra of this package that installs its driver."""

EXAMPLES = "sqlite:////path/file.sqlite, postgresql+psycopg://user:password@host/name or mysql+pymysql://user:password@host/name"


class ShortTransactions(CreateEnginePlugin):
    """Corrects the pool that oslo.db chose, and listens before oslo.db does."""

    def __init__(self, _url: URL, kwargs: dict[str, Any]) -> None:
        kwargs["pool_pre_ping"] = False
        if kwargs.get("poolclass") is pool.NullPool:
            # oslo.db opens SQLite files anew for every transaction: 1.6 ms each.
            kwargs.update(poolclass=pool.QueuePool, pool_size=SQLITE_POOL_SIZE, max_overflow=-1)
        if kwargs.get("poolclass") is not pool.StaticPool:
            kwargs["pool_use_lifo"] = True

    def update_url(self, url: URL) -> URL:
        return url

    def engine_created(self, engine: Engine) -> None:
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _set_pragmas)
            event.listen(engine, "begin", _begin)
        else:
            event.listen(engine, "connect", partial(_read_committed, engine))
        if engine.driver == "pymysql":
            event.listen(engine, "connect", _commit_by_itself)
            event.listen(engine, "begin", _begin_if_asked)
            event.listen(engine, "before_cursor_execute", _refuse_writes)
            engine.dialect.do_rollback = _roll_back  # type: ignore[method-assign]
        database_clock.listen(engine)
        event.listen(engine, "handle_error", _give_up_useless)


plugins.register("lbaas_scheduler_short_transactions", __name__, "ShortTransactions")


def create(conf: cfg.ConfigOpts) -> Engine:
    """Build the engine of ``[database]``; connects to nothing yet.

    :raises ConfigurationError: the URL is absent, malformed, or names a database or driver that is not there.
    """
    options.register_opts(conf)
    values = dict(conf.database.items())
    url = parse(values["connection"])
    query = {"plugin": "lbaas_scheduler_short_transactions"}
    if url.get_backend_name() == "mysql" and "charset" not in url.query:
        # oslo.db would take MySQL's three-byte utf8, which refuses what tenants may type.
        query["charset"] = "utf8mb4"
    manager = enginefacade.transaction_context()
    manager.configure(
        **values
        | {
            "connection": url.update_query_dict(query, append=True).render_as_string(hide_password=False),
            "sqlite_fk": True,
            "thread_checkin": False,
            # No connection at start: Database waits for a server that is away, and says so.
            "max_retries": 0,
        }
    )
    try:
        engine: Engine = manager.writer.get_engine()
    except ImportError as error:
        extra = EXTRAS.get(url.get_backend_name(), "")
        raise ConfigurationError(
            reason=f"[database] connection: driver '{url.drivername}' is not installed ({error}); "
            f"install it with: pip install 'lbaas-scheduler[{extra}]'"
        ) from error
    return engine


def parse(text: str | None) -> URL:
    """Check a database URL and complete it with our driver.

    :raises ConfigurationError: without the URL itself, which may hold a password.
    """
    if not text:
        raise ConfigurationError(reason=f"[database] connection is not set; give {EXAMPLES}")
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError) as error:
        raise ConfigurationError(reason=f"[database] connection is not a database URL; give {EXAMPLES}") from error
    if backend not in DRIVERS:
        raise ConfigurationError(reason=f"[database] connection: '{url.drivername}' is not supported; give {EXAMPLES}")
    if "+" not in url.drivername:
        url = url.set(drivername=DRIVERS[backend])
    elif backend == "mariadb":
        url = url.set(drivername=url.drivername.replace("mariadb+", "mysql+", 1))
    try:
        url.get_dialect()
    except NoSuchModuleError as error:
        raise ConfigurationError(reason=f"[database] connection: unknown driver '{url.drivername}'; give {EXAMPLES}") from error
    except ImportError:
        # Reported, with what to install, when the engine is created.
        pass
    return url


def _read_committed(engine: Engine, dbapi_connection: Any, _record: Any) -> None:
    # Once per connection and not per transaction: an execution option would be set and reset each time.
    engine.dialect.set_isolation_level(dbapi_connection, "READ COMMITTED")


# PyMySQL's connections commit by themselves, and a transaction says BEGIN: as many round trips as before for one that writes (a
# pool's ROLLBACK after each COMMIT is spared), but a single one for a statement that needs no transaction.


def _commit_by_itself(dbapi_connection: Any, _record: Any) -> None:
    dbapi_connection.autocommit(True)


def _begin_if_asked(connection: Connection) -> None:
    if connection.get_execution_options().get(BEGIN) not in (NONE, READ):
        connection.exec_driver_sql("BEGIN")


def _refuse_writes(connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
    # What a read wrote would be committed.
    reads = statement.lstrip(" \n(").startswith(("SELECT", "WITH", "SHOW", "DESCRIBE"))
    if connection.get_execution_options().get(BEGIN) == READ and not reads:
        raise InvalidRequestError(f"cannot execute {statement.split(maxsplit=1)[0]} in a read-only transaction")


def _roll_back(dbapi_connection: Any) -> None:
    if dbapi_connection.server_status & _IN_TRANSACTION:
        dbapi_connection.rollback()


def _give_up_useless(context: ExceptionContext) -> None:
    # As if it were lost: SQLAlchemy then makes all older connections of the pool anew, and oslo.db says what Database repeats.
    connection = context.connection
    writing = connection is not None and not connection.get_execution_options().get("postgresql_readonly")
    if faults.is_of_no_use(context.original_exception, writing):
        context.is_disconnect = True


def _set_pragmas(dbapi_connection: Any, _record: Any) -> None:
    # The time-out first: switching to WAL takes a lock.
    dbapi_connection.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_MILLISECONDS}")
    dbapi_connection.execute("PRAGMA journal_mode = WAL")
    # A page of candidates of a large fleet lies all over the file; 2 MiB, which is usual, hold little of it.
    dbapi_connection.execute(f"PRAGMA cache_size = -{SQLITE_CACHE_KIBIBYTES}")
    # oslo.db turns it off afterwards where [database] sqlite_synchronous is false.
    dbapi_connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: Connection) -> None:
    # Runs before oslo.db's own listener, which sends a plain BEGIN unless this mark is set. A plain BEGIN that reads and then
    # writes fails at once with "database is locked" beside another writer, whatever the time-out.
    # Past SQLAlchemy, which takes 0.04 to 0.1 ms for it: so "locked" comes out as sqlite3's own error.
    kind = connection.get_execution_options().get(BEGIN, "DEFERRED")
    connection.connection.cursor().execute(f"BEGIN {kind}")
    connection.info["in_transaction"] = True


def reader(engine: Engine) -> Engine:
    """The engine of transactions that only read; end them with :func:`end_read`."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(postgresql_readonly=True)
    return engine.execution_options(**{BEGIN: READ}) if engine.driver == "pymysql" else engine


def end_read(conn: Connection) -> None:
    """Let go of what a read has seen. Where that is not said, the connection's pool rolls back.

    psycopg forgets all statements that it prepared at each ROLLBACK, and PostgreSQL would plan every one anew: twice as long as
    it needs to run a page of candidates. A transaction that may not write can be committed as well.
    """
    if conn.dialect.name == "postgresql":
        conn.commit()


def is_memory(engine: Engine) -> bool:
    """Whether all threads share the one connection of an in-memory SQLite database."""
    return isinstance(engine.pool, pool.StaticPool)


def writer(engine: Engine) -> Engine:
    """The same engine and pool; its transactions take SQLite's write lock at once."""
    return engine.execution_options(**{BEGIN: "IMMEDIATE"}) if engine.dialect.name == "sqlite" else engine


def committing(engine: Engine) -> Engine:
    """The same engine and pool; each statement is a transaction by itself, which spares the round trips of BEGIN and COMMIT.

    Not so of SQLite, where a transaction costs nothing.
    """
    if engine.driver == "psycopg":
        return engine.execution_options(isolation_level="AUTOCOMMIT")
    return engine.execution_options(**{BEGIN: NONE}) if engine.driver == "pymysql" else engine
