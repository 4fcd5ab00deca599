from __future__ import annotations

import random
import threading
import time
from dataclasses import replace

import pytest

from lbaas_scheduler.agent import dispatcher
from lbaas_scheduler.agent.changes import Change
from lbaas_scheduler.devices.secrets import Vault, generate_key
from lbaas_scheduler.domain.deployments import Result, Version
from lbaas_scheduler.domain.devices import Management
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.rpc.server_api import Desired, Operation
from tests.agent_side import deployment, device, sealed
from tests.rig.waiting import wait_for


def apply(vip_id, epoch=1, revision=1):
    return Change.apply(deployment(vip_id, epoch, revision))


def hold_first(driver, release, call="apply"):
    """The first ``call`` of the driver waits for ``release``; returns an event that tells when it is inside."""
    inside = threading.Event()

    def before(name, _device_id):
        if name == call and not inside.is_set():
            inside.set()
            assert release.wait(30)

    driver.before = before
    return inside


def test_a_change_is_applied_and_reported(bench):
    one = bench.synced(sealed(device()))
    bench.workers.offer(one, [apply("v1")])
    assert wait_for(lambda: bench.last("v1")) == Result("v1", Version(1, 1))
    assert bench.stub.content["d1"] == {"v1": Version(1, 1)}


def test_what_comes_during_a_call_goes_into_one_next_call_with_the_newest_of_each_vip(bench, release):
    one = bench.synced(sealed(device()))
    inside = hold_first(bench.stub, release)
    bench.workers.offer(one, [apply("v0")])
    assert inside.wait(10)
    for revision in range(1, 21):
        bench.workers.offer(one, [apply("v1", revision=revision)])
    bench.workers.offer(one, [apply("v2")])
    release.set()
    assert wait_for(lambda: bench.last("v1")) == Result("v1", Version(1, 20))
    assert [set(ids) for ids in bench.stub.called("apply")] == [{"v0"}, {"v1", "v2"}]


def test_removals_go_before_applies_so_that_an_address_is_free(bench, release):
    one = bench.synced(sealed(device()))
    inside = hold_first(bench.stub, release)
    bench.workers.offer(one, [apply("old")])
    assert inside.wait(10)
    bench.workers.offer(one, [apply("new"), Change.remove("old", Version(1, 2))])
    release.set()
    assert wait_for(lambda: bench.last("new"))
    assert [name for name, _, _ in bench.stub.calls] == ["apply", "remove", "apply"]
    assert bench.last("old") == Result("old", Version(1, 2), removed=True)


def test_a_stale_epoch_changes_nothing(bench):
    one = bench.synced(sealed(device()))
    bench.workers.offer(one, [apply("v1", 3, 1)])
    wait_for(lambda: bench.last("v1"))
    bench.workers.offer(one, [apply("v1", 2, 50), Change.remove("v1", Version(2, 51))])
    bench.workers.offer(one, [apply("v2")])
    wait_for(lambda: bench.last("v2"))
    assert bench.stub.content["d1"]["v1"] == Version(3, 1)
    assert not bench.stub.called("remove")


