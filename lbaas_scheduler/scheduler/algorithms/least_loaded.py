"""The emptiest device, the default."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source

WINDOW = 100
"""Devices whose fill differs by less than this (in 1/10,000) from the emptiest one's count as equally empty.

Servers that place at the same moment read the same page. Were each to take the single emptiest device, all would queue for
one row (and on Galera fail at commit); inside a window of equals they spread by chance.
"""


class LeastLoaded(Algorithm):
    """The device whose fullest resource class is the emptiest; by chance among about equals."""

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.BY_LOAD,)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return by_load(candidates, random)


def by_load(candidates: Sequence[Candidate], random: Random) -> list[Candidate]:
    """Emptiest first; those that are about as empty as the first one are shuffled."""
    if not candidates:
        return []
    ascending = sorted(candidates, key=lambda candidate: candidate.load)
    limit = ascending[0].load + WINDOW
    equals = [candidate for candidate in ascending if candidate.load < limit]
    return random.sample(equals, len(equals)) + ascending[len(equals) :]
