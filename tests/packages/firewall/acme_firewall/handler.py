"""Walls: the devices of one firewall vendor."""

from __future__ import annotations

from oslo_config import cfg

from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.sdk.handlers import DeviceHandler

OPTIONS = [cfg.IntOpt("max_rack_distance", default=10, min=0, help="Racks between a wall and what it protects, at most.")]


class WallHandler(DeviceHandler):
    device_type = "wall"
    traits = frozenset({"CUSTOM_STATEFUL"})

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    @classmethod
    def register_opts(cls, conf: object) -> None:
        conf.register_opts(OPTIONS, group="wall")  # type: ignore[attr-defined]

    def validate_device(self, device: Device) -> None:
        if not isinstance(device.extra.get("rack"), int):
            raise InvalidRequest(reason="extra.rack must be the number of the rack that the wall stands in")

    def is_good(self, device: Candidate, request: ScheduleRequest) -> Verdict:
        distance = abs(device.device.extra["rack"] - request.resource.rack)
        if distance > self._conf.wall.max_rack_distance:
            return Verdict.no(f"stands {distance} racks away; {self._conf.wall.max_rack_distance} are allowed")
        return Verdict.yes()

    def weigh(self, device: Candidate, request: ScheduleRequest) -> float:
        return 100.0 - abs(device.device.extra["rack"] - request.resource.rack)