@pytest.mark.parametrize("seed", range(5))
def test_fifty_parallel_creates_and_deletes_of_one_vip_end_in_the_last_state(bench, seed):
    one = bench.synced(sealed(device()))
    changes = [apply("v1", 1, n) if n % 2 else Change.remove("v1", Version(1, n)) for n in range(1, 51 + seed % 2)]
    random.Random(seed).shuffle(changes)
    threads = [threading.Thread(target=bench.workers.offer, args=(one, [change])) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = max(changes, key=lambda change: change.version)
    wait_for(lambda: bench.last("v1") and bench.last("v1").version == last.version)
    expected = {"v1": last.version} if last.deployment else {}
    assert bench.stub.content["d1"] == expected
    assert bench.stub.overlaps == 0
    assert all(result.ok for _, result in bench.results)


def test_a_device_that_hangs_delays_no_other_and_gets_no_second_call(bench, release):
    bench.timeout_seconds = 0.3
    slow, quick = bench.synced(sealed(device("slow"))), bench.synced(sealed(device("quick")))
    inside = hold_first(bench.stub, release)
    bench.workers.offer(slow, [apply("v1")])
    assert inside.wait(10)
    bench.workers.offer(quick, [apply("v2")])
    assert wait_for(lambda: bench.last("v2"), 5).ok
    assert wait_for(lambda: bench.last("v1"), 5).error == "The device did not answer within 0.3 seconds."
    bench.workers.offer(slow, [apply("v1", revision=2), apply("v3")])
    assert wait_for(lambda: bench.last("v3"), 5).error
    assert bench.workers.ask(slow, lambda driver, on: driver.read_stats(on)).exception().message.startswith("The device did not")
    assert len(bench.stub.called("apply", "slow")) == 1
    release.set()
    assert wait_for(lambda: bench.last("v3").ok, 5)
    assert bench.last("v1") == Result("v1", Version(1, 2))
    assert bench.stub.overlaps == 0


def test_a_question_that_waits_behind_a_hanging_call_fails_with_it(bench, release):
    bench.timeout_seconds = 0.3
    one = bench.synced(sealed(device()))
    inside = hold_first(bench.stub, release)
    bench.workers.offer(one, [apply("v1")])
    assert inside.wait(10)
    answer = bench.workers.ask(one, lambda driver, on: driver.list_deployed(on))
    assert isinstance(answer.exception(timeout=5), DriverError)


def test_slow_devices_leave_room_for_others(bench, release, monkeypatch):
    monkeypatch.setattr(dispatcher, "SLOW_SECONDS", 0.2)
    bench.stub.before = lambda _call, device_id: device_id.startswith("slow") and release.wait(30)
    for number in range(dispatcher.MAX_CALLS + 4):
        bench.workers.offer(bench.synced(sealed(device(f"slow{number}"))), [apply(f"s{number}")])
    bench.workers.offer(bench.synced(sealed(device("quick"))), [apply("v")])
    assert wait_for(lambda: bench.last("v"), 10).ok


def test_five_hundred_devices_need_few_threads_and_none_when_idle(bench):
    before = threading.active_count()
    most = []
    bench.stub.before = lambda _call, _device_id: most.append(threading.active_count())
    for number in range(500):
        bench.workers.offer(bench.synced(sealed(device(f"d{number}"))), [apply(f"v{number}")])
    wait_for(lambda: len(bench.results) == 500)
    assert max(most) <= before + dispatcher.MAX_CALLS + 5  # those that have finished and not ended yet
    wait_for(lambda: threading.active_count() == before)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DriverError("The device is full.", operator_message="slot table 7 at 10.0.0.9 is full"), "The device is full."),
        (RuntimeError("secret detail"), "The device driver failed unexpectedly."),
        (SystemExit(3), "The device driver failed unexpectedly."),
    ],
)
def test_what_a_driver_raises_becomes_a_result_and_the_worker_goes_on(bench, error, text):
    one = bench.synced(sealed(device()))

    def fail(_call, _device_id):
        bench.stub.before = lambda *_: None
        raise error

    bench.stub.before = fail
    bench.workers.offer(one, [apply("v1")])
    assert wait_for(lambda: bench.last("v1")).error == text
    bench.workers.offer(one, [apply("v1", revision=2)])
    assert wait_for(lambda: bench.last("v1").ok)


def test_a_result_that_the_driver_forgot_is_an_error_and_an_unknown_one_is_dropped(bench):
    one = bench.synced(sealed(device()))
    bench.stub.apply = lambda *_: [Result("v1", Version(0, 0)), Result("stranger", Version(1, 1))]
    bench.workers.offer(one, [apply("v1"), apply("v2")])
    assert "did not say" in wait_for(lambda: bench.last("v2")).error
    assert bench.last("v1") == Result("v1", Version(1, 1))
    assert bench.last("stranger") is None


def test_a_type_without_a_driver_is_reported_as_such(bench):
    bench.workers.offer(sealed(device(device_type="f5")), [apply("v1")])
    assert bench.last("v1").error == "The agent has no driver for devices of type f5."
    with pytest.raises(DriverError, match="f5"):
        bench.workers.ask(sealed(device(device_type="f5")), lambda *_: None).result(1)


def test_the_driver_gets_the_opened_secret_and_nobody_else_does(bench, caplog):
    caplog.set_level("DEBUG")
    token = bench.vault.seal({"password": "s3cret"})
    one = bench.synced(sealed(device(management=Management("10.0.0.9")), token))
    bench.workers.offer(one, [apply("v1")])
    wait_for(lambda: bench.last("v1"))
    assert bench.stub.seen[-1].management.secret == {"password": "s3cret"}
    assert not bench.workers.held()["d1"].device.management.secret
    assert "s3cret" not in caplog.text


