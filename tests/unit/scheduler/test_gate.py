"""One vendor's bug costs that vendor's devices, and nothing else."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import Verdict
from lbaas_scheduler.errors import DriverError, InvalidRequest
from lbaas_scheduler.scheduler.gate import MAX_STUCK_CALLS, HandlerGate
from lbaas_scheduler.scheduler.recorder import Recorder
from tests.factories import new_device, new_request
from tests.fakes import ScriptedHandler

REQUEST = new_request("vip")


def judged(handler: ScriptedHandler, *, timeout: float = 5.0, count: int = 1) -> tuple[list[Any], Any]:
    """What a gate with a broken and a sane vendor lets through, and the trail."""
    gate = HandlerGate({"broken": handler, "sane": ScriptedHandler("sane")}, timeout)
    return ask(gate, count)


def ask(gate: HandlerGate, count: int = 1) -> tuple[list[Any], Any]:
    broken = [Candidate(new_device(f"broken-{number}", device_type="broken")) for number in range(count)]
    recorder = Recorder("", "")
    passed = gate.judge(REQUEST, [*broken, Candidate(new_device("sane", device_type="sane"))], recorder)
    return [(each.candidate.device.id, each.weight) for each in passed], recorder.trail()


def failing(error: Callable[[], Any]) -> Callable[..., Any]:
    return lambda *_: error()


def broken(**methods: Any) -> ScriptedHandler:
    return ScriptedHandler("broken", **methods)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends what hangs, so that no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (broken(is_good=lambda *_: 1 / 0), "raised ZeroDivisionError"),
        (broken(is_good=failing(lambda: sys.exit(3))), "raised SystemExit"),
        (broken(weigh=lambda *_: {}["gone"]), "raised KeyError"),
        (broken(is_good=lambda *_: "perhaps"), "returned str instead of a verdict"),
        (broken(is_good=lambda *_: None), "returned NoneType instead of a verdict"),
        (broken(is_good=lambda *_: Verdict.no("is asleep")), "is asleep"),
        (broken(is_good=lambda *_: Verdict.no("")), "gave no reason"),
        (broken(weigh=lambda *_: 1e9), "weight 1000000000.0"),
        (broken(weigh=lambda *_: float("nan")), "weight nan"),
        (broken(weigh=lambda *_: -1), "weight -1"),
        (broken(weigh=lambda *_: True), "weight True"),
        (broken(weigh=lambda *_: "50"), "weight 50"),
    ],
)
def test_a_broken_handler_excludes_its_own_devices_and_is_named(handler, words):
    passed, trail = judged(handler)
    assert passed == [("sane", 50.0)]
    assert trail.dropped == {"handler.broken": 1}
    assert words in trail.rejections[0].reason


def test_a_device_that_its_handler_stumbles_over_does_not_cost_the_vendors_other_devices():
    def stumble(device: Candidate, _: Any) -> Verdict:
        return Verdict.yes() if device.device.id != "broken-1" else {}["extra"]

    passed, trail = judged(broken(is_good=stumble), count=3)
    assert [device_id for device_id, _ in passed] == ["broken-0", "broken-2", "sane"]
    assert trail.dropped == {"handler.broken": 1}
    assert "raised KeyError" in trail.rejections[0].reason


def test_a_handler_that_sleeps_past_its_time_out_loses_its_devices_only(release):
    started = time.monotonic()
    passed, trail = judged(broken(is_good=lambda *_: release.wait(30)), timeout=0.1)
    assert passed == [("sane", 50.0)]
    assert trail.dropped == {"handler.broken": 1}
    assert "0.1 s" in trail.rejections[0].reason
    assert time.monotonic() - started < 5


def test_answers_that_came_before_the_time_out_count(release):
    slow = broken(is_good=lambda device, _: Verdict.yes() if device.device.id == "broken-0" else release.wait(30))
    passed, trail = judged(slow, timeout=0.5, count=3)
    assert passed == [("broken-0", 50.0), ("sane", 50.0)]
    assert trail.dropped == {"handler.broken": 2}


def test_a_handler_that_is_stuck_in_all_its_calls_is_not_asked_again_and_delays_nobody(release):
    asked = []

    def hang(*_: Any) -> Verdict:
        asked.append(1)
        release.wait(30)
        return Verdict.yes()

    gate = HandlerGate({"broken": broken(is_good=hang), "sane": ScriptedHandler("sane")}, 0.05)
    for _ in range(MAX_STUCK_CALLS):
        ask(gate)
    gate.timeout_seconds = 60.0
    started = time.monotonic()
    passed, trail = ask(gate)
    assert time.monotonic() - started < 5
    assert passed == [("sane", 50.0)]
    assert trail.rejections[0].reason == "the handler of broken is stuck in earlier calls"
    assert len(asked) == MAX_STUCK_CALLS


def test_any_number_of_placements_may_ask_a_handler_at_once():
    together = threading.Barrier(3 * MAX_STUCK_CALLS)
    gate = HandlerGate(
        {"broken": broken(is_good=lambda *_: Verdict(together.wait(10) >= 0)), "sane": ScriptedHandler("sane")}, 20
    )
    with ThreadPoolExecutor(3 * MAX_STUCK_CALLS) as pool:
        answers = list(pool.map(lambda _: ask(gate)[0], range(3 * MAX_STUCK_CALLS)))
    assert answers == [[("broken-0", 50.0), ("sane", 50.0)]] * 3 * MAX_STUCK_CALLS


def test_a_handler_that_is_no_longer_stuck_is_asked_again(release):
    gate = HandlerGate({"broken": broken(is_good=lambda *_: Verdict(release.wait(30))), "sane": ScriptedHandler("sane")}, 0.05)
    for _ in range(MAX_STUCK_CALLS):
        ask(gate)
    release.set()
    gate.timeout_seconds = 5.0
    deadline = time.monotonic() + 10
    while "broken-0" not in dict(ask(gate)[0]):
        assert time.monotonic() < deadline


def test_a_device_whose_handler_is_not_loaded_is_rejected_by_name():
    gate = HandlerGate({"sane": ScriptedHandler("sane")}, 1.0)
    passed, trail = ask(gate)
    assert passed == [("sane", 50.0)]
    assert trail.rejections[0].reason == "the handler of broken is not loaded"


def test_a_single_call_returns_what_the_handler_returns():
    gate = HandlerGate({"broken": broken(weigh=lambda *_: 7)}, 1.0)
    assert gate.call("broken", lambda handler: handler.weigh(Candidate(new_device()), REQUEST)) == 7


def test_a_single_call_lets_the_handler_refuse_a_request():
    def refuse(*_: Any) -> None:
        raise InvalidRequest(reason="extra.port: 70000 is not a port")

    with pytest.raises(InvalidRequest, match="70000 is not a port"):
        HandlerGate({"broken": broken()}, 1.0).call("broken", refuse)


def test_a_single_call_turns_any_other_failure_into_a_driver_error(release):
    gate = HandlerGate({"broken": broken()}, 0.05)
    with pytest.raises(DriverError, match="raised ZeroDivisionError"):
        gate.call("broken", lambda _: 1 / 0)
    with pytest.raises(DriverError, match=r"0\.05 s"):
        gate.call("broken", lambda _: release.wait(30))
    with pytest.raises(DriverError, match="no handler is loaded for device type 'absent'"):
        gate.call("absent", lambda _: None)
