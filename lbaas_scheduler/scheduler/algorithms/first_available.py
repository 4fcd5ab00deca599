"""First fit: the device that was registered first."""

from __future__ import annotations

from collections.abc import Sequence

from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source


class FirstAvailable(Algorithm):
    """Fills the fleet in the order of registration."""

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.BY_AGE,)
