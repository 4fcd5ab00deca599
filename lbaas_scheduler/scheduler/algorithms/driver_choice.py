"""Two steps: first the driver, by load; then the driver picks the device."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source
from lbaas_scheduler.scheduler.algorithms.least_loaded import by_load


class DriverChoice(Algorithm):
    """The device type of the emptiest device comes first; its handler, if it can select, orders the devices of its type.

    Handlers that cannot select have their devices used emptiest first.
    """

    vendors_select = True
    measures_load = True

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.BY_LOAD,)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return by_load(request, candidates, random)
