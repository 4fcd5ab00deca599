"""The fullest device that still has room: pack, and leave the others free."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source


class MostLoaded(Algorithm):
    """The device whose fullest resource class is the fullest; by chance among exact equals."""

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.BY_FILL,)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return sorted(random.sample(candidates, len(candidates)), key=lambda candidate: -candidate.load)
