from __future__ import annotations

import pytest

from lbaas_scheduler.domain.moves import Limits, UnderWay, retry_seconds

LIMITS = Limits(moves=5, per_device=3, rescues_per_device=4)


def test_a_move_that_fails_rests_twice_as_long_each_time_up_to_a_bound() -> None:
    assert [retry_seconds(failures) for failures in (0, 1, 2, 3, 4)] == [5, 5, 10, 20, 40]
    assert retry_seconds(10_000) == 300


@pytest.mark.parametrize(
    ("counts", "room"),
    [
        ({}, True),
        ({("a", "b"): 2}, True),
        ({("a", "b"): 3}, False),
        ({("a", "c"): 3}, False),
        ({("c", "b"): 3}, False),
        ({("b", "c"): 3}, False),
        ({("c", "d"): 3, ("e", "f"): 2}, False),
        ({("c", "d"): 3, ("e", "f"): 1}, True),
    ],
)
def test_moves_between_devices_that_work_are_bounded_at_all_and_at_each_end(
    counts: dict[tuple[str, str | None], int], room: bool
) -> None:
    assert UnderWay(counts).has_room("a", "b", LIMITS) is room


@pytest.mark.parametrize("ends", [("lost", "b"), ("a", "lost"), ("lost", "gone")])
def test_moves_that_wait_for_a_lost_device_take_no_place(ends: tuple[str, str]) -> None:
    under_way = UnderWay({ends: 100}, frozenset({"lost", "gone"}))
    assert under_way.live() == 0
    assert under_way.has_room("a", "b", LIMITS)


def test_moves_off_lost_devices_are_bounded_by_what_comes_to_one_device_off_such() -> None:
    counts: dict[tuple[str, str | None], int] = {("lost", "b"): 2, ("gone", "b"): 1, ("a", "b"): 3, ("c", "d"): 2}
    under_way = UnderWay(counts, frozenset({"lost", "gone"}))
    assert under_way.has_room("lost", "b", LIMITS)
    assert not UnderWay({**counts, ("lost", "b"): 3}, under_way.lost).has_room("lost", "b", LIMITS)
