"""Which free value to try next.

Nobody keeps a list of free values, and no lock is held while one is chosen. A *window* is a handful of values that were free
when they were looked up, at random places or in a short stretch of the pool; they are tried one after the other, and the
store's unique key decides. A reader sees at most a few hundred keys, whatever the pool's size. How long a window is trusted
follows from what happens: without competitors it is used up, and each value that somebody else took meanwhile makes the next
windows shorter, down to one read for each allocation.
"""

from __future__ import annotations

import random
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

from lbaas_scheduler.allocator.core.drivers import Query, StateDriver
from lbaas_scheduler.allocator.core.resource import Part
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Allocation, hexed

LONGEST, SHORTEST, FIRST = 128, 1, 16
"""Values in a window."""

RUNS, RUN = 16, 16
"""At most so many short runs, of so many numbers, are looked up at once, wherever they lie. Writers that choose so hardly ever
choose the same, while two that read one stretch would fight for all that is free there."""

IN_A_RUN = 4
"""Free numbers that a run is taken for: of a pool that is three quarters full it has so many, of a fuller one less."""

CROWD, APART = 2, 8
"""After so many losses in a row, so many windows are looked up at random places whatever the policy: writers that all want the
lowest value would otherwise wait for each other's transactions, and then want the same one again."""

PAGE, LARGEST_PAGE = 256, 4096
"""Taken values that are read at once: at first, and after a stretch without a gap."""

Key = tuple[str, str]
"""A pool's id and a domain."""


