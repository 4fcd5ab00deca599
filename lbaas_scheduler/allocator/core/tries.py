"""Starting again where somebody else was faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lbaas_scheduler.allocator.core.drivers import Collision
from lbaas_scheduler.errors import Contention

TRIES = 20

T = TypeVar("T")


def until_done(attempt: Callable[[], T], what: str, judge: Callable[[Collision], None] = lambda _: None) -> T:
    """The result of ``attempt``, which reads anew each time.

    :param what: was overtaken, for the error's text.
    :param judge: raises what a collision means, where trying again would not help.
    :raises Contention: others were faster, :data:`TRIES` times.
    """
    last: Collision | None = None
    for _ in range(TRIES):
        try:
            return attempt()
        except Collision as collision:
            last = collision
            judge(collision)
    raise Contention(dependency="The allocator", reason=f"{what} was overtaken {TRIES} times") from last
