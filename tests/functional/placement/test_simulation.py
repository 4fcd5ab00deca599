"""Dry runs: they predict what placing then does, and leave nothing behind."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db.models import placements
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.devices import Interface
from lbaas_scheduler.domain.requests import ScheduleRequest, Tenancy, Verdict
from lbaas_scheduler.errors import InvalidRequest, NoValidDevice
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from tests.database import counted
from tests.factories import add_devices, new_device, new_request
from tests.fakes import ScriptedHandler
from tests.functional.placement.conftest import new_placer, snapshot

ALGORITHMS = ("first_available", "least_loaded", "most_loaded", "network_affinity", "tenant_affinity", "weighted", "wired")


def spread(placer: Placer, request: ScheduleRequest, count: int) -> dict[str, int]:
    return {share.device_id: share.count for share in placer.simulate(request, count).shares}


def place_all(placer: Placer, request: ScheduleRequest, count: int) -> tuple[Counter[str], dict[str, int]]:
    """Place for real: device → how many, and why the next one was refused."""
    placed: Counter[str] = Counter()
    for number in range(count):
        name = request.resource_id if number == 0 else f"{request.resource_id}-{number}"
        try:
            placed[placer.place(new_request(name, **_fields(request))).device_id] += 1
        except NoValidDevice as error:
            return placed, dict(error.kwargs["trail"]["dropped"])
    return placed, {}


def _fields(request: ScheduleRequest) -> dict[str, Any]:
    names = ("demand", "networks", "tenancy", "options", "tenant_id", "required")
    return {name: getattr(request, name) for name in names}


def fleet(database: Database) -> None:
    add_devices(
        database,
        new_device("a", vips=5),
        new_device("b", vips=3, interfaces=(Interface("eth0", 1),)),
        new_device("c", vips=20, interfaces=(Interface("eth0", 0),)),
        new_device("d", vips=9, capacities={"CONNECTIONS": 30}),
        new_device("mine", vips=2, tenant_id="tenant", shared=False),
    )


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"networks": ("net",)},
        {"demand": {"VIPS": 1, "CONNECTIONS": 10}},
        {"networks": ("net",), "options": {"strict": True}},
        {"tenancy": Tenancy.DEDICATED},
    ],
    ids=["plain", "network", "connections", "strict", "dedicated"],
)
def test_a_simulation_predicts_what_placing_then_does(database: Database, algorithm: str, fields: dict[str, Any]) -> None:
    fleet(database)
    placer = new_placer(database, algorithm=algorithm, seed=7, page_size=2, max_rounds=100)
    request = new_request("vip", **fields)
    before = snapshot(database)
    simulation = placer.simulate(request, 50)
    assert snapshot(database) == before
    placed, dropped = place_all(placer, request, 50)
    assert {share.device_id: share.count for share in simulation.shares} == placed
    assert simulation.placed == sum(placed.values()) < simulation.wanted == 50
    assert simulation.trail.dropped == dropped


def test_it_says_what_fills_first_and_what_it_lacks(database: Database) -> None:
    add_devices(database, new_device("small", vips=2), new_device("large", vips=8, capacities={"CONNECTIONS": 35}))
    request = new_request(demand={"VIPS": 1, "CONNECTIONS": 10}, options={})
    simulation = new_placer(database, algorithm="first_available").simulate(request, 10)
    filled = [(it.device_id, it.limited_by, it.after) for it in simulation.filled]
    assert filled == [("small", "VIPS", 2), ("large", "CONNECTIONS", 5)]
    assert (simulation.placed, simulation.wanted) == (5, 10)
    [large, small] = simulation.shares
    assert (large.device_id, large.count, large.load_before, large.load_after) == ("large", 3, 0, 8571)
    assert (small.device_id, small.count, small.load_after) == ("small", 2, 10_000)
    assert simulation.trail.dropped == {"capacity.VIPS": 1, "capacity.CONNECTIONS": 1}


def test_vendors_own_classes_and_vlans_count(database: Database) -> None:
    add_devices(
        database,
        new_device("a", capacities={"CUSTOM_TPS": 5}),
        new_device("b", capacities={"CUSTOM_TPS": 50}, interfaces=(Interface("eth0", 0),)),
    )
    request = new_request(demand={"VIPS": 1, "CUSTOM_TPS": 2}, networks=("net",))
    simulation = new_placer(database).simulate(request, 4)
    assert {share.device_id: share.count for share in simulation.shares} == {"a": 2}
    assert simulation.trail.dropped == {"capacity.CUSTOM_TPS": 1, "network.vlans": 1}


def test_nothing_is_written_and_no_transaction_is_open_while_handlers_are_asked(database: Database) -> None:
    add_devices(database, *(new_device(f"d{number}", vips=3) for number in range(3)))
    before = snapshot(database)
    open_: list[int] = []

    def is_good(*_: Any) -> Verdict:
        open_.append(database.engine.pool.checkedout())  # type: ignore[attr-defined]
        return Verdict.yes()

    placer = new_placer(database, ScriptedHandler(is_good=is_good))
    with counted(database) as sent:
        assert sum(spread(placer, new_request(), 5).values()) == 5
    assert set(open_) == {0}
    assert [it for it in sent if not it.lstrip("( ").startswith(("SELECT", "BEGIN", "PRAGMA", "WITH"))] == []
    assert snapshot(database) == before
    assert database.read(lambda conn: conn.scalar(sa.select(sa.func.count()).select_from(placements))) == 0


def test_a_handlers_word_counts_for_devices_that_took_something_on_paper(database: Database) -> None:
    add_devices(database, new_device("a"), new_device("b"))
    handler = ScriptedHandler(is_good=lambda it, _: Verdict(it.usage["VIPS"].used < 2, "two are enough"))
    simulation = new_placer(database, handler).simulate(new_request(), 9)
    assert {share.device_id: share.count for share in simulation.shares} == {"a": 2, "b": 2}
    assert simulation.trail.dropped == {"handler.fake": 2}
    assert simulation.filled == ()


def test_a_fleet_that_cannot_take_one_says_why(database: Database) -> None:
    add_devices(database, new_device("a"))
    simulation = new_placer(database).simulate(new_request(required=frozenset({"PROTOCOL_HTTPS"})), 3)
    assert (simulation.placed, simulation.shares) == (0, ())
    assert simulation.trail.dropped == {"trait.PROTOCOL_HTTPS": 1}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("count", [0, -1, 1001, True, "3", None])
def test_a_count_out_of_bounds_is_refused(database: Database, count: Any) -> None:
    with pytest.raises(InvalidRequest, match="count must be an integer from 1 to 1000"):
        new_placer(database).simulate(new_request(), count)
