"""Patterns of ranges match their numbers and no others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbaas_scheduler.api.digits import pattern_of_range

RANGES = [
    (1, 65535),
    (0, 256),
    (-1, 2**31 - 1),
    (1, 10),
    (0, 0),
    (7, 7),
    (-5, 12),
    (95, 105),
    (1, 86400),
    (-20, -3),
    (1, 2**24 - 1),
]


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_the_bounds_are_in_and_their_neighbours_are_out(low: int, high: int) -> None:
    pattern = re.compile(pattern_of_range(low, high))
    inside = {low, high, (low + high) // 2}
    for number in {low - 1, low, low + 1, high - 1, high, high + 1, *inside}:
        assert bool(pattern.fullmatch(str(number))) == (low <= number <= high), number


@given(st.integers(-2000, 2000), st.integers(0, 3000), st.integers(-6000, 6000))
def test_any_number_is_in_exactly_if_it_is_in_the_range(low: int, width: int, number: int) -> None:
    pattern = pattern_of_range(low, low + width)
    assert bool(re.fullmatch(pattern, str(number))) == (low <= number <= low + width)


@pytest.mark.parametrize("text", ["", "+5", "05", "5.0", " 5", "５", "-0", "5\n"])
def test_only_plain_digits_match(text: str) -> None:
    assert re.fullmatch(pattern_of_range(-10, 10), text) is None
