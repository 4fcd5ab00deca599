"""Near to the tenant, near to the networks: preferred, and strict."""

from __future__ import annotations

from typing import Any

import pytest

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import NoValidDevice
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from tests.factories import add_devices, new_device, new_request
from tests.fakes import ScriptedHandler
from tests.functional.placement.conftest import new_placer


def place(placer: Placer, **fields: Any) -> str:
    return placer.place(new_request(**fields)).device_id


def fleet(database: Database, **vips: int) -> None:
    add_devices(database, *(new_device(name, vips=count) for name, count in vips.items()))


@pytest.mark.parametrize(("algorithm", "near"), [("tenant_affinity", {}), ("network_affinity", {"networks": ("net",)})])
def test_affinity_prefers_where_the_first_one_is_and_falls_back_to_the_emptiest(
    database: Database, algorithm: str, near: dict[str, Any]
) -> None:
    fleet(database, a=3, b=100, c=100)
    placer = new_placer(database, algorithm=algorithm)
    place(placer, device_hint="a", **near)
    assert [place(placer, **near) for _ in range(2)] == ["a", "a"]
    moved_on = place(placer, **near)
    assert moved_on in {"b", "c"}
    assert place(placer, **near) == moved_on
    assert place(placer, tenant_id="other", networks=("other",)) != moved_on


@pytest.mark.parametrize(("algorithm", "near"), [("tenant_affinity", {}), ("network_affinity", {"networks": ("net",)})])
def test_strict_affinity_refuses_rather_than_part(database: Database, algorithm: str, near: dict[str, Any]) -> None:
    fleet(database, a=2, b=1)
    placer = new_placer(database, algorithm=algorithm, options={"strict": True})
    assert [place(placer, device_hint="a", **near), place(placer, **near)] == ["a", "a"]
    with pytest.raises(NoValidDevice):
        place(placer, **near)
    assert place(placer, tenant_id="other", networks=("other",)) == "b"


def test_wired_prefers_devices_on_all_networks_then_on_some(database: Database) -> None:
    fleet(database, a=2, b=100, c=100)
    placer = new_placer(database, algorithm="wired")
    place(placer, device_hint="a", networks=("net-1", "net-2"))
    place(placer, device_hint="b", networks=("net-1",))
    both = ("net-1", "net-2")
    assert [place(placer, networks=both), place(placer, networks=both)] == ["a", "b"]
    assert place(placer, networks=("net-3",)) == "c"


def test_strictly_wired_is_a_must_once_a_network_is_wired_anywhere(database: Database) -> None:
    fleet(database, a=2, b=100)
    placer = new_placer(database, algorithm="wired", options={"strict": True})
    first = place(placer, device_hint="a", networks=("net-1",))
    assert place(placer, networks=("net-1",)) == first == "a"
    with pytest.raises(NoValidDevice):
        place(placer, networks=("net-1",))
    assert place(placer, networks=("net-9",)) == "b"


def test_without_networks_nothing_is_near_and_the_emptiest_takes_it(database: Database) -> None:
    fleet(database, a=10)
    for algorithm in ("wired", "network_affinity"):
        assert place(new_placer(database, algorithm=algorithm, options={"strict": True})) == "a"


def test_weighted_lets_near_devices_compete_with_the_emptiest_of_a_fleet_larger_than_a_page(database: Database) -> None:
    fleet(database, **{f"d{number:02}": 10 for number in range(12)})
    placer = new_placer(database, algorithm="weighted", page_size=3, options={"weighers": {"load": 1, "tenant": 1}})
    place(placer, device_hint="d11")
    assert [place(placer) for _ in range(3)] == ["d11"] * 3
    apart = new_placer(database, algorithm="weighted", options={"weighers": {"load": 1, "tenant": -1}})
    assert place(apart) != "d11"


def test_what_a_vendor_says_of_its_devices_decides_where_a_resource_goes(database: Database) -> None:
    """F5 driver: a capacity score was reported under a key that nobody read."""
    scores = {"poor": 10, "good": 99, "fair": 50}
    add_devices(database, *(new_device(name, extra={"score": score}) for name, score in scores.items()))
    handler = ScriptedHandler(weigh=lambda device, _: device.device.extra["score"])
    placer = new_placer(database, handler, "weighted", options={"weighers": {"handler": 1}})
    decision = placer.place(new_request())
    assert (decision.device_id, decision.score) == ("good", 99)
    assert [(it.device_name, it.weight) for it in decision.trail.considered] == [("good", 99), ("fair", 50), ("poor", 10)]


def test_most_loaded_fills_one_device_after_the_other(database: Database) -> None:
    fleet(database, a=3, b=3, c=3)
    placer = new_placer(database, algorithm="most_loaded")
    order = [place(placer) for _ in range(9)]
    assert [order[0:3], order[3:6], order[6:9]] == [[order[0]] * 3, [order[3]] * 3, [order[6]] * 3]
