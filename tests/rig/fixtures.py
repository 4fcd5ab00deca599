"""The fixtures, and how a run begins and ends them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig import programs
from tests.rig.daemon import Daemon
from tests.rig.etcd import Etcd
from tests.rig.mariadb import MariaDB
from tests.rig.postgresql import PostgreSQL
from tests.rig.rabbitmq import RabbitMQ
from tests.rig.run import Run, S

_RUN = pytest.StashKey[Run]()
_MISSING = re.compile(r"service missing: (\S+)")


def pytest_configure(config: pytest.Config) -> None:
    programs.watch()
    handed = getattr(config, "workerinput", {}).get("rig")
    config.stash[_RUN] = Run(Path(handed)) if handed else Run.begin()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist starts a worker: it shares the controller's run."""
    node.workerinput["rig"] = str(node.config.stash[_RUN].folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _RUN in config.stash:
        config.stash[_RUN].end()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A skipped test is easily overlooked; a run without its services proves little, so say it aloud."""
    skipped: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        if found := _MISSING.search(str(report.longrepr)):
            skipped[found[1].rstrip(":")] += 1
    if skipped:
        counts = ", ".join(f"{name} ({count} tests skipped)" for name, count in sorted(skipped.items()))
        terminalreporter.write_line(f"services missing: {counts}", yellow=True, bold=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Fails a test that ran what a new machine does not have."""
    unknown = programs.take_unknown()
    assert not unknown, f"tools/install-services names no package that brings {', '.join(unknown)}"


def require(name: str, missing: str) -> None:
    """Skip the test, or fail it when the environment variable LBAAS_TEST_REQUIRE_SERVICES is 1, if something is missing."""
    if not missing:
        return
    if os.environ.get("LBAAS_TEST_REQUIRE_SERVICES") == "1":
        pytest.fail(f"service missing: {name}: {missing}", pytrace=False)
    pytest.skip(f"service missing: {name}: {missing}")


@pytest.fixture(scope="session")
def rig(pytestconfig: pytest.Config) -> Run:
    """This run: its folder, and ways to get at services."""
    return pytestconfig.stash[_RUN]


@pytest.fixture
def spawn(rig: Run, tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Starts processes of the test's own: ``spawn("server-1", [command, ...], environment={...})``; ended after the test."""
    started: list[Daemon] = []

    def start(name: str, command: list[str], **options: Any) -> Daemon:
        daemon = Daemon(rig, name, command, log=options.pop("log", tmp_path / f"{name}.log"), **options)
        started.append(daemon)
        daemon.start()
        return daemon

    yield start
    for daemon in reversed(started):
        daemon.stop()


def _shared(rig: Run, kind: type[S]) -> S:
    require(kind.name, kind.missing())
    return rig.shared(kind)


def _own(rig: Run, kind: type[S]) -> Iterator[S]:
    require(kind.name, kind.missing())
    service = rig.private(kind, f"own-{kind.name}")
    service.start()
    yield service
    service.end()


@pytest.fixture(scope="session")
def rabbitmq_server(rig: Run) -> RabbitMQ:
    """The run's broker. Others use it too: do not stop it, take ``own_rabbitmq`` for that."""
    return _shared(rig, RabbitMQ)


@pytest.fixture(scope="session")
def postgresql_server(rig: Run) -> PostgreSQL:
    """The run's server. Others use it too: do not stop it, take ``own_postgresql`` for that."""
    return _shared(rig, PostgreSQL)


@pytest.fixture(scope="session")
def mariadb_server(rig: Run) -> MariaDB:
    """The run's server. Others use it too: do not stop it, take ``own_mariadb`` for that."""
    return _shared(rig, MariaDB)


@pytest.fixture(scope="session")
def etcd_server(rig: Run) -> Etcd:
    """The run's etcd. Others use it too: do not stop it, take ``own_etcd`` for that."""
    return _shared(rig, Etcd)


@pytest.fixture
def own_rabbitmq(rig: Run) -> Iterator[RabbitMQ]:
    """A broker that this test alone uses, to ``stop()``, ``kill()`` and ``start()`` again."""
    yield from _own(rig, RabbitMQ)


@pytest.fixture
def own_postgresql(rig: Run) -> Iterator[PostgreSQL]:
    """A server that this test alone uses, to ``stop()``, ``kill()`` and ``start()`` again."""
    yield from _own(rig, PostgreSQL)


@pytest.fixture
def own_mariadb(rig: Run) -> Iterator[MariaDB]:
    """A server that this test alone uses, to ``stop()``, ``kill()`` and ``start()`` again."""
    yield from _own(rig, MariaDB)


@pytest.fixture
def own_etcd(rig: Run) -> Iterator[Etcd]:
    """An etcd that this test alone uses, to ``stop()``, ``kill()`` and ``start()`` again."""
    yield from _own(rig, Etcd)


@pytest.fixture
def rabbitmq_url(rabbitmq_server: RabbitMQ) -> Iterator[str]:
    """Transport URL of an empty virtual host that only this test uses."""
    url = rabbitmq_server.create_vhost()
    yield url
    rabbitmq_server.delete_vhost(url)


@pytest.fixture
def postgresql_url(postgresql_server: PostgreSQL) -> Iterator[str]:
    """URL of an empty PostgreSQL database that only this test uses."""
    url = postgresql_server.create_database()
    yield url
    postgresql_server.drop_database(url)


@pytest.fixture
def mariadb_url(mariadb_server: MariaDB) -> Iterator[str]:
    """URL of an empty MariaDB database that only this test uses."""
    url = mariadb_server.create_database()
    yield url
    mariadb_server.drop_database(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """URL of an SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'lbaas.sqlite'}"


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def empty_database_url(request: pytest.FixtureRequest) -> str:
    """The test runs once on each database, empty each time. With tables: ``database_url`` of tests/tables.py.

    For some of them: ``@pytest.mark.parametrize("empty_database_url", ["postgresql", "mariadb"], indirect=True)``.
    """
    return request.getfixturevalue(f"{request.param}_url")
