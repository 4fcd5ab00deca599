"""The scheduler's side of the fake vendor."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from oslo_config import cfg

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.sdk.handlers import Ability, DeviceHandler, HealthReport
from lbaas_scheduler.vendors.fake import faults, options
from lbaas_scheduler.vendors.fake.faults import Faults

ABSURD_WEIGHT = 1e9


class FakeHandler(DeviceHandler):
    """Can do all that LBaaS v1 knows. ``device.extra`` says what goes wrong, see :mod:`.faults`.

    A vendor keeps what it needs: ``device_type``, ``traits`` and ``validate_device`` are enough for a start. The other
    methods have sensible defaults; ``abilities`` names those optional ones that are really there.
    """

    device_type = "fake"
    traits = traits.STANDARD
    abilities = frozenset({Ability.SELECT, Ability.MONITOR})

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    @classmethod
    def register_opts(cls, conf: object) -> None:
        options.register_opts(cast("cfg.ConfigOpts", conf))

    def validate_device(self, device: Device) -> None:
        faults.parse(device.extra)

    def is_good(self, device: Candidate, request: ScheduleRequest) -> Verdict:
        told = _begin(device.device, "is_good")
        if "is_good" in told.lie:
            return cast("Verdict", f"perhaps {request.resource_id}")
        return Verdict.no(told.reject) if told.reject else Verdict.yes()

    def weigh(self, device: Candidate, request: ScheduleRequest) -> float:
        told = _begin(device.device, "weigh")
        return ABSURD_WEIGHT if "weigh" in told.lie else told.weight

    def select(self, devices: Sequence[Candidate], request: ScheduleRequest) -> Sequence[Candidate]:
        """The emptiest first; a tie is broken by the id, so that the order is always the same."""
        if any("select" in _begin(candidate.device, "select").lie for candidate in devices):
            return [_invented(devices[0])]
        return sorted(devices, key=lambda candidate: (candidate.load, candidate.device.id))

    def get_status(self, device: Device) -> HealthReport:
        told = _begin(device, "get_status")
        if told.offline and "get_status" not in told.lie:
            return HealthReport(online=False, detail="The fake device was told to be offline.")
        load: dict[str, Any] = {"cpu_percent": 0}
        if "active_connections" in told.counters:
            load["connections"] = told.counters["active_connections"]
        return HealthReport(online=True, detail="The fake device is fine.", load=load)


def _begin(device: Device, call: str) -> Faults:
    """Let the call be as slow and as broken as the device was told to be."""
    told = faults.parse(device.extra)
    time.sleep(told.delay(call))
    told.strike(call)
    return told


def _invented(candidate: Candidate) -> Candidate:
    return replace(candidate, device=replace(candidate.device, id="a-device-that-nobody-offered"))
