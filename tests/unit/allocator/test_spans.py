"""Sets of numbers, against Python's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lbaas_scheduler.allocator.core.spans import Span, Spans, listing

pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8)).map(lambda it: (it[0], it[0] + it[1])), max_size=6)


def numbers(spans):
    return {number for lo, hi in spans for number in range(lo, hi + 1)}


@given(pairs)
def test_places_and_numbers_belong_together(items):
    spans, expected = Spans.of(items), sorted(numbers(items))
    assert list(spans) == expected
    assert spans.size == len(expected)
    assert [spans.at(place) for place in range(spans.size)] == expected
    assert [spans.index(number) for number in expected] == list(range(spans.size))
    assert all(spans.place(number) == sum(1 for other in expected if other < number) for number in range(-1, 75))
    assert all((number in spans) == (number in expected) for number in range(-1, 75))


@given(pairs.filter(bool), st.integers(1, 12))
def test_a_run_is_what_follows_in_one_span(items, length):
    spans = Spans.of(items)
    for place in range(spans.size):
        run, rest = spans.run(place, length), list(spans)[place:]
        assert list(range(run.lo, run.hi + 1)) == rest[: run.size]
        assert run.size == length or run.hi in {span.hi for span in spans.items}


@given(pairs, pairs)
def test_what_is_taken_away_is_gone(items, cuts):
    left = Spans.of(items).minus(Spans.of(cuts))
    assert set(left) == numbers(items) - numbers(cuts)
    common = numbers(items) & numbers(cuts)
    overlap = Spans.of(items).overlap(Spans.of(cuts))
    assert (overlap is None) == (not common)


@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_numbers_with_distances(items, cuts):
    spans = Spans.of(((number * 16, number * 16) for number in items), 16)
    left = spans.minus(Spans.of(((number * 16, number * 16) for number in cuts), 16))
    assert list(left) == sorted(number * 16 for number in items - cuts)
    assert 8 not in spans


def test_a_large_set_costs_as_much_as_a_small_one():
    spans = Spans.of([(0, 2**128 - 1)]).minus(Spans.of([(5, 5)]))
    assert spans.size == 2**128 - 1
    assert spans.at(2**127) == 2**127 + 1
    assert spans.items == (Span(0, 4), Span(6, 2**128 - 1))


def test_numbers_as_people_write_them():
    assert listing([1, 2, 19]) == "1-2, 19"
    assert listing([]) == ""
    assert listing([100, 1, 101]) == "1, 100-101"