class Window:
    """The next candidates for one pool in one domain."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free: deque[int] = deque()
        self.length = FIRST // 2
        self.cursor = 0
        self.losses = 0
        """In a row: a window that was used up without one ends it."""
        self.apart = 0
        """So many of the next windows keep away from other writers."""
        self._lost = False

    def shorten(self) -> None:
        self.free.clear()
        self.length = max(SHORTEST, self.length // 4)
        self.losses, self._lost = self.losses + 1, True
        if self.losses >= CROWD:
            self.apart = APART

    def renew(self) -> None:
        """It is empty and is about to be filled: with more than last time, as nobody else seems to want the same."""
        self.length = min(LONGEST, self.length * 2)
        self.apart = max(0, self.apart - 1)
        self.losses, self._lost = self.losses if self._lost else 0, False


class Windows:
    """All windows of a process. Thread-safe: threads take from the same window, so they do not compete.

    :param chance: for tests that want the same choice again.
    """

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()  # noqa: S311  # spreads writers, guards nothing
        self._windows: dict[Key, Window] = {}
        self._lock = threading.Lock()

    def pick(
        self, driver: StateDriver, key: Key, part: Part, numbers: Spans, policy: str, avoid: Collection[int] = ()
    ) -> int | None:
        """A number that seems free; None after an authoritative look that found none.

        :param numbers: what may be chosen.
        :param avoid: numbers that this transaction has chosen already.
        """
        window = self._window(key)
        with window.lock:
            number = self._next(window, numbers, avoid)
            if number is None:
                self._fill(driver, window, key[1], numbers, policy, avoid)
                number = self._next(window, numbers, avoid)
            if number is not None:
                window.cursor = numbers.place(number) + 1
            return number

    def lost(self, key: Key) -> None:
        """A value of the window was taken by somebody else."""
        window = self._window(key)
        with window.lock:
            window.shorten()

    def put_back(self, key: Key, number: int) -> None:
        """It was picked and not used: it is the next one again."""
        window = self._window(key)
        with window.lock:
            window.free.appendleft(number)

    def forget(self, key: Key) -> None:
        """The window is out of date: the pool was changed."""
        window = self._window(key)
        with window.lock:
            window.free.clear()

    def came_back(self, key: Key, number: int) -> None:
        """A value was released: among candidates in ascending order it takes its place, if it lies before the last one."""
        window = self._window(key)
        with window.lock:
            place = bisect_left(window.free, number)
            if place < len(window.free) and window.free[place] != number:
                window.free.insert(place, number)

    def _window(self, key: Key) -> Window:
        window = self._windows.get(key)
        if window is None:
            with self._lock:
                window = self._windows.setdefault(key, Window())
        return window

    def _next(self, window: Window, numbers: Spans, avoid: Collection[int]) -> int | None:
        while window.free:
            number = window.free.popleft()
            if number in numbers and number not in avoid:
                return number
        return None

    def _fill(
        self, driver: StateDriver, window: Window, domain: str, numbers: Spans, policy: str, avoid: Collection[int]
    ) -> None:
        if not numbers:
            return
        window.renew()
        look = Look(driver, domain, numbers, window.length, avoid)
        if window.apart:
            found = self._anywhere(look)
        elif policy == "lowest":
            found = look.lowest(0)
        elif policy == "next_fit":
            found = look.lowest(window.cursor % numbers.size) or look.lowest(0)
        else:
            found = self._anywhere(look)
        window.free.extend(found)

    def _anywhere(self, look: Look) -> list[int]:
        found = look.probe(self._chance) if look.numbers.size > 2 * RUNS * RUN else []
        if found:
            return found[: look.wanted]
        # Not so near the end that there would be nothing behind it to choose from.
        start = self._chance.randrange(max(1, look.numbers.size - LONGEST))
        taken, end = look.stretch(start, PAGE)
        found = self._sample(look.numbers, start, end, taken, look.wanted)
        if not found:
            found = look.lowest(start) or look.lowest(0)
            self._chance.shuffle(found)
        return found

    def _sample(self, numbers: Spans, start: int, end: int, taken: set[int], wanted: int) -> list[int]:
        """Some of the free numbers at the places ``start`` to ``end``."""
        if end - start <= 4 * (wanted + len(taken)):
            free = [number for number in map(numbers.at, range(start, end)) if number not in taken]
            self._chance.shuffle(free)
            return free[:wanted]
        # At most a quarter of the stretch is taken or chosen: throwing again is cheap.
        chosen: dict[int, None] = {}
        while len(chosen) < wanted:
            number = numbers.at(self._chance.randrange(start, end))
            if number not in taken:
                chosen[number] = None
        return list(chosen)


@dataclass(frozen=True, slots=True)
class Look:
    """A search for free numbers.

    :ivar wanted: how many are enough.
    :ivar avoid: numbers that are free in the store but not for us.
    """

    driver: StateDriver
    domain: str
    numbers: Spans
    wanted: int
    avoid: Collection[int]

    def probe(self, chance: random.Random) -> list[int]:
        """What is free in some short runs at random places; nothing, where little is."""
        numbers = self.numbers
        count = min(RUNS, max(2, self.wanted // IN_A_RUN))
        runs = [numbers.run(chance.randrange(numbers.size), RUN) for _ in range(count)]
        query = Query(Allocation, prefix=(self.domain,), runs=tuple((hexed(run.lo), hexed(run.hi)) for run in runs))
        drawn = {number for run in runs for number in range(run.lo, run.hi + 1, numbers.step)}
        drawn.difference_update(self.avoid, (int(key[1], 16) for key in self.driver.keys(query)))
        found = list(drawn)
        chance.shuffle(found)
        return found

    def stretch(self, start: int, page: int) -> tuple[set[int], int]:
        """The taken numbers from a place on, and the place up to which that is all of them.

        Never asks for more than a page: a store may count what it does not answer with, as etcd does.
        """
        last = min(start + page, self.numbers.size)
        lo, hi = self.numbers.at(start), self.numbers.at(last - 1)
        query = Query(Allocation, prefix=(self.domain,), lo=hexed(lo), hi=hexed(hi), limit=page)
        taken = [int(key[1], 16) for key in self.driver.keys(query)]
        end = last if len(taken) < page else self.numbers.place(taken[-1] + 1)
        return {*taken, *self.avoid}, end

    def lowest(self, start: int) -> list[int]:
        """The first free numbers from a place on.

        Reads a page; where it leaves no gap, a larger one; then halves the rest by counting, so memory stays constant.
        """
        page = PAGE
        while start < self.numbers.size:
            if page > LARGEST_PAGE and not self.avoid:
                return self._by_count(start)
            found, end = self._free(start, min(page, LARGEST_PAGE))
            if found:
                return found
            start, page = end, page * 4
        return []

    def _free(self, start: int, page: int) -> tuple[list[int], int]:
        """The first free numbers of a stretch, and the place where it ends."""
        taken, end = self.stretch(start, page)
        free = (number for number in map(self.numbers.at, range(start, end)) if number not in taken)
        return list(islice(free, self.wanted)), end

    def _by_count(self, start: int) -> list[int]:
        first = self.numbers.at(start)
        for span in self.numbers.items:
            if span.hi >= first:
                gap = self._gap(max(span.lo, first), span.hi)
                if gap is not None:
                    # Dear to find, so what follows it is looked at, too. Somebody may have been faster.
                    return self._free(self.numbers.place(gap), PAGE)[0] or [gap]
        return []

    def _gap(self, lo: int, hi: int) -> int | None:
        step = self.numbers.step
        if self._is_full(lo, hi):
            return None
        while lo < hi:
            middle = lo + (hi - lo) // step // 2 * step
            if self._is_full(lo, middle):
                lo = middle + step
            else:
                hi = middle
        return lo

    def _is_full(self, lo: int, hi: int) -> bool:
        taken = self.driver.count(Query(Allocation, prefix=(self.domain,), lo=hexed(lo), hi=hexed(hi)))
        return taken >= (hi - lo) // self.numbers.step + 1
