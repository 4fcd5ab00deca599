"""A device handler that answers when it is told to."""

from __future__ import annotations

from pathlib import Path

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.sdk.handlers import DeviceHandler
from tests.rig.waiting import wait_for


class PatientHandler(DeviceHandler):
    """Leaves a file ``asked`` in the folder that ``device.extra`` names, and answers once there is one called ``answer``."""

    device_type = "patient"
    traits = traits.STANDARD

    def __init__(self, conf: object) -> None:
        """Takes no options."""

    def validate_device(self, device: Device) -> None:
        """Every device is good."""

    def is_good(self, device: Candidate, request: ScheduleRequest) -> Verdict:
        folder = Path(device.device.extra["folder"])
        (folder / "asked").touch()
        wait_for((folder / "answer").exists, 50)
        return Verdict.yes()
