"""Keeps the trail while a decision is being made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.fleet import Diagnosis, Page
from lbaas_scheduler.domain.trail import MAX_CONSIDERED, MAX_REJECTIONS, Considered, Rejection, Trail


class Recorder:
    """Counts every rejection and keeps the first :data:`~lbaas_scheduler.domain.trail.MAX_REJECTIONS` whole."""

    def __init__(self, algorithm: str, tenancy: str, rule: str = "", measure: str = "") -> None:
        self._algorithm = algorithm
        self._tenancy = tenancy
        self._rule = rule
        self._measure = measure
        self._considered: tuple[Considered, ...] = ()
        self._dropped: Counter[str] = Counter()
        self._rejections: list[Rejection] = []
        self._rejected: set[str] = set()
        self.rounds = 0
        self.examined = 0

    @property
    def rejected(self) -> frozenset[str]:
        """Ids of all devices that were rejected, the ones not named in the trail too."""
        return frozenset(self._rejected)

    def read(self, page: Page) -> None:
        """A page came from the database. An empty one is no round."""
        examined = len(page.candidates) + len(page.rejections)
        self.rounds += examined > 0
        self.examined += examined
        for rejection in page.rejections:
            self.add(rejection)

    def consider(self, ranked: Sequence[Candidate]) -> None:
        """A page of devices that would all do, best first. The trail names the best ones of the last page."""
        self._considered = tuple(
            Considered(it.device.id, it.device.name, it.load, it.weight, it.connections) for it in ranked[:MAX_CONSIDERED]
        )

    def reject(self, candidate: Candidate, code: str, reason: str) -> None:
        """``code`` and ``reason``: as in :class:`~lbaas_scheduler.domain.trail.Rejection`."""
        self.add(Rejection(candidate.device.id, candidate.device.name, code, reason))

    def add(self, rejection: Rejection) -> None:
        self._dropped[rejection.code] += 1
        self._rejected.add(rejection.device_id)
        self._keep((rejection,))

    def diagnose(self, diagnosis: Diagnosis) -> None:
        """Add what was dropped before anybody looked. It must leave out the :attr:`rejected` ones, which count already."""
        self._dropped.update(diagnosis.counts)
        self._keep(diagnosis.rejections)

    def _keep(self, rejections: Iterable[Rejection]) -> None:
        free = MAX_REJECTIONS - len(self._rejections)
        if free > 0:
            self._rejections.extend(list(rejections)[:free])

    def trail(self) -> Trail:
        """As far as it is known now."""
        return Trail(
            algorithm=self._algorithm,
            tenancy=self._tenancy,
            rounds=self.rounds,
            examined=self.examined,
            dropped=dict(self._dropped),
            rejections=tuple(self._rejections),
            considered=self._considered,
            rule=self._rule,
            measure=self._measure,
        )
