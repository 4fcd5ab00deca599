"""Waiting for conditions instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(
    condition: Callable[[], T],
    timeout: float = 30.0,
    what: str = "",
    *,
    interval: float = 0.05,
    ignore: tuple[type[Exception], ...] = (),
) -> T:
    """Call ``condition`` until it returns something true, and return that.

    :param timeout: seconds; then an AssertionError that names ``what`` and shows the last value or error.
    :param interval: seconds between two calls.
    :param ignore: errors that mean "not yet".
    """
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            value = condition()
        except ignore as error:
            last = error
        else:
            if value:
                return value
            last = value
        if time.monotonic() >= deadline:
            name = what or getattr(condition, "__name__", "the condition")
            raise AssertionError(f"waited {timeout:g} s in vain for {name}; last: {last!r}")
        time.sleep(interval)