def test_a_secret_sealed_with_a_foreign_key_is_a_clear_result(bench):
    token = Vault([generate_key()]).seal({"password": "s3cret"})
    one = bench.synced(sealed(device(), token))
    bench.workers.offer(one, [apply("v1")])
    assert wait_for(lambda: bench.last("v1")).error == "The agent's configuration does not allow to reach the device."
    assert not bench.stub.calls


def test_a_newer_description_of_a_device_replaces_an_older_one_and_not_the_other_way(bench):
    new = device(management=Management("10.0.0.2"), generation=2)
    bench.synced(sealed(new))
    bench.workers.offer(sealed(replace(new, management=Management("10.0.0.1"), generation=1)), [apply("v1")])
    wait_for(lambda: bench.last("v1"))
    assert bench.stub.seen[-1].management.address == "10.0.0.2"


def test_casts_for_an_unknown_device_wait_for_its_resync(bench):
    one = sealed(device())
    bench.workers.offer(one, [apply("v1", 1, 3), apply("stale", 1, 3), apply("gone", 1, 3)])
    assert bench.wanted == ["d1"]
    as_of = bench.workers.ticket()
    bench.workers.offer(one, [apply("later")])
    lines = [Desired("v1", 1, 3, Operation.APPLY), Desired("stale", 1, 4, Operation.APPLY)]
    rest = bench.workers.adopt("d1", lines, as_of)
    assert [line.vip_id for line in rest] == ["stale"]
    wait_for(lambda: bench.last("v1"))
    assert set(bench.stub.content["d1"]) == {"v1"}
    bench.workers.adopt("d1", [*lines, Desired("later", 1, 1, Operation.APPLY)], bench.workers.ticket())
    wait_for(lambda: bench.last("later"))
    assert set(bench.stub.content["d1"]) == {"v1", "later"}


def test_casts_for_a_device_that_cannot_be_read_are_reported(bench):
    bench.workers.offer(sealed(device()), [apply("v1")])
    bench.workers.fail_waiting("d1", "The device is off.")
    assert bench.last("v1").error == "The device is off."


def test_a_retired_device_is_forgotten_unless_a_cast_came_since(bench):
    one = bench.synced(sealed(device()))
    as_of = bench.workers.ticket()
    bench.workers.offer(one, [apply("v1")])
    assert bench.workers.retire("d1", as_of, lambda driver, on: driver.forget(on)) is None
    wait_for(lambda: bench.last("v1"))
    bench.workers.retire("d1", bench.workers.ticket(), lambda driver, on: driver.forget(on)).result(5)
    assert bench.stub.called("forget") == [()]
    wait_for(lambda: not bench.workers.held())


def test_stop_waits_for_what_runs_and_begins_nothing_more(bench, release):
    one = bench.synced(sealed(device()))
    inside = hold_first(bench.stub, release)
    bench.workers.offer(one, [apply("v1")])
    assert inside.wait(10)
    bench.workers.offer(one, [apply("v2")])
    threading.Timer(0.2, release.set).start()
    assert bench.workers.stop(time.monotonic() + 10)
    assert bench.last("v1").ok
    assert bench.last("v2") is None
    assert bench.stub.called("apply") == [("v1",)]


def test_stop_does_not_wait_for_ever(bench, release):
    one = bench.synced(sealed(device()))
    inside = hold_first(bench.stub, release)
    bench.workers.offer(one, [apply("v1")])
    assert inside.wait(10)
    began = time.monotonic()
    assert not bench.workers.stop(began + 0.3)
    assert time.monotonic() - began < 2


def test_a_host_that_grants_no_thread_for_a_while_costs_a_while_only(bench, monkeypatch, caplog):
    monkeypatch.setattr(dispatcher, "RETRY_SECONDS", 0.05)
    start, refused = threading.Thread.start, []

    def scarce(thread):
        if thread.name.startswith("device-") and len(refused) < 5:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    bench.workers.offer(bench.synced(sealed(device("d1"))), [apply("v1")])
    bench.workers.offer(bench.synced(sealed(device("d2"))), [apply("v2")])
    assert wait_for(lambda: bench.last("v1")).ok
    assert wait_for(lambda: bench.last("v2")).ok
    assert len(refused) == 5
    assert caplog.text.count("no thread can be started") == 1
