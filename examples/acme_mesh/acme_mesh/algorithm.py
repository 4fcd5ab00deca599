"""A tenant's VIPs in one mesh."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.scheduler.algorithms.base import Algorithm, Source


class MeshTogether(Algorithm):
    """The emptiest device of the meshes that have something of the tenant; else the emptiest of all."""

    together = True

    def sources(self, request: ScheduleRequest) -> Sequence[Source]:
        return (Source.HOSTING_TENANT, Source.BY_LOAD)

    def rank(self, request: ScheduleRequest, candidates: Sequence[Candidate], random: Random) -> Sequence[Candidate]:
        home = {mesh_of(it) for it in candidates if it.hosts_tenant} - {None}
        shuffled = random.sample(candidates, len(candidates))
        return sorted(shuffled, key=lambda it: (mesh_of(it) not in home, it.load))


def mesh_of(candidate: Candidate) -> str | None:
    """None for other vendors' devices."""
    mesh: str | None = candidate.device.extra.get("mesh")
    return mesh
