"""Everything breaks, in an order that a seed draws; when it is whole again, nothing is stuck and nothing is lost.

``LBAAS_TEST_SEED`` repeats a run's faults and choices; ``LBAAS_TEST_CHAOS_SECONDS`` sets its length.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.functional.chaos.run import Outcome, run
from tests.functional.chaos.site import Stores, running
from tests.rig.daemon import Daemon

SOAK = os.environ.get("LBAAS_TEST_SOAK") == "1"
SECONDS = float(os.environ.get("LBAAS_TEST_CHAOS_SECONDS", "300" if SOAK else "30"))
SEED = os.environ.get("LBAAS_TEST_SEED") or (str(random.SystemRandom().randrange(10**6)) if SOAK else "1")
STORES = ["postgresql", "mariadb", "postgresql+etcd"] if SOAK else ["mariadb", "postgresql+etcd"]

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(SECONDS + 1200),
    # kombu leaves the sockets of connections that were cut to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, unlike tmp_path."""
    with tempfile.TemporaryDirectory(prefix="lbs-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture(params=STORES)
def stores(request: pytest.FixtureRequest) -> Stores:
    database, _, etcd = request.param.partition("+")
    server = request.getfixturevalue(f"own_{database}")
    broker = request.getfixturevalue("own_rabbitmq")
    return Stores(broker, server, server.create_database(), request.getfixturevalue("own_etcd") if etcd else None)


def test_nothing_is_stuck_and_nothing_is_lost_after_whatever_breaks(
    spawn: Callable[..., Daemon], folder: Path, tmp_path: Path, stores: Stores
) -> None:
    with running(spawn, folder, stores) as site:
        outcome = run(site, SEED, SECONDS)
    report = _report(outcome, tmp_path)
    print(report)
    assert not outcome.violations, report


def _report(outcome: Outcome, logs: Path) -> str:
    lines = [f"LBAAS_TEST_SEED={SEED} LBAAS_TEST_CHAOS_SECONDS={SECONDS:g}; logs of the processes: {logs}"]
    lines += [*outcome.log, *outcome.facts, f"{len(outcome.violations)} violations:", *outcome.violations]
    return "\n".join(lines)
