"""Plans that even out a fleet."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from lbaas_scheduler.domain.moves import BalancePlan
from lbaas_scheduler.scheduler.balance import Bin, plan


def anywhere(_resource_id: str, _device_id: str) -> bool:
    return True


def fleet(*counts: int, limit: int | None = 10) -> list[Bin]:
    return [Bin(f"d{n}", tuple(f"d{n}-{k}" for k in range(count)), limit) for n, count in enumerate(counts)]


def carried_out(bins: Sequence[Bin], made: BalancePlan) -> dict[str, set[str]]:
    held = {it.device_id: set(it.resources) for it in bins}
    for step in made.transfers:
        held[step.source_id].remove(step.resource_id)
        held[step.target_id].add(step.resource_id)
    return held


def test_an_even_fleet_needs_no_move() -> None:
    assert plan(fleet(3, 3, 3), anywhere, 0.1, 100).transfers == ()


def test_the_bound_is_kept_and_no_move_is_made_beyond_it() -> None:
    made = plan(fleet(9, 1, 2), anywhere, 0.3, 100)
    assert made.spread_before == 0.8
    assert round(made.spread_after, 9) <= 0.3
    assert len(made.transfers) == 3


def test_a_resource_goes_only_where_it_may() -> None:
    made = plan(fleet(6, 0, 0), lambda _resource_id, device_id: device_id != "d1", 0.1, 100)
    assert {step.target_id for step in made.transfers} == {"d2"}
    assert made.after == {"d0": 3, "d1": 0, "d2": 3}


def test_a_device_that_takes_nothing_new_gives_but_does_not_get() -> None:
    bins = [Bin("d0", ("x", "y", "z"), 10, open=False), Bin("d1", (), 10), Bin("d2", (), 10, open=False)]
    made = plan(bins, anywhere, 0.1, 100)
    assert {(step.source_id, step.target_id) for step in made.transfers} == {("d0", "d1")}


def test_the_plan_is_cut_at_the_most_moves_that_may_be() -> None:
    assert len(plan(fleet(8, 0), anywhere, 0.0, 2).transfers) == 2


def test_devices_without_a_limit_are_compared_by_numbers() -> None:
    assert plan(fleet(8, 0, limit=None), anywhere, 0.25, 100).after == {"d0": 5, "d1": 3}


def test_large_and_small_devices_end_up_equally_full() -> None:
    bins = [Bin("large", tuple(f"r{n}" for n in range(10)), 100), Bin("small", tuple(f"s{n}" for n in range(8)), 10)]
    made = plan(bins, anywhere, 0.1, 100)
    assert made.spread_after <= 0.1
    assert {step.source_id for step in made.transfers} == {"small"}


def test_the_same_fleet_gives_the_same_plan() -> None:
    bins = fleet(9, 2, 5, 0)
    assert plan(bins, anywhere, 0.1, 100) == plan(bins, anywhere, 0.1, 100)


@settings(max_examples=150)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=4), st.integers(1, 3))
def test_no_plan_of_fewer_moves_reaches_the_bound(counts: list[int], tolerated: int) -> None:
    bins = fleet(*counts)
    bound = tolerated / 10
    made = plan(bins, anywhere, bound, 1000)
    held = carried_out(bins, made)
    assert {key: len(value) for key, value in held.items()} == dict(made.after)
    assert sum(map(len, held.values())) == sum(counts)
    assert made.spread_after <= bound + 1e-9
    assert len(made.transfers) == fewest(counts, tolerated)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([None, 3, 6, 12]), st.booleans()), min_size=1, max_size=5),
    st.floats(0, 1),
    st.data(),
)
def test_no_plan_fills_a_device_beyond_its_limit_or_moves_anything_twice(raw: list, bound: float, data: st.DataObject) -> None:
    bins = [Bin(f"d{n}", tuple(f"d{n}-{k}" for k in range(count)), limit, open_) for n, (count, limit, open_) in enumerate(raw)]
    forbidden = data.draw(st.sets(st.sampled_from([it.device_id for it in bins])))
    made = plan(bins, lambda _resource, device_id: device_id not in forbidden, bound, 1000)
    moved = [step.resource_id for step in made.transfers]
    assert len(moved) == len(set(moved))
    gets = {step.target_id for step in made.transfers}
    assert gets <= {it.device_id for it in bins if it.open and it.device_id not in forbidden}
    held = carried_out(bins, made)
    limits = {it.device_id: it.limit for it in bins}
    assert all(limits[key] is None or len(held[key]) <= limits[key] for key in gets)
    assert made.spread_after <= made.spread_before + 1e-9


def fewest(counts: Sequence[int], tolerated: int) -> int:
    """By trying every way to hand the resources out: how many have to change their device."""
    total, best = sum(counts), 10**6
    for after in itertools.product(range(total + 1), repeat=len(counts)):
        if sum(after) == total and max(after) - min(after) <= tolerated and max(after) <= 10:
            best = min(best, sum(max(0, was - now) for was, now in zip(counts, after, strict=True)))
    return best
