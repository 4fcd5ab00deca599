"""Sets of whole numbers, kept as sorted, disjoint, inclusive spans: a range of 2^24 numbers costs as much as one of two."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """All numbers from ``lo`` to ``hi``, both included."""

    lo: int
    hi: int

    @property
    def size(self) -> int:
        return self.hi - self.lo + 1


@dataclass(frozen=True, slots=True)
class Spans:
    """An ordered set of numbers ``lo, lo + step, …`` in each span.

    :param step: distance of two neighbours; every ``lo`` lies on a multiple of it, every ``hi`` starts the last one.
    """

    items: tuple[Span, ...] = ()
    step: int = 1
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts, total = [], 0
        for span in self.items:
            starts.append(total)
            total += (span.hi - span.lo) // self.step + 1
        object.__setattr__(self, "_starts", (*starts, total))

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]], step: int = 1) -> Spans:
        """Sort and join. Spans may touch or overlap."""
        joined: list[Span] = []
        for lo, hi in sorted(pairs):
            if joined and lo <= joined[-1].hi + step:
                joined[-1] = Span(joined[-1].lo, max(joined[-1].hi, hi))
            else:
                joined.append(Span(lo, hi))
        return cls(tuple(joined), step)

    @property
    def size(self) -> int:
        """How many numbers there are; may be more than ``len`` could tell."""
        return self._starts[-1]

    def __bool__(self) -> bool:
        return bool(self.items)

    def __contains__(self, number: int) -> bool:
        return self.index(number) is not None

    def at(self, index: int) -> int:
        """The number at a place, counted from 0."""
        place = bisect_right(self._starts, index) - 1
        return self.items[place].lo + (index - self._starts[place]) * self.step

    def run(self, index: int, length: int) -> Span:
        """The stretch from a place on: ``length`` numbers of one span, fewer at its end."""
        place = bisect_right(self._starts, index) - 1
        lo, hi = self.at(index), self.items[place].hi
        return Span(lo, min(hi, lo + (length - 1) * self.step))

    def index(self, number: int) -> int | None:
        """The place of a number; None = it is not in the set."""
        place = bisect_right(self.items, (number, float("inf"))) - 1
        if place < 0:
            return None
        span = self.items[place]
        if number > span.hi or (number - span.lo) % self.step:
            return None
        return self._starts[place] + (number - span.lo) // self.step

    def place(self, number: int) -> int:
        """How many numbers of the set are smaller than ``number``."""
        place = bisect_right(self.items, (number - 1, float("inf"))) - 1
        if place < 0:
            return 0
        span = self.items[place]
        inside = (min(number - 1, span.hi) - span.lo) // self.step + 1
        return self._starts[place] + inside

    def minus(self, other: Spans) -> Spans:
        left: list[Span] = list(self.items)
        for cut in other.items:
            left = [piece for span in left for piece in _cut(span, cut, self.step)]
        return Spans(tuple(left), self.step)

    def overlap(self, other: Spans) -> Span | None:
        """The first stretch that both have in common, whatever their steps."""
        for mine in self.items:
            for theirs in other.items:
                lo, hi = max(mine.lo, theirs.lo), min(mine.hi + self.step - 1, theirs.hi + other.step - 1)
                if lo <= hi:
                    return Span(lo, hi)
        return None

    def __iter__(self) -> Iterator[int]:
        for span in self.items:
            yield from range(span.lo, span.hi + 1, self.step)


def _cut(span: Span, cut: Span, step: int) -> list[Span]:
    if cut.hi < span.lo or cut.lo > span.hi:
        return [span]
    # The last number below the cut, and the first above it, on the grid that starts at the span's first number.
    below = span.lo + (cut.lo - 1 - span.lo) // step * step
    above = span.lo + (cut.hi - span.lo) // step * step + step
    return [piece for piece in (Span(span.lo, below), Span(above, span.hi)) if piece.lo <= piece.hi]


def listing(numbers: Iterable[int], show: Callable[[int], str] = str, step: int = 1) -> str:
    """Numbers as people write them: ``1-2, 19``."""
    return listing_of(Spans.of(((number, number) for number in numbers), step), show)


def listing_of(spans: Spans, show: Callable[[int], str] = str) -> str:
    """As :func:`listing`, of spans."""
    return ", ".join(show(span.lo) if span.lo == span.hi else f"{show(span.lo)}-{show(span.hi)}" for span in spans.items)
