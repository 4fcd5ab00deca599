"""Places resources of any service: decides outside of a transaction, claims inside of one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeVar

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import placements
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.capacity import VIPS
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.requests import ScheduleRequest, Tenancy
from lbaas_scheduler.domain.simulation import Simulation
from lbaas_scheduler.domain.trail import FIRST_EPOCH, Decision, Rejection, Trail
from lbaas_scheduler.errors import InvalidRequest, NoValidDevice, Unavailable
from lbaas_scheduler.scheduler.classes import resolve
from lbaas_scheduler.scheduler.framework import ClassesChanged, Scheduler
from lbaas_scheduler.scheduler.gate import Judged
from lbaas_scheduler.scheduler.recorder import Recorder
from lbaas_scheduler.scheduler.simulation import MAX_COUNT, Foresight, simulate
from lbaas_scheduler.sdk.networks import NetworkConnector

LOG = logging.getLogger(__name__)

T = TypeVar("T")

Within = Callable[[Connection, Decision], None]
"""Writes what belongs to a placement in its transaction. May be called again for the same decision, after a deadlock."""

MAX_REFRESHES = 5
"""So many times one placement starts over because a new class of devices was registered meanwhile."""


class Places(Protocol):
    """What plugins place by: a :class:`Placer`, or what does something around one."""

    def algorithms(self) -> Mapping[str, Collection[str]]: ...

    def place(self, request: ScheduleRequest, within: Within | None = None, role: str = placements.CURRENT) -> Decision: ...

    def simulate(self, request: ScheduleRequest, count: int = 1) -> Simulation: ...


class Placer:
    """The scheduler that other code calls: picks a device and claims it.

    Any number of servers may place at once on one database. The decision is made on what was read; the claim is guarded
    by the database, so a device that was filled or closed in between is passed over, never over-committed.

    :param schedulers: service → its scheduler.
    :param connector: wires devices to networks; None = they all are.
    """

    def __init__(
        self,
        database: Database,
        reader: Foresight,
        schedulers: Mapping[str, Scheduler],
        connector: NetworkConnector | None = None,
    ) -> None:
        self._database = database
        self._connector = connector
        self._reader = reader
        self._schedulers = schedulers

    def algorithms(self) -> Mapping[str, Collection[str]]:
        """Service → names of the algorithms that a request may name."""
        return {service: scheduler.algorithm_names for service, scheduler in self._schedulers.items()}

    def place(self, request: ScheduleRequest, within: Within | None = None, role: str = placements.CURRENT) -> Decision:
        """Pick a device for a resource and claim what it demands, in one short transaction.

        :param role: of the placement. In any other than the current one, a repetition raises DBDuplicateEntry.
        :param within: called in that transaction, after the claim; what it raises undoes everything and comes out.
        :raises NoValidDevice: ``kwargs["trail"]`` says why.
        :raises InvalidRequest: the service is unknown.
        :raises Unavailable: the database is away.
        """
        try:
            return self._with_classes(lambda: self._place(request, within, role))
        finally:
            if self._connector is not None:
                self._connector.settle()

    def simulate(self, request: ScheduleRequest, count: int = 1) -> Simulation:
        """A dry run: where ``count`` resources such as ``request`` would go one after the other, and what fills up first.

        Nothing is claimed or written, and no transaction is open while handlers are asked.

        :raises InvalidRequest: the service is unknown, or the count is out of bounds.
        :raises Unavailable: the database is away.
        """
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_COUNT:
            raise InvalidRequest(reason=f"count must be an integer from 1 to {MAX_COUNT}")
        scheduler = self._scheduler_for(request)
        return self._with_classes(lambda: simulate(scheduler, self._reader, request, count))

    def _place(self, request: ScheduleRequest, within: Within | None, role: str) -> Decision:
        scheduler = self._scheduler_for(request)
        recorder = scheduler.recorder(request)
        resolution = resolve(self._reader.classes(), request)
        for page in scheduler.pages(request, resolution, self._reader, recorder):
            decision = self._claim(request, page, recorder, within, role)
            if decision is not None:
                return decision
        diagnosis = self._reader.diagnose(request, resolution, recorder.rejected)
        if diagnosis.version != resolution.version:
            raise ClassesChanged
        recorder.diagnose(diagnosis)
        trail = recorder.trail()
        LOG.warning("No device can take a %s resource of tenant %s: %s", request.service, request.tenant_id, trail.told())
        raise NoValidDevice(summary=trail.told(), trail=trail.to_document())

    def _claim(
        self, request: ScheduleRequest, page: list[Judged], recorder: Recorder, within: Within | None, role: str
    ) -> Decision | None:
        """Claim the first device of the page that still has room; the ones that had not are recorded."""
        try:
            decision, lost = self._database.write(
                lambda conn: _claim_first(conn, request, page, recorder.trail(), within, role, self._wire)
            )
        except DBDuplicateEntry:
            if role != placements.CURRENT:
                raise
            # The answer to an earlier COMMIT got lost, or a caller repeats itself: what is placed stays where it is.
            placed = self._database.read(lambda conn: placements.decision(conn, request.resource_id))
            if placed is None:  # it was something of `within` that is there already
                raise
            return placed
        for rejection in lost:
            recorder.add(rejection)
        return decision

    def _wire(self, conn: Connection, device: Device, networks: Collection[str]) -> bool:
        """Only a device whose interfaces are known has to be told networks apart."""
        return self._connector is None or not networks or not device.interfaces or self._connector.wire(conn, device, networks)

    def _with_classes(self, work: Callable[[], T]) -> T:
        """``work``, over again whenever it was done on classes of devices that are out of date."""
        for _ in range(MAX_REFRESHES):
            try:
                return work()
            except ClassesChanged:
                self._reader.refresh()
        raise Unavailable(dependency="The scheduler", reason="classes of devices were added faster than it could read them")

    def _scheduler_for(self, request: ScheduleRequest) -> Scheduler:
        scheduler = self._schedulers.get(request.service)
        if scheduler is None:
            known = ", ".join(sorted(self._schedulers))
            raise InvalidRequest(reason=f"no scheduler is loaded for service '{request.service}'; loaded: {known}")
        if request.tenancy is Tenancy.DEDICATED and VIPS not in request.demand:
            raise InvalidRequest(reason=f"only what demands {VIPS} can have a device of its own (tenancy {Tenancy.DEDICATED})")
        return scheduler


def _claim_first(
    conn: Connection,
    request: ScheduleRequest,
    page: list[Judged],
    trail: Trail,
    within: Within | None,
    role: str,
    wire: Callable[[Connection, Device, Collection[str]], bool],
) -> tuple[Decision | None, list[Rejection]]:
    lost: list[Rejection] = []
    for judged in page:
        device = judged.candidate.device
        obstacle = placements.claim(conn, request, judged.candidate)
        if obstacle is None and not wire(conn, device, request.networks):
            placements.give_back(conn, device.id, request.demand, request.networks)
            obstacle = "network.segment"
        if obstacle is None:
            decision = _decision(request, judged, trail.extended(lost))
            placements.insert(conn, request, decision, role)
            if within is not None:
                within(conn, decision)
            return decision, lost
        lost.append(Rejection(device.id, device.name, obstacle, _OBSTACLES.get(obstacle, "has no room left")))
    return None, lost


_OBSTACLES = {
    "claim.lost": "was filled or closed by somebody else in between",
    "network.segment": "cannot carry the network on its interface",
    "network.vlans": "has no VLAN left on any interface for a further network",
}


def _decision(request: ScheduleRequest, judged: Judged, trail: Trail) -> Decision:
    device = judged.candidate.device
    return Decision(
        resource_id=request.resource_id,
        device_id=device.id,
        device_name=device.name,
        device_type=device.device_type,
        agent_host=judged.candidate.agent_host,
        score=judged.weight,
        epoch=FIRST_EPOCH,
        trail=trail,
    )
