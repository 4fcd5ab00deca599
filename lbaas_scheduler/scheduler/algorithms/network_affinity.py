"""A network's resources together."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source
from lbaas_scheduler.scheduler.algorithms.least_loaded import by_load


class NetworkAffinity(Algorithm):
    """A device that is wired to one of the request's networks already, the emptiest of these; else the emptiest of all.

    Option ``strict``: once a device is wired to one of the networks, only such devices will do.
    """

    measures_load = True

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        if not request.networks:
            return (Source.BY_LOAD,)
        return (Source.HOSTING_NETWORK, Source.FIRST_OF_NETWORK if request.options.get("strict") else Source.BY_LOAD)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return by_load(request, candidates, random)
