"""An algorithm that only firewalls have."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source


class Nearest(Algorithm):
    """The device whose rack is the closest to the tenant's servers."""

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.BY_AGE,)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return sorted(candidates, key=lambda candidate: abs(candidate.device.extra["rack"] - request.resource.rack))
