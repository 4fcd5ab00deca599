"""No new wiring where it can be helped."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source
from lbaas_scheduler.scheduler.algorithms.least_loaded import by_load


class Wired(Algorithm):
    """A device that is wired to all of the request's networks already; else to some of them; else the emptiest.

    Option ``strict``: once a device is wired to one of the networks, only devices that are wired to all of them will do.
    """

    measures_load = True

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        if not request.networks:
            return (Source.BY_LOAD,)
        if request.options.get("strict"):
            return (Source.WIRED, Source.FIRST_OF_NETWORK)
        return (Source.WIRED, Source.HOSTING_NETWORK, Source.BY_LOAD)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return by_load(request, candidates, random)
