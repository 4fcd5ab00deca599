"""The interface of a scheduling algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.fleet import Source
from lbaas_scheduler.domain.requests import ScheduleRequest

__all__ = ["Algorithm", "Source"]


class Algorithm(ABC):
    """Orders the devices that could take a request. Built without arguments, shared by all threads: keep no state.

    The framework reads candidates page by page from the algorithm's :meth:`sources`, lets the vendors' handlers judge
    them, and hands each page to :meth:`rank`. The first of the ranked devices that can be claimed takes the resource.
    ``request.options`` are those of the service type over those of the configuration.
    An exception from either method fails the placement: an algorithm is the operator's choice, not a vendor's.
    """

    together: bool = False
    """Whether one page of every source is read before the first ranking, so that devices of all sources compete."""
    vendors_select: bool = False
    """Whether handlers with the ability SELECT then order their own devices: the second of two steps."""

    measures_load: bool = False
    """Whether option ``least_loaded_by`` means something to it: candidates then carry the connections that they reported."""

    @abstractmethod
    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        """In what order to read candidates. A source is read to its end before the next one is."""

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        """Order one page, best first; leave out what must not be used. Default: as read.

        :param random: the only source of chance to use, so that the same snapshot and seed give the same decision.
        """
        return candidates
