"""A tenant's resources together."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source
from lbaas_scheduler.scheduler.algorithms.least_loaded import by_load


class TenantAffinity(Algorithm):
    """A device that holds something of the tenant already, the emptiest of these; else the emptiest of all.

    Option ``strict``: once a device holds something of the tenant, only such devices will do.
    """

    measures_load = True

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.HOSTING_TENANT, Source.FIRST_OF_TENANT if request.options.get("strict") else Source.BY_LOAD)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return by_load(request, candidates, random)
