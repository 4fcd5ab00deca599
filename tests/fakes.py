"""Real, small implementations of our own interfaces, for tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from lbaas_scheduler.domain.capacity import Usage
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.fleet import DeviceClass, Diagnosis, Page, PageQuery, Resolution, Source
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.trail import MAX_REJECTIONS, Rejection
from lbaas_scheduler.sdk.handlers import Ability, DeviceHandler

AGENT = "agent-1"


class FleetInMemory:
    """A CandidateReader over a list. ``used``: device id → VIPS that are taken. ``pages``: what was asked for."""

    def __init__(self, devices: Sequence[Device], used: dict[str, int] | None = None) -> None:
        self.used = used or {}
        self.pages: list[PageQuery] = []
        self._devices = list(devices)
        self._class_ids: dict[tuple[Any, ...], int] = {}
        self._known: tuple[DeviceClass, ...] | None = None

    def add(self, device: Device) -> None:
        self._devices.append(device)

    def classes(self) -> Sequence[DeviceClass]:
        if self._known is None:
            self.refresh()
        return self._known or ()

    def refresh(self) -> None:
        self._known = tuple({self._class_of(device): self._class(device) for device in self._devices}.values())

    def page(self, query: PageQuery) -> Page:
        self.pages.append(query)
        found = [
            self._candidate(device)
            for device in self._devices
            if self._class_of(device) in query.class_ids
            and device.id not in query.seen
            and query.request.device_hint in (None, device.id)
            and not self._full(device, query.request)
        ]
        if query.source is Source.BY_LOAD:
            found.sort(key=lambda candidate: candidate.load)
        elif query.source is Source.BY_FILL:
            found.sort(key=lambda candidate: -candidate.load)
        elif query.source is Source.RANDOM:
            start = int(len(found) * query.pivot)
            found = found[start:] + found[:start]
        return Page(tuple(found[: query.size]), last=len(found) <= query.size, version=self._version())

    def diagnose(self, request: ScheduleRequest, resolution: Resolution, known: Collection[str]) -> Diagnosis:
        rejections = []
        for device in self._devices:
            dropped = resolution.dropped.get(self._class_of(device))
            if device.id not in known and dropped is not None:
                rejections.append(Rejection(device.id, device.name, *dropped))
            elif device.id not in known and self._full(device, request):
                rejections.append(Rejection(device.id, device.name, "capacity.VIPS", "has no room for 1 VIPS"))
        counts = Counter(rejection.code for rejection in rejections)
        return Diagnosis(counts, tuple(rejections[:MAX_REJECTIONS]), self._version())

    def _version(self) -> int:
        return max((self._class_of(device) for device in self._devices), default=0)

    def _class_of(self, device: Device) -> int:
        key = (device.service, device.device_type, device.zone, device.form, device.tenant_id, device.shared, device.traits)
        return self._class_ids.setdefault(key, len(self._class_ids) + 1)

    def _class(self, device: Device) -> DeviceClass:
        return DeviceClass(
            self._class_of(device),
            device.service,
            device.device_type,
            device.zone,
            device.form,
            device.tenant_id or "",
            device.shared,
            device.traits,
        )

    def _usage(self, device: Device) -> Usage:
        return Usage(self.used.get(device.id, 0), device.capacities["VIPS"].limit)

    def _full(self, device: Device, request: ScheduleRequest) -> bool:
        return not self._usage(device).takes(request.demand.get("VIPS", 0))

    def _candidate(self, device: Device) -> Candidate:
        usage = self._usage(device)
        return Candidate(device, usage={"VIPS": usage}, agent_host=AGENT, load=int(usage.fill * 10_000))


class ScriptedHandler(DeviceHandler):
    """Does as it is told.

    :param is_good, weigh, select: what the methods do; the default of the interface where absent.
    """

    def __init__(
        self,
        device_type: str = "fake",
        is_good: Callable[[Candidate, ScheduleRequest], Any] | None = None,
        weigh: Callable[[Candidate, ScheduleRequest], Any] | None = None,
        select: Callable[[Sequence[Candidate], ScheduleRequest], Any] | None = None,
    ) -> None:
        self.device_type = device_type
        self.abilities = frozenset({Ability.SELECT}) if select else frozenset()
        self._is_good = is_good or super().is_good
        self._weigh = weigh or super().weigh
        self._select = select or super().select

    def validate_device(self, device: Device) -> None:
        """Everything is valid."""

    def is_good(self, device: Candidate, request: ScheduleRequest) -> Any:
        return self._is_good(device, request)

    def weigh(self, device: Candidate, request: ScheduleRequest) -> Any:
        return self._weigh(device, request)

    def select(self, devices: Sequence[Candidate], request: ScheduleRequest) -> Any:
        return self._select(devices, request)
