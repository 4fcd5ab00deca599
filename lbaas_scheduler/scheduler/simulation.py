"""A dry run: places on paper, over pages of the real fleet. Claims nothing and writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lbaas_scheduler.domain.capacity import UNLIMITED, Usage
from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.fleet import DeviceClass, Diagnosis, Page, PageQuery, Resolution, Source
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.simulation import Filled, Prospect, Share, Simulation
from lbaas_scheduler.domain.trail import Rejection, Trail
from lbaas_scheduler.scheduler.classes import resolve
from lbaas_scheduler.scheduler.framework import CandidateReader, ClassesChanged, Scheduler
from lbaas_scheduler.scheduler.recorder import Recorder

MAX_COUNT = 1000
"""So many resources one dry run may place."""

FULL = 10_000


class Foresight(CandidateReader, Protocol):
    """A reader that can tell in advance what a claim would meet."""

    def prospect(self, candidate: Candidate, request: ScheduleRequest) -> Prospect:
        """What a claim of ``request`` would find on the candidate's device, beyond what is in the candidate."""


def simulate(scheduler: Scheduler, reader: Foresight, request: ScheduleRequest, count: int) -> Simulation:
    """Place ``count`` resources such as ``request``, one after the other, on paper; stops at the first that finds no device.

    :raises ClassesChanged: as :meth:`Scheduler.pages`: read the classes and begin anew.
    """
    resolution = resolve(reader.classes(), request)
    paper = Paper(reader, request)
    filled: list[Filled] = []
    trail = Trail()
    placed = 0
    while placed < count:
        turn = request if placed == 0 else replace(request, resource_id=f"{request.resource_id}-{placed}")
        recorder = scheduler.recorder(turn)
        taken = _place(scheduler, paper, turn, resolution, recorder)
        if taken is None:
            trail = _diagnosed(paper, turn, resolution, recorder)
            break
        placed += 1
        trail = recorder.trail()
        limit = paper.limited_by(taken.device.id)
        if limit is not None:
            filled.append(Filled(taken.device.id, taken.device.name, limit, placed))
    return Simulation(count, placed, paper.shares(), tuple(filled), trail)


def _place(
    scheduler: Scheduler, paper: Paper, request: ScheduleRequest, resolution: Resolution, recorder: Recorder
) -> Candidate | None:
    for page in scheduler.pages(request, resolution, paper, recorder):
        for judged in page:
            if paper.take(judged.candidate, recorder):
                return judged.candidate
    return None


def _diagnosed(paper: Paper, request: ScheduleRequest, resolution: Resolution, recorder: Recorder) -> Trail:
    diagnosis = paper.diagnose(request, resolution, recorder.rejected)
    if diagnosis.version != resolution.version:
        raise ClassesChanged
    recorder.diagnose(diagnosis)
    return recorder.trail()


@dataclass(frozen=True, slots=True)
class _Touched:
    """A device that took something on paper. ``class_ids``: of the tier that it was read from."""

    candidate: Candidate
    class_ids: frozenset[int]
    load_before: int
    count: int = 0


