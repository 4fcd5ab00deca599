"""A cast that is older than what is known changes nothing, and is answered."""

from __future__ import annotations

import threading

import pytest

from lbaas_scheduler.agent.changes import Change
from lbaas_scheduler.domain.deployments import Result, Version
from lbaas_scheduler.rpc.server_api import Desired, Operation
from tests.agent_side import deployment, device, sealed
from tests.rig.waiting import wait_for


def apply(vip_id, epoch=1, revision=1):
    return Change.apply(deployment(vip_id, epoch, revision))


@pytest.fixture
def one(bench):
    return bench.synced(sealed(device()))


@pytest.mark.parametrize("stale", [apply("v1", 2, 50), Change.remove("v1", Version(2, 51)), apply("v1", 3, 0)])
def test_it_is_answered_with_what_is_there(bench, one, stale):
    bench.workers.offer(one, [apply("v1", 3, 1)])
    wait_for(lambda: bench.last("v1"))
    bench.workers.offer(one, [stale])
    assert bench.results == [("d1", Result("v1", Version(3, 1)))] * 2
    assert (bench.stub.content["d1"], bench.wanted) == ({"v1": Version(3, 1)}, [])


def test_it_is_answered_with_the_removal_that_outranks_it(bench, one):
    bench.workers.offer(one, [apply("v1", 1, 1)])
    bench.workers.offer(one, [Change.remove("v1", Version(3, 2))])
    wait_for(lambda: bench.last("v1") == Result("v1", Version(3, 2), removed=True))
    said = len(bench.results)
    bench.workers.offer(one, [apply("v1", 3, 1)])
    assert bench.results[said:] == [("d1", Result("v1", Version(3, 2), removed=True))]


def test_it_is_answered_with_the_failure_that_was_the_last_word(bench, one):
    bench.stub.before = lambda *_: (_ for _ in ()).throw(RuntimeError("broken"))
    bench.workers.offer(one, [apply("v1", 3, 1)])
    failed = wait_for(lambda: bench.last("v1"))
    assert failed.error
    bench.workers.offer(one, [apply("v1", 2, 1)])
    assert bench.results == [("d1", failed)] * 2


def test_what_is_known_from_a_list_alone_is_looked_at_once(bench):
    one = sealed(device())
    bench.workers.hold(one)
    bench.workers.adopt("d1", [Desired("v1", 3, 1, Operation.APPLY)], bench.workers.ticket())
    bench.workers.offer(one, [apply("v1", 2, 9)])
    assert (bench.wanted, bench.results) == (["d1"], [])
    bench.workers.adopt("d1", [Desired("v1", 2, 9, Operation.APPLY)], bench.workers.ticket())
    bench.workers.offer(one, [apply("v1", 2, 9)])
    assert wait_for(lambda: bench.last("v1")) == Result("v1", Version(2, 9))
    assert bench.wanted == ["d1"]


def test_while_the_newer_one_is_under_way_its_own_result_is_the_answer(bench, one):
    inside, release = threading.Event(), threading.Event()

    def before(*_ignored):
        inside.set()
        assert release.wait(30)

    bench.stub.before = before
    bench.workers.offer(one, [apply("v1", 3, 1)])
    assert inside.wait(10)
    bench.workers.offer(one, [apply("v1", 2, 1)])
    bench.workers.offer(one, [apply("v2", 3, 1)])
    bench.workers.offer(one, [apply("v2", 2, 1)])
    assert (bench.results, bench.wanted) == ([], [])
    release.set()
    wait_for(lambda: bench.last("v2"))
    assert sorted(result.vip_id for _, result in bench.results) == ["v1", "v2"]


def test_many_copies_of_what_runs_cost_nothing(bench, one):
    inside, release = threading.Event(), threading.Event()

    def before(*_ignored):
        inside.set()
        assert release.wait(30)

    bench.stub.before = before
    bench.workers.offer(one, [apply("v1", 3, 1)])
    assert inside.wait(10)
    for _ in range(100):
        bench.workers.offer(one, [apply("v1", 3, 1)])
    release.set()
    bench.workers.offer(one, [apply("v2")])
    wait_for(lambda: bench.last("v2"))
    assert [result.vip_id for _, result in bench.results] == ["v1", "v2"]
    assert bench.wanted == []


def test_what_is_remembered_survives_a_comparison_that_finds_nothing_new(bench, one):
    bench.workers.offer(one, [apply("v1", 3, 1)])
    wait_for(lambda: bench.last("v1"))
    bench.workers.adopt("d1", [Desired("v1", 3, 1, Operation.APPLY)], bench.workers.ticket())
    bench.workers.offer(one, [apply("v1", 2, 1)])
    assert (len(bench.results), bench.wanted) == (2, [])
