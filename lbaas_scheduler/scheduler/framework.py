"""From a request to devices in order of preference, page by page."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Protocol

from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.fleet import DeviceClass, Diagnosis, Page, PageQuery, Resolution, Source
from lbaas_scheduler.domain.requests import ScheduleRequest, Tenancy
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.scheduler.algorithms.base import Algorithm
from lbaas_scheduler.scheduler.algorithms.least_loaded import Measure, measure_of
from lbaas_scheduler.scheduler.gate import HandlerGate, Judged
from lbaas_scheduler.scheduler.recorder import Recorder


class ClassesChanged(Exception):
    """A class of devices was added since the request was resolved: read the classes and resolve it again."""


class CandidateReader(Protocol):
    """Reads the fleet. Implemented by ``db/candidates.py``; by a list in tests."""

    def classes(self) -> Sequence[DeviceClass]:
        """All classes of devices, as this process knows them: possibly not the newest."""

    def refresh(self) -> None:
        """Read the classes anew."""

    def page(self, query: PageQuery) -> Page:
        """Read up to ``query.size`` schedulable devices with room for the request's demand."""

    def diagnose(self, request: ScheduleRequest, resolution: Resolution, known: Collection[str]) -> Diagnosis:
        """Why the devices of the fleet cannot take the request, but for the ``known`` ones (ids)."""


class Scheduler:
    """Orders devices for requests of one service. Holds no state that a decision depends on.

    :param algorithms: name → algorithm.
    :param default_algorithm: the one that is used when a request names none.
    :param page_size: how many candidates are read and judged at a time.
    :param max_rounds: how many pages one placement may look at, all sources and tiers together; empty ones do not count.
    :param options: of the algorithms, where a request does not say otherwise.
    :param seed: makes decisions repeatable; None = real chance.
    """

    def __init__(
        self,
        gate: HandlerGate,
        algorithms: Mapping[str, Algorithm],
        default_algorithm: str,
        page_size: int = 32,
        max_rounds: int = 4,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._gate = gate
        self._algorithms = algorithms
        self._default_algorithm = default_algorithm
        self._page_size = page_size
        self._max_rounds = max_rounds
        self._seed = seed
        self._options = options or {}

    @property
    def algorithm_names(self) -> Collection[str]:
        return self._algorithms.keys()

    def recorder(self, request: ScheduleRequest) -> Recorder:
        """What :meth:`pages` writes the request's trail with."""
        name = request.algorithm or self._default_algorithm
        measure = self._measure(name, {**self._options, **request.options})
        return Recorder(name, request.tenancy, request.rule, "" if measure is Measure.PLACED else str(measure))

    def pages(
        self, request: ScheduleRequest, resolution: Resolution, reader: CandidateReader, recorder: Recorder
    ) -> Iterator[list[Judged]]:
        """Devices that can take the request, best first, a page at a time; ends after ``max_rounds`` or with the fleet.

        The next page is read only when it is asked for: a caller that claims a device of the first never pays for it.

        :raises ClassesChanged: ``resolution`` is out of date.
        :raises ConfigurationError: the request names an algorithm that is not loaded.
        """
        algorithm = self._algorithm(request)
        if self._options:
            request = replace(request, options={**self._options, **request.options})
        random = Random() if self._seed is None else Random(f"{self._seed}:{request.resource_id}")  # noqa: S311
        for candidates in self._read(request, resolution, algorithm, reader, recorder, random.random()):
            judged = {each.candidate.device.id: each for each in self._gate.judge(request, candidates, recorder)}
            ranked = algorithm.rank(request, [each.candidate for each in judged.values()], random)
            if algorithm.vendors_select:
                ranked = self._gate.select(request, ranked, recorder)
            preferred = _prefer([judged[candidate.device.id] for candidate in ranked], request.preferred)
            recorder.consider([it.candidate for it in preferred])
            yield preferred

    def _read(
        self,
        request: ScheduleRequest,
        resolution: Resolution,
        algorithm: Algorithm,
        reader: CandidateReader,
        recorder: Recorder,
        pivot: float,
    ) -> Iterator[Sequence[Candidate]]:
        def page(source: Source, class_ids: frozenset[int]) -> Page:
            read = reader.page(PageQuery(request, class_ids, source, self._page_size, frozenset(seen), pivot, reported))
            if read.version not in (None, resolution.version):
                raise ClassesChanged
            recorder.read(read)
            seen.update(candidate.device.id for candidate in read.candidates)
            seen.update(rejection.device_id for rejection in read.rejections)
            return read

        seen = set(request.exclude)
        reported = algorithm.measures_load and measure_of(request.options) is not Measure.PLACED
        for class_ids in resolution.tiers:
            sources = list(algorithm.sources(request))
            if request.tenancy is Tenancy.DEDICATED:
                # What the tenant has to itself is used up before it gets another device.
                sources.insert(0, Source.HOSTING_TENANT)
            if algorithm.together and len(sources) > 1 and request.tenancy is not Tenancy.DEDICATED:
                yield [candidate for source in sources for candidate in page(source, class_ids).candidates]
            for source in sources:
                last = False
                while not last:
                    if recorder.rounds >= self._max_rounds:
                        return
                    found = page(source, class_ids)
                    last = found.last
                    if found.candidates:
                        yield found.candidates

    def _measure(self, name: str, options: Mapping[str, Any]) -> Measure:
        algorithm = self._algorithms.get(name)
        return measure_of(options) if algorithm is not None and algorithm.measures_load else Measure.PLACED

    def _algorithm(self, request: ScheduleRequest) -> Algorithm:
        name = request.algorithm or self._default_algorithm
        try:
            return self._algorithms[name]
        except KeyError:
            known = ", ".join(sorted(self._algorithms))
            raise ConfigurationError(reason=f"unknown scheduling algorithm '{name}'; loaded: {known}") from None


def _prefer(judged: Sequence[Judged], preferred: frozenset[str]) -> list[Judged]:
    """Devices with more of the preferred traits first; otherwise the order stays."""
    if not preferred:
        return list(judged)
    return sorted(judged, key=lambda each: -len(preferred & each.candidate.device.traits))
