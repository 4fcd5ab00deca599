"""Sixteen processes with kills: no value twice, none lost, and nothing left to repair."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from lbaas_scheduler.domain.clock import utcnow
from tests.allocator_side import SHARED, V, X, new_allocator, open_store, url_of
from tests.functional.allocator import chaos

ROOT = Path(__file__).parents[3]
SOAK = os.environ.get("LBAAS_TEST_SOAK") == "1"
PROCESSES, OPERATIONS, KILL_SECONDS = (16, 100_000, 1.0) if SOAK else (16, 640, 0.3)
SIZE = 4_000


@pytest.mark.soak
@pytest.mark.timeout(14_400 if SOAK else 180)
@pytest.mark.parametrize("store", SHARED)
def test_processes_that_are_killed_leave_no_value_twice_and_none_lost(store, request, tmp_path):
    url = url_of(store, request, tmp_path)
    driver = open_store(url)
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": f"1-{SIZE}"})
    allocator.define(X, {"range": f"1-{SIZE}"})

    words = [url, str(tmp_path), str(PROCESSES), str(OPERATIONS), str(KILL_SECONDS)]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.functional.allocator.chaos", *words],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["kills"] > 0

    judge(allocator, list(chaos.entries(tmp_path)), told["lives"])
    driver.close()


def judge(allocator, entries, lives):
    got = {entry[1]: tuple(entry[2:]) for entry in entries if entry[0] == "got"}
    leaving = {entry[1] for entry in entries if entry[0] == "releasing"}
    left = {entry[1] for entry in entries if entry[0] == "released"}
    assert got.keys() >= left

    present = {grant.id: grant for grant in allocator.list() if not grant.part}
    lost = got.keys() - leaving - present.keys()
    assert lost == set(), "acknowledged, never given back, and not there"
    assert left & present.keys() == set(), "given back, and still there"
    told = {id_: (grant.kind, grant.value, grant.generation, grant.owner.id) for id_, grant in present.items() if id_ in got}
    assert told == {id_: got[id_] for id_ in told}
    # Each life may end within one operation, whose answer nobody wrote down: at most four values, or a parent with its child.
    children = {id_ for id_, grant in present.items() if grant.kind == "vxlan"}
    assert len(present.keys() - got.keys() - children) <= 4 * lives
    assert repeated(allocator) == []

    alive = {got[id_][3] for id_ in got.keys() - leaving}
    later = new_allocator(allocator.driver, lambda: utcnow() + timedelta(seconds=2 * chaos.HOLD_SECONDS))
    for _ in range(2):  # missing once is not enough
        report = later.reconcile(lambda owner: owner.id in alive, dry_run=False, grace_seconds=0)
    assert report.failed == []
    assert allocator.check() == []
    after = allocator.list()
    assert {grant.owner.id for grant in after} <= alive, "a value that leaked"
    assert got.keys() - leaving <= {grant.id for grant in after}, "a value that was taken from its owner"
    for selector in (V, X):
        usage = allocator.usage(selector)
        assert usage.used + usage.free + usage.quarantined == usage.total == SIZE

    # And all of it can be given back.
    ids = [grant.id for grant in after if not grant.part]
    for start in range(0, len(ids), 5):
        allocator.release_many(ids[start : start + 5])
    assert allocator.list() == []


def repeated(allocator):
    """Values that are there twice."""
    values = Counter((grant.kind, grant.part, grant.value) for grant in allocator.list())
    return [value for value, count in values.items() if count > 1]
