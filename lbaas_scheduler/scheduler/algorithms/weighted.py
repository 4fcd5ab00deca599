"""Several wishes at once, each with its weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source

Weigher = Callable[[ScheduleRequest, Candidate], float]
"""How well a device meets one wish, 0 to 1."""

DEFAULT: Mapping[str, float] = {"load": 1.0, "wired": 1.0, "handler": 1.0}


def _wired(request: ScheduleRequest, candidate: Candidate) -> float:
    return len(candidate.networks) / len(request.networks) if request.networks else 0.0


WEIGHERS: Mapping[str, Weigher] = {
    "load": lambda _, candidate: 1.0 - candidate.load / 10_000,
    "wired": _wired,
    "network": lambda _, candidate: float(bool(candidate.networks)),
    "tenant": lambda _, candidate: float(candidate.hosts_tenant),
    "handler": lambda _, candidate: candidate.weight / 100,
    "zone": lambda request, candidate: float(candidate.device.zone == request.options.get("zone")),
}
"""``load``: empty. ``wired``: the share of the request's networks that is wired. ``network``: at least one is. ``tenant``: holds
something of the tenant. ``handler``: what the vendor says. ``zone``: in the zone that option ``zone`` prefers."""


class Weighted(Algorithm):
    """The device with the highest sum of weighers × multipliers; by chance among equals.

    Option ``weighers``: name → multiplier; see :data:`WEIGHERS`, default :data:`DEFAULT`. A negative multiplier turns a
    weigher round, so that a tenant's resources spread. The emptiest devices compete with those that are near to the tenant or
    the networks, as far as a weigher asks for it: a page of each.
    """

    together = True

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        weights = multipliers(request.options)
        sources = []
        if weights.get("tenant", 0) > 0:
            sources.append(Source.HOSTING_TENANT)
        if request.networks and max(weights.get("wired", 0), weights.get("network", 0)) > 0:
            sources.append(Source.HOSTING_NETWORK)
        return (*sources, Source.BY_LOAD)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        weights = multipliers(request.options)

        def score(candidate: Candidate) -> float:
            return sum(multiplier * WEIGHERS[name](request, candidate) for name, multiplier in weights.items())

        return sorted(random.sample(candidates, len(candidates)), key=score, reverse=True)


def multipliers(options: Mapping[str, Any]) -> Mapping[str, float]:
    """Check and read option ``weighers``.

    :raises InvalidRequest: an unknown weigher, or a multiplier that is not a finite number.
    """
    given = options.get("weighers", DEFAULT)
    if not isinstance(given, Mapping) or not given:
        raise InvalidRequest(reason="option weighers must map names of weighers to multipliers, such as {'load': 1, 'wired': 2}")
    weights = {}
    for name, multiplier in given.items():
        if name not in WEIGHERS:
            raise InvalidRequest(reason=f"unknown weigher '{name}'; known: {', '.join(sorted(WEIGHERS))}")
        try:
            weights[name] = float(multiplier)
        except (TypeError, ValueError):
            weights[name] = math.nan
        if not math.isfinite(weights[name]):
            raise InvalidRequest(reason=f"weigher '{name}': {multiplier!r} is not a finite number")
    return weights
