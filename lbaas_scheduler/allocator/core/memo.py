"""``functools.cache`` with the function's own types: a class is hashable, which type checkers doubt of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def memo(function: Callable[P, T]) -> Callable[P, T]:
    """Remember results for as long as the process lives. For small sets of arguments."""
    return cast("Callable[P, T]", cache(function))
