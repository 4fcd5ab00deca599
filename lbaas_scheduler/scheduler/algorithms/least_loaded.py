"""The emptiest device, the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Any

from lbaas_scheduler.domain.capacity import CONNECTIONS, UNLIMITED
from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source

WINDOW = 100
"""Devices whose fill differs by less than this (in 1/10,000) from the emptiest one's count as equally empty.

Servers that place at the same moment read the same page. Were each to take the single emptiest device, all would queue for
one row (and on Galera fail at commit); inside a window of equals they spread by chance.
"""

FULL = 10_000
OPTION = "least_loaded_by"


class Measure(StrEnum):
    """What makes a device empty."""

    PLACED = "placed"
    """What is placed on it: the fill of its fullest resource class."""
    REPORTED = "reported"
    """How many connections it has open."""
    BOTH = "both"
    """The mean of the two."""


def measure_of(options: Mapping[str, Any]) -> Measure:
    """Option ``least_loaded_by``, which was checked when it was written."""
    return Measure(options.get(OPTION, Measure.PLACED))


class LeastLoaded(Algorithm):
    """The device whose fullest resource class is the emptiest; by chance among about equals.

    Option ``least_loaded_by`` (:class:`Measure`): by open connections instead, or by both. Pages are read in the order of what is
    placed all the same, so that it is the emptiest page which is ranked anew.
    """

    measures_load = True

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.BY_LOAD,)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        return by_load(request, candidates, random)


def by_load(request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> list[Candidate]:
    """Emptiest first; those that are about as empty as the first one are shuffled."""
    if not candidates:
        return []
    loads = _loads(measure_of(request.options), candidates)
    ascending = sorted(candidates, key=lambda candidate: (loads[candidate.device.id], candidate.load))
    limit = loads[ascending[0].device.id] + WINDOW
    equals = [candidate for candidate in ascending if loads[candidate.device.id] < limit]
    return random.sample(equals, len(equals)) + ascending[len(equals) :]


def _loads(measure: Measure, candidates: Sequence[Candidate]) -> Mapping[str, float]:
    """Device id → how loaded it is, in 1/10,000."""
    placed = {candidate.device.id: candidate.load for candidate in candidates}
    if measure is Measure.PLACED or all(candidate.connections is None for candidate in candidates):
        return placed
    reported = _reported(candidates)
    if measure is Measure.REPORTED:
        return reported
    return {device_id: (load + reported[device_id]) / 2 for device_id, load in placed.items()}


def _reported(candidates: Sequence[Candidate]) -> dict[str, float]:
    """In shares of the devices' CONNECTIONS where each one's are limited, else of the busiest device's.

    A device of which nothing is known must not be favoured: it comes after all others.
    """
    totals = [it.usage[CONNECTIONS].limit if CONNECTIONS in it.usage else UNLIMITED for it in candidates]
    if any(total <= 0 for total in totals):
        totals = [max(1, *(it.connections or 0 for it in candidates))] * len(candidates)
    return {
        it.device.id: FULL + WINDOW if it.connections is None else min(FULL, it.connections * FULL / total)
        for it, total in zip(candidates, totals, strict=True)
    }
