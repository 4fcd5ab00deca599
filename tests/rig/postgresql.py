"""PostgreSQL of the test run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import uuid
from importlib import util
from pathlib import Path

from tests.rig.daemon import Daemon, Server
from tests.rig.run import Run
from tests.rig.waiting import wait_for

try:
    import psycopg
except ImportError:
    psycopg = None  # type: ignore[assignment]  # missing() tells

_SETTINGS = {
    # Speed instead of safety from power loss. A commit still reaches the kernel before it is acknowledged, so that the
    # server's own crash loses nothing: the tests of faults depend on it (hence synchronous_commit stays on).
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
}


class PostgreSQL(Server):
    """The server. PostgreSQL refuses to run as root; then it runs as Debian's user ``postgres``."""

    name = "postgresql"
    ports_needed = 1

    def __init__(self, run: Run, folder: Path, ports: tuple[int, ...]) -> None:
        self.folder = folder
        self.ports = ports
        self._data = folder / "data"
        self._user = "postgres" if os.getuid() == 0 else ""
        settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
        self.daemon = Daemon(
            run,
            self.name,
            [_program("postgres"), "-D", str(self._data), "-p", str(ports[0]), "-k", str(folder), *settings],
            log=folder / "postgresql.log",
            user=self._user,
            stop_signal=signal.SIGINT,  # "fast shutdown": does not wait for clients to leave
            end_signal=signal.SIGQUIT,  # "immediate shutdown": SIGKILL would leave a segment of shared memory behind
        )

    @staticmethod
    def missing() -> str:
        if not _program("postgres"):
            return "PostgreSQL's server programs are not installed"
        if util.find_spec("psycopg") is None:
            return "the Python package psycopg is not installed"
        return ""

    def start(self) -> None:
        """Returns when it accepts connections. On the same port and data after :meth:`stop` or :meth:`kill`."""
        if not self._data.exists():
            self._initialise()
        self.daemon.start()
        wait_for(self._answers, 60, f"PostgreSQL on port {self.ports[0]}", ignore=(psycopg.OperationalError,))

    def kill(self) -> None:
        """As a crash does it, as far as that can be: killed, it would leave a segment of shared memory behind."""
        self.daemon.signal(signal.SIGQUIT)
        self.daemon.wait(30)

    def end(self) -> None:
        """In an orderly way: killed, it would leave a segment of shared memory behind."""
        self.stop()

    def create_database(self) -> str:
        """SQLAlchemy's URL of a new, empty database."""
        name = f"t_{uuid.uuid4().hex}"
        self._execute(f'CREATE DATABASE "{name}"')
        return f"postgresql+psycopg://rig@127.0.0.1:{self.ports[0]}/{name}"

    def drop_database(self, url: str) -> None:
        """Even if somebody is still connected."""
        self._execute(f'DROP DATABASE IF EXISTS "{url.rsplit("/", 1)[1]}" WITH (FORCE)')

    def _initialise(self) -> None:
        if self._user:
            shutil.chown(self.folder, self._user, self._user)
        words = ["-D", str(self._data), "-U", "rig", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"]
        identity = {"user": self._user, "group": self._user, "extra_groups": []} if self._user else {}
        subprocess.run([_program("initdb"), *words], check=True, capture_output=True, cwd="/", **identity)

    def _answers(self) -> bool:
        self.daemon.must_run()
        self._execute("SELECT 1")
        return True

    def _execute(self, statement: str) -> None:
        with psycopg.connect(
            host="127.0.0.1", port=self.ports[0], user="rig", dbname="postgres", autocommit=True, connect_timeout=10
        ) as connection:
            connection.execute(statement)  # type: ignore[arg-type]  # wants a literal; ours holds a name of our making


def _program(name: str) -> str:
    """Debian keeps the server's programs out of the PATH, one folder per version; the newest is taken."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])) or ""
