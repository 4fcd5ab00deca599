"""From a request to devices in order of preference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.domain.trail import MAX_REJECTIONS
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source
from lbaas_scheduler.scheduler.algorithms.chance import Chance
from lbaas_scheduler.scheduler.algorithms.first_available import FirstAvailable
from lbaas_scheduler.scheduler.algorithms.least_loaded import WINDOW, LeastLoaded
from lbaas_scheduler.scheduler.classes import resolve
from lbaas_scheduler.scheduler.framework import ClassesChanged, Scheduler
from lbaas_scheduler.scheduler.gate import HandlerGate
from lbaas_scheduler.scheduler.recorder import Recorder
from tests.factories import new_device, new_request
from tests.fakes import FleetInMemory, ScriptedHandler


def scheduler(algorithm: Algorithm | None = None, handler: Any = None, **options: Any) -> Scheduler:
    gate = HandlerGate({"fake": handler or ScriptedHandler()}, 5.0)
    return Scheduler(gate, {"first": algorithm or FirstAvailable()}, "first", **options)


def ordered(used: Scheduler, request: ScheduleRequest, fleet: FleetInMemory, recorder: Recorder | None = None) -> list[list[str]]:
    """Ids page by page."""
    resolution = resolve(fleet.classes(), request)
    pages = used.pages(request, resolution, fleet, recorder or used.recorder(request))
    return [[each.candidate.device.id for each in page] for page in pages]


def fleet_of(count: int, used: Mapping[str, int] | None = None, **fields: Any) -> FleetInMemory:
    return FleetInMemory([new_device(f"d{number:02}", **fields) for number in range(count)], dict(used or {}))


def test_the_fleet_is_read_page_by_page_and_no_device_twice():
    assert ordered(scheduler(page_size=2), new_request(), fleet_of(5)) == [["d00", "d01"], ["d02", "d03"], ["d04"]]


def test_the_next_page_is_read_only_when_it_is_asked_for():
    fleet = fleet_of(5)
    used, request = scheduler(page_size=2), new_request()
    pages = used.pages(request, resolve(fleet.classes(), request), fleet, used.recorder(request))
    next(pages)
    assert len(fleet.pages) == 1


def test_the_rounds_are_bounded_over_all_sources_and_tiers():
    fleet = FleetInMemory([*(new_device(f"own{n}", tenant_id="tenant", shared=False) for n in range(3)), new_device("operators")])
    used, request = scheduler(page_size=1, max_rounds=2), new_request()
    recorder = used.recorder(request)
    assert ordered(used, request, fleet, recorder) == [["own0"], ["own1"]]
    assert (recorder.rounds, recorder.examined) == (2, 2)


def test_the_tenants_own_devices_come_before_the_shared_ones():
    fleet = FleetInMemory([new_device("operators"), new_device("own", tenant_id="tenant", shared=False)])
    assert ordered(scheduler(), new_request(), fleet) == [["own"], ["operators"]]


def test_excluded_devices_are_left_out():
    assert ordered(scheduler(), new_request(exclude=frozenset({"d00", "d02"})), fleet_of(3)) == [["d01"]]


def test_a_hint_leaves_one_device():
    assert ordered(scheduler(), new_request(device_hint="d01"), fleet_of(3)) == [["d01"]]


def test_devices_with_more_preferred_traits_come_first_and_the_order_stays_otherwise():
    traits = {"a": set(), "b": {"CUSTOM_SSD"}, "c": set(), "d": {"CUSTOM_SSD", "CUSTOM_FAST"}, "e": {"CUSTOM_FAST"}}
    fleet = FleetInMemory([new_device(name, traits=frozenset(has)) for name, has in traits.items()])
    request = new_request(preferred=frozenset({"CUSTOM_SSD", "CUSTOM_FAST"}))
    assert ordered(scheduler(), request, fleet) == [["d", "b", "e", "a", "c"]]


def test_what_handlers_reject_is_not_offered():
    handler = ScriptedHandler(is_good=lambda device, _: Verdict(device.device.id != "d01", "is meshed with d02"))
    used, request = scheduler(handler=handler), new_request()
    recorder = used.recorder(request)
    assert ordered(used, request, fleet_of(3), recorder) == [["d00", "d02"]]
    assert recorder.trail().dropped == {"handler.fake": 1}
    assert recorder.trail().rejections[0].reason == "is meshed with d02"


def test_a_trail_names_twenty_devices_and_counts_the_others():
    used, request = scheduler(handler=ScriptedHandler(is_good=lambda *_: Verdict.no("no"))), new_request()
    recorder = used.recorder(request)
    ordered(used, request, fleet_of(30), recorder)
    trail = recorder.trail()
    assert trail.dropped == {"handler.fake": 30}
    assert len(trail.rejections) == MAX_REJECTIONS == 20
    assert len(recorder.rejected) == 30


def test_the_algorithm_of_the_request_is_used_before_the_configured_one():
    class Backwards(Algorithm):
        def sources(self, request: ScheduleRequest) -> Sequence[Source]:
            return (Source.BY_AGE,)

        def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
            return list(reversed(candidates))

    gate = HandlerGate({"fake": ScriptedHandler()}, 5.0)
    used = Scheduler(gate, {"first": FirstAvailable(), "backwards": Backwards()}, "first")
    assert ordered(used, new_request(algorithm="backwards"), fleet_of(2)) == [["d01", "d00"]]
    assert used.recorder(new_request(algorithm="backwards")).trail().algorithm == "backwards"


def test_an_unknown_algorithm_is_refused_with_the_names_that_are_loaded():
    with pytest.raises(ConfigurationError, match="unknown scheduling algorithm 'best'; loaded: first"):
        ordered(scheduler(), new_request(algorithm="best"), fleet_of(1))


@pytest.mark.parametrize("algorithm", [Chance(), LeastLoaded()])
def test_the_same_snapshot_and_seed_give_the_same_decision(algorithm):
    decisions = {str(ordered(scheduler(algorithm, seed=7, page_size=4), new_request("vip"), fleet_of(16))) for _ in range(5)}
    assert len(decisions) == 1
    others = {str(ordered(scheduler(algorithm, seed=seed), new_request("vip"), fleet_of(16))) for seed in range(5)}
    assert len(others) > 1


def test_without_a_seed_chance_is_chance():
    assert len({str(ordered(scheduler(Chance()), new_request("vip"), fleet_of(16))) for _ in range(5)}) > 1


def test_chance_gives_every_device_its_turn():
    first = {ordered(scheduler(Chance(), seed=seed), new_request("vip"), fleet_of(4))[0][0] for seed in range(60)}
    assert first == {"d00", "d01", "d02", "d03"}


def test_least_loaded_takes_the_emptiest_and_any_of_about_equals():
    used = {"d00": 9, "d01": 5, "d02": 5, "d03": 6}
    winners = {ordered(scheduler(LeastLoaded(), seed=seed), new_request("v"), fleet_of(4, used))[0][0] for seed in range(30)}
    assert winners == {"d01", "d02"}
    order = ordered(scheduler(LeastLoaded(), seed=1), new_request("v"), fleet_of(4, used))[0]
    assert order[2:] == ["d03", "d00"]
    assert WINDOW < 1000  # a tenth of a device that holds ten


def test_a_class_that_was_added_meanwhile_is_noticed():
    fleet = fleet_of(1)
    fleet.refresh()
    fleet.add(new_device("new", zone="b"))
    with pytest.raises(ClassesChanged):
        ordered(scheduler(), new_request(), fleet)
    fleet.refresh()
    assert ordered(scheduler(), new_request(), fleet) == [["d00", "new"]]
