"""MariaDB of the test run."""

from __future__ import annotations

import getpass
import shutil
import subprocess
import uuid
from importlib import util
from pathlib import Path

from tests.rig.daemon import Daemon, Server
from tests.rig.run import Run
from tests.rig.waiting import wait_for

try:
    import pymysql
except ImportError:
    pymysql = None  # type: ignore[assignment]  # missing() tells

_PATH = "/usr/sbin:/sbin:/usr/libexec:/usr/local/sbin:/usr/local/bin:/usr/bin:/bin"


class MariaDB(Server):
    """The server, run as the present user (root too)."""

    name = "mariadb"
    ports_needed = 1

    def __init__(self, run: Run, folder: Path, ports: tuple[int, ...]) -> None:
        self.folder = folder
        self.ports = ports
        self._data = folder / "data"
        self._accounts = folder / "accounts.sql"
        self.daemon = Daemon(run, self.name, self._command(), log=folder / "mariadb.log")

    @staticmethod
    def missing() -> str:
        if not (_program("mariadbd") and _program("mariadb-install-db")):
            return "the MariaDB server is not installed"
        if util.find_spec("pymysql") is None:
            return "the Python package PyMySQL is not installed"
        return ""

    def start(self) -> None:
        """Returns when it accepts connections. On the same port and data after :meth:`stop` or :meth:`kill`."""
        if not self._data.exists():
            self._initialise()
        self.daemon.start()
        wait_for(self._answers, 90, f"MariaDB on port {self.ports[0]}", ignore=(pymysql.err.OperationalError,))

    def create_database(self) -> str:
        """SQLAlchemy's URL of a new, empty database."""
        name = f"t_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        return f"mysql+pymysql://rig:rig@127.0.0.1:{self.ports[0]}/{name}?charset=utf8mb4"

    def drop_database(self, url: str) -> None:
        """Ends the connections of those that left one open first: a transaction of theirs would block the drop."""
        name = url.rsplit("/", 1)[1].partition("?")[0]
        for (thread,) in self._execute(f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"):  # noqa: S608
            self._execute(f"KILL {thread}", tolerate=1094)
        self._execute(f"DROP DATABASE IF EXISTS `{name}`")

    def _command(self) -> list[str]:
        settings = {
            "user": getpass.getuser(),
            "datadir": self._data,
            "socket": self.folder / "socket",
            "pid-file": self.folder / "pid",
            "port": self.ports[0],
            "bind-address": "127.0.0.1",
            "init-file": self._accounts,
            "max-connections": 300,
            # Speed instead of safety from power loss. With 2 a commit still reaches the kernel before it is acknowledged,
            # so that the server's own crash loses nothing: the tests of faults depend on it.
            "innodb-flush-log-at-trx-commit": 2,
            "innodb-log-file-size": "32M",
            "innodb-buffer-pool-size": "64M",
            "innodb-doublewrite": 0,
        }
        words = [f"--{key}={value}" for key, value in settings.items()]
        return [_program("mariadbd"), "--no-defaults", *words, "--skip-name-resolve"]

    def _initialise(self) -> None:
        self._accounts.write_text(
            "CREATE USER IF NOT EXISTS 'rig'@'%' IDENTIFIED BY 'rig';\nGRANT ALL ON *.* TO 'rig'@'%' WITH GRANT OPTION;\n"
        )
        words = [f"--datadir={self._data}", f"--user={getpass.getuser()}", "--auth-root-authentication-method=normal"]
        subprocess.run(
            [_program("mariadb-install-db"), "--no-defaults", *words, "--skip-test-db"], check=True, capture_output=True
        )

    def _answers(self) -> bool:
        self.daemon.must_run()
        self._execute("SELECT 1")
        return True

    def _execute(self, statement: str, tolerate: int = 0) -> tuple[tuple[object, ...], ...]:
        connection = pymysql.connect(
            host="127.0.0.1", port=self.ports[0], user="rig", password="rig", autocommit=True, connect_timeout=10
        )
        with connection, connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except pymysql.err.MySQLError as error:
                if error.args[0] != tolerate:
                    raise
                return ()
            return tuple(cursor.fetchall())


def _program(name: str) -> str:
    return shutil.which(name) or shutil.which(name, path=_PATH) or ""