class Paper:
    """A :class:`Foresight` on which claims are noted. Good for copies of one request, in one thread.

    Devices that took something are left out of what the database is asked for, and merged into its answer as they would be.
    """

    def __init__(self, reader: Foresight, request: ScheduleRequest) -> None:
        self._reader = reader
        self._request = request
        self._touched: dict[str, _Touched] = {}
        self._tiers: dict[str, frozenset[int]] = {}

    def classes(self) -> Sequence[DeviceClass]:
        return self._reader.classes()

    def refresh(self) -> None:
        self._reader.refresh()

    def prospect(self, candidate: Candidate, request: ScheduleRequest) -> Prospect:
        return self._reader.prospect(candidate, request)

    def page(self, query: PageQuery) -> Page:
        if self._touched and query.source in _ONLY_AS_THE_FIRST and (query.request.networks or query.source in _OF_TENANT):
            return Page(())
        page = self._reader.page(replace(query, seen=query.seen | self._touched.keys()))
        self._tiers.update((candidate.device.id, query.class_ids) for candidate in page.candidates)
        noted = [
            it.candidate
            for device_id, it in self._touched.items()
            if it.class_ids == query.class_ids and device_id not in query.seen and self.limited_by(device_id) is None
        ]
        if query.source in _OF_NETWORK and not query.request.networks:
            noted = []
        merged = _merged(query.source, page.candidates, noted)
        return replace(page, candidates=merged[: query.size], last=page.last and len(merged) <= query.size)

    def diagnose(self, request: ScheduleRequest, resolution: Resolution, known: Collection[str]) -> Diagnosis:
        real = self._reader.diagnose(request, resolution, {*known, *self._touched})
        full = [
            Rejection(device_id, it.candidate.device.name, f"capacity.{name}", f"would have no room for a further one: {name}")
            for device_id, it in self._touched.items()
            if device_id not in known and (name := self.limited_by(device_id)) is not None
        ]
        counts = Counter(real.counts)
        counts.update(rejection.code for rejection in full)
        return Diagnosis(counts, (*full, *real.rejections), real.version)

    def take(self, candidate: Candidate, recorder: Recorder) -> bool:
        """Note a claim. :returns: False = the real one would fail; that is recorded."""
        device_id = candidate.device.id
        touched = self._touched.get(device_id)
        if touched is None:
            prospect = self._reader.prospect(candidate, self._request)
            if not prospect.wires:
                recorder.reject(candidate, "network.vlans", "has no VLAN left on any interface for a further network")
                return False
            whole = replace(candidate, usage={**candidate.usage, **prospect.usage})
            touched = _Touched(whole, self._tiers[device_id], candidate.load)
        after = _after(touched.candidate, self._request)
        self._touched[device_id] = replace(touched, candidate=after, count=touched.count + 1)
        return True

    def limited_by(self, device_id: str) -> str | None:
        """The resource class that a touched device has too little of for a further resource; None = it has room."""
        usage = self._touched[device_id].candidate.usage
        short = (name for name, amount in sorted(self._request.demand.items()) if name in usage and not usage[name].takes(amount))
        return next(short, None)

    def shares(self) -> tuple[Share, ...]:
        """Of the devices that took something, those with the most first."""
        shares = (_share(it) for it in self._touched.values())
        return tuple(sorted(shares, key=lambda share: (-share.count, share.device_name)))


def _share(touched: _Touched) -> Share:
    device, load = touched.candidate.device, touched.candidate.load
    return Share(device.id, device.name, device.device_type, touched.count, touched.load_before, load)


_OF_TENANT = frozenset({Source.HOSTING_TENANT, Source.FIRST_OF_TENANT})
_OF_NETWORK = frozenset({Source.HOSTING_NETWORK, Source.WIRED})
_ONLY_AS_THE_FIRST = frozenset({Source.FIRST_OF_TENANT, Source.FIRST_OF_NETWORK})


def _merged(source: Source, read: Sequence[Candidate], noted: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Both in the order of the source."""
    if not noted:
        return tuple(read)
    if source is Source.RANDOM:
        start = read[0].seq if read else 0
        return tuple(sorted((*read, *noted), key=lambda it: (it.seq < start, it.seq)))
    return tuple(sorted((*read, *noted), key=_ORDERS.get(source, _by_load)))


def _by_load(candidate: Candidate) -> tuple[int, ...]:
    return candidate.load, candidate.seq


_ORDERS: Mapping[Source, Callable[[Candidate], tuple[int, ...]]] = {
    Source.BY_FILL: lambda it: (-it.load, -it.seq),
    Source.BY_AGE: lambda it: (it.seq,),
}


def _after(candidate: Candidate, request: ScheduleRequest) -> Candidate:
    """The candidate with one more such resource on it."""
    usage = {
        name: replace(it, used=it.used + request.demand.get(name, 0)) if name in request.demand else it
        for name, it in candidate.usage.items()
    }
    standard = [it for name, it in usage.items() if not name.startswith("CUSTOM_")]
    load = max((_load(it) for it in standard), default=candidate.load)
    networks = candidate.networks | set(request.networks)
    return replace(candidate, usage=usage, load=load, networks=networks, hosts_tenant=True)


def _load(usage: Usage) -> int:
    """As the database computes it."""
    if usage.limit == UNLIMITED:
        return 0
    return FULL if usage.used >= usage.limit else usage.used * FULL // usage.limit
