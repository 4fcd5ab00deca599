"""How the algorithms that look at more than load rank a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from lbaas_scheduler.domain.capacity import Usage
from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.errors import DriverError, InvalidRequest
from lbaas_scheduler.scheduler.algorithms.driver_choice import DriverChoice
from lbaas_scheduler.scheduler.algorithms.least_loaded import LeastLoaded
from lbaas_scheduler.scheduler.algorithms.most_loaded import MostLoaded
from lbaas_scheduler.scheduler.algorithms.tenant_affinity import TenantAffinity
from lbaas_scheduler.scheduler.algorithms.weighted import Weighted
from lbaas_scheduler.scheduler.classes import resolve
from lbaas_scheduler.scheduler.framework import Scheduler
from lbaas_scheduler.scheduler.gate import HandlerGate
from tests.factories import new_device, new_request
from tests.fakes import FleetInMemory, ScriptedHandler


def candidate(name: str, **fields: Any) -> Candidate:
    device = {key: fields.pop(key) for key in ("zone", "device_type") if key in fields}
    return Candidate(new_device(name, **device), **fields)


def ranked(algorithm: Any, page: Sequence[Candidate], **fields: Any) -> list[str]:
    return [it.device.id for it in algorithm.rank(new_request("vip", **fields), page, Random(1))]


def test_most_loaded_packs() -> None:
    page = [candidate("a", load=10), candidate("b", load=9000), candidate("c", load=500)]
    assert ranked(MostLoaded(), page) == ["b", "c", "a"]


def by(measure: str) -> dict[str, Any]:
    return {"options": {"least_loaded_by": measure}}


def busy(name: str, load: int, connections: int | None, limit: int = -1) -> Candidate:
    return candidate(name, load=load, connections=connections, usage={"CONNECTIONS": Usage(0, limit)})


@pytest.mark.parametrize(
    ("measure", "expected"),
    [("placed", ["a", "b", "c"]), ("reported", ["c", "b", "a"]), ("both", ["b", "a", "c"])],
)
def test_least_loaded_measures_what_it_is_told_to(measure: str, expected: list[str]) -> None:
    page = [busy("a", 1000, 900), busy("b", 3000, 300), busy("c", 9900, 100)]
    assert ranked(LeastLoaded(), page, **by(measure)) == expected


def test_connections_count_in_shares_of_what_devices_can_take_if_all_say_so() -> None:
    page = [busy("big", 0, 500, limit=10_000), busy("small", 0, 100, limit=200)]
    assert ranked(LeastLoaded(), page, **by("reported")) == ["big", "small"]
    assert ranked(LeastLoaded(), [*page, busy("any", 0, 400)], **by("reported")) == ["small", "any", "big"]


@pytest.mark.parametrize("measure", ["reported", "both"])
def test_a_device_that_reports_nothing_is_not_favoured(measure: str) -> None:
    page = [busy("silent", 0, None), busy("idle", 10, 0), busy("full", 20, 1000)]
    assert ranked(LeastLoaded(), page, **by(measure)) == ["idle", "full", "silent"]
    nobody = [busy("b", 900, None), busy("a", 10, None), busy("c", 5000, None)]
    assert ranked(LeastLoaded(), nobody, **by(measure)) == ["a", "b", "c"]


def test_affinity_falls_back_to_the_same_measure() -> None:
    page = [busy("a", 0, 900), busy("b", 5000, 3)]
    assert ranked(TenantAffinity(), page, **by("reported")) == ["b", "a"]


@pytest.mark.parametrize(
    ("weighers", "best"),
    [
        ({"load": 1}, "empty"),
        ({"load": -1}, "full"),
        ({"load": 1, "wired": 2}, "wired"),
        ({"load": 0.1, "network": 1}, "wired"),
        ({"load": 1, "tenant": 5}, "home"),
        ({"load": 1, "handler": 3}, "praised"),
        ({"load": 1, "zone": 2}, "zoned"),
        ({"load": "1.0", "tenant": "5.0"}, "home"),
    ],
)
def test_weighers_are_multiplied_and_summed(weighers: dict[str, Any], best: str) -> None:
    page = [
        candidate("full", load=9000),
        candidate("empty", load=0),
        candidate("wired", load=5000, networks=frozenset({"net"})),
        candidate("home", load=5000, hosts_tenant=True),
        candidate("praised", load=5000, weight=100.0),
        candidate("zoned", load=5000, zone="b"),
    ]
    assert ranked(Weighted(), page, networks=("net",), options={"weighers": weighers, "zone": "b"})[0] == best


def test_a_negative_multiplier_keeps_a_tenants_resources_apart() -> None:
    page = [candidate("home", hosts_tenant=True), candidate("away", load=400)]
    assert ranked(Weighted(), page, options={"weighers": {"load": 1, "tenant": -1}}) == ["away", "home"]


@pytest.mark.parametrize(
    ("weighers", "words"),
    [
        ({"speed": 1}, "unknown weigher 'speed'; known: handler, load, network, tenant, wired, zone"),
        ({"load": "much"}, "weigher 'load': 'much' is not a finite number"),
        ({"load": math.inf}, "weigher 'load': inf is not a finite number"),
        ([], "must map names of weighers to multipliers"),
        ({}, "must map names of weighers to multipliers"),
    ],
)
def test_wrong_weighers_are_refused(weighers: Any, words: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        Weighted().sources(new_request(options={"weighers": weighers}))
    assert words in error.value.message


FLEET = [new_device(name, device_type="a" if name < "d3" else "b") for name in ("d1", "d2", "d3", "d4")]
USED = {"d1": 5, "d2": 4, "d3": 1, "d4": 3}


def chosen(select: Any) -> tuple[list[str], Any]:
    """The order of driver_choice when vendor b selects, and the trail."""
    gate = HandlerGate({"a": ScriptedHandler("a"), "b": ScriptedHandler("b", select=select)}, 5.0)
    scheduler = Scheduler(gate, {"driver_choice": DriverChoice()}, "driver_choice", seed=1)
    fleet, request = FleetInMemory(FLEET, USED), new_request("vip")
    recorder = scheduler.recorder(request)
    [page] = scheduler.pages(request, resolve(fleet.classes(), request), fleet, recorder)
    return [it.candidate.device.id for it in page], recorder.trail()


def test_the_driver_of_the_emptiest_device_picks_the_device() -> None:
    assert chosen(lambda devices, _: list(reversed(devices)))[0] == ["d4", "d3", "d2", "d1"]


def test_what_a_driver_leaves_out_is_not_used_and_named() -> None:
    order, trail = chosen(lambda devices, _: [it for it in devices if it.device.id == "d4"])
    assert order == ["d4", "d2", "d1"]
    assert trail.dropped == {"handler.b": 1}
    assert trail.rejections[0].reason == "was not selected by the handler of b"


def broken(*_: Any) -> Any:
    raise DriverError("out of order")


@pytest.mark.parametrize(
    ("select", "words"),
    [
        (lambda *_: [candidate("invented")], "selected something that it was not offered"),
        (lambda *_: ["d3"], "selected something that it was not offered"),
        (lambda *_: None, "raised TypeError"),
        (broken, "raised DriverError"),
    ],
)
def test_a_driver_that_selects_nonsense_loses_its_devices_only(select: Any, words: str) -> None:
    order, trail = chosen(select)
    assert order == ["d2", "d1"]
    assert trail.dropped == {"handler.b": 2}
    assert words in trail.rejections[0].reason


def test_a_device_that_is_selected_twice_is_offered_once() -> None:
    assert chosen(lambda devices, _: [*devices, *devices])[0] == ["d3", "d4", "d2", "d1"]
