"""Cutting a set of keys into pieces that fit into one statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

# Databases bound the number of parameters of a statement; SQLite at 32,766, and plans for long lists get slow long before.
# A page of a list, as long as they are by default and the one object more that tells whether there is a next, fits into one.
SIZE = 1001


def chunks(values: Iterable[str], size: int = SIZE) -> Iterator[Sequence[str]]:
    """The distinct values, ``size`` at a time, ascending: so concurrent transactions lock rows in the same order."""
    ordered = sorted(set(values))
    return (ordered[start : start + size] for start in range(0, len(ordered), size))
