"""Keeps the trail while a decision is being made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.trail import MAX_REJECTIONS, Rejection, Trail


class Recorder:
    """Counts every rejection and keeps the first :data:`~lbaas_scheduler.domain.trail.MAX_REJECTIONS` whole."""

    def __init__(self, algorithm: str, tenancy: str) -> None:
        self._algorithm = algorithm
        self._tenancy = tenancy
        self._dropped: Counter[str] = Counter()
        self._rejections: list[Rejection] = []
        self.rounds = 0
        self.examined = 0

    def reject(self, candidate: Candidate, code: str, reason: str) -> None:
        self.add(Rejection(candidate.device.id, candidate.device.name, code, reason))

    def add(self, rejection: Rejection) -> None:
        self._dropped[rejection.code] += 1
        self._keep((rejection,))

    def diagnose(self, counts: Mapping[str, int], rejections: Iterable[Rejection]) -> None:
        """Add what SQL dropped before anybody looked: counts over the whole fleet, and some devices by name."""
        self._dropped.update(counts)
        self._keep(rejections)

    def _keep(self, rejections: Iterable[Rejection]) -> None:
        free = MAX_REJECTIONS - len(self._rejections)
        if free > 0:
            self._rejections.extend(list(rejections)[:free])

    def trail(self) -> Trail:
        return Trail(
            algorithm=self._algorithm,
            tenancy=self._tenancy,
            rounds=self.rounds,
            examined=self.examined,
            dropped=dict(self._dropped),
            rejections=tuple(self._rejections),
        )
