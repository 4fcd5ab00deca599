"""Which free value is tried next: all of them in the end, none that is taken, and little is read for it."""

from __future__ import annotations

import random

import pytest

from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.resource import Part
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Allocation, hexed
from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from lbaas_scheduler.allocator.windows import APART, LARGEST_PAGE, PAGE, Windows

KEY = ("pool", "d")


class Counting(MemoryDriver):
    """Knows how much was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []

    def keys(self, query):
        found = super().keys(query)
        self.reads.append(len(found))
        return found

    def count(self, query):
        self.reads.append(0)
        return super().count(query)


def take(driver, *numbers):
    txn = driver.begin()
    for number in numbers:
        txn.insert(Allocation(f"a{number}", "k", "d", hexed(number), -1, "pool", "t", f"o{number}"))
    driver.apply(txn.changes)


def pick(windows, driver, numbers, policy="random", avoid=()):
    return windows.pick(driver, KEY, Part("d", numbers, numbers, ""), numbers, policy, avoid)


@pytest.mark.parametrize("policy", ["random", "lowest", "next_fit", "longest_free"])
@pytest.mark.parametrize("step", [1, 256])
def test_every_number_is_found_once_and_then_none(policy, step):
    driver, windows = Counting(), Windows(random.Random(7))
    numbers = Spans.of([(0, 99 * step), (1000 * step, 1399 * step)], step)
    found = []
    while (number := pick(windows, driver, numbers, policy)) is not None:
        take(driver, number)
        found.append(number)
    assert sorted(found) == list(numbers)
    if policy in ("lowest", "next_fit"):
        assert found == sorted(found)


@pytest.mark.parametrize("policy", ["random", "lowest", "next_fit"])
def test_many_in_one_transaction(policy):
    driver, windows = Counting(), Windows(random.Random(7))
    numbers = Spans.of([(1, 5000)])
    take(driver, *range(1, 4000))
    chosen: set[int] = set()
    while (number := pick(windows, driver, numbers, policy, chosen)) is not None:
        assert number not in chosen
        chosen.add(number)
    assert chosen == set(range(4000, 5001))


@pytest.mark.parametrize("policy", ["random", "lowest", "next_fit"])
@pytest.mark.parametrize("gap", [1, 5777, 8_000])
def test_the_last_gap_of_a_large_pool_is_found_by_counting(policy, gap):
    driver, windows = Counting(), Windows(random.Random(7))
    take(driver, *(number for number in range(1, 8_001) if number != gap))
    driver.reads.clear()
    assert pick(windows, driver, Spans.of([(1, 8_000)]), policy) == gap
    assert len(driver.reads) < 60
    assert sum(driver.reads) <= 2 * (PAGE + 4 * PAGE + LARGEST_PAGE) + PAGE


def test_what_was_dear_to_find_serves_many():
    driver, windows = Counting(), Windows(random.Random(7))
    numbers = Spans.of([(1, 20_000)])
    take(driver, *range(1, 8_001))
    driver.reads.clear()
    for expected in range(8_001, 8_101):
        assert pick(windows, driver, numbers, "lowest") == expected
        take(driver, expected)
    assert len(driver.reads) < 100


def test_a_value_that_came_back_is_the_lowest_again_without_a_look():
    driver, windows = Counting(), Windows(random.Random(7))
    numbers = Spans.of([(1, 20_000)])
    take(driver, *range(1, 8_001))
    assert pick(windows, driver, numbers, "lowest") == 8_001
    driver.reads.clear()
    for number in (7, 5_000, 8_001, 8_001, 19_000):
        windows.came_back(KEY, number)
    assert [pick(windows, driver, numbers, "lowest") for _ in range(4)] == [7, 5_000, 8_001, 8_002]
    assert driver.reads == []


@pytest.mark.parametrize("used", [0, 18_000])
def test_a_look_asks_for_little_where_much_is_taken(used):
    """A store may count, or walk over, whatever lies in the range that it is asked for."""

    class Bounded(Counting):
        def keys(self, query):
            for lo, hi in query.runs or ((query.lo, query.hi),):
                assert int(hi, 16) - int(lo, 16) < LARGEST_PAGE
            return super().keys(query)

    driver, windows = Bounded(), Windows(random.Random(7))
    take(driver, *random.Random(1).sample(range(1, 20_001), used))
    for policy in ("random", "lowest", "next_fit", "longest_free"):
        assert pick(windows, driver, Spans.of([(1, 20_000)]), policy) is not None
        windows.forget(KEY)


@pytest.mark.parametrize("size", [100, 4094, 2**24, 2**64])
def test_a_look_costs_the_same_whatever_the_size(size):
    driver, windows = Counting(), Windows(random.Random(7))
    assert pick(windows, driver, Spans.of([(1, size)])) is not None
    assert driver.reads == [0]


def test_others_in_the_same_domain_are_passed_over():
    driver, windows = Counting(), Windows(random.Random(7))
    take(driver, *range(100, 200))
    numbers = Spans.of([(90, 99), (200, 209)])
    found = {pick(windows, driver, numbers, "lowest", set(range(90, 90 + 0))) for _ in range(20)}
    assert found <= {*range(90, 100), *range(200, 210)}


def test_without_competitors_a_look_serves_many():
    driver, windows = Counting(), Windows(random.Random(7))
    numbers = Spans.of([(1, 100_000)])
    for _ in range(1_000):
        take(driver, pick(windows, driver, numbers))
    assert len(driver.reads) < 20


def test_competitors_make_looks_shorter():
    driver, windows = Counting(), Windows(random.Random(7))
    numbers = Spans.of([(1, 100_000)])
    for _ in range(20):
        pick(windows, driver, numbers)
        windows.lost(KEY)
    assert len(driver.reads) == 20
    assert windows._window(KEY).length <= 2


def test_nothing_to_choose_from():
    assert pick(Windows(), Counting(), Spans()) is None
    assert Query(Allocation).prefix == ()


def test_one_loss_still_leads_to_the_lowest_and_a_second_one_away_from_the_crowd():
    windows, driver, numbers = Windows(random.Random(7)), Counting(), Spans.of([(1, 1_000_000)])
    for lost in (1, 2):
        assert pick(windows, driver, numbers, "lowest") == lost
        take(driver, lost)
        windows.lost(KEY)
    assert pick(windows, driver, numbers, "lowest") > 1_000
    for _ in range(APART):
        windows.forget(KEY)
        last = pick(windows, driver, numbers, "lowest")
    assert last == 3
