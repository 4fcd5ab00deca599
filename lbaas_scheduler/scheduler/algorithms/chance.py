"""Blind chance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source


class Chance(Algorithm):
    """Any device, each as likely as the others.

    Exactly so while the eligible devices fit in one page; in a larger fleet the page starts at a random place in the
    order of registration, which is uniform up to the gaps that removed devices left there.
    """

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.RANDOM,)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return random.sample(candidates, len(candidates))
