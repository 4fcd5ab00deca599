"""The scheduler's side of a vendor: what a device of this type can take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict


class Ability(StrEnum):
    """What a handler can do beyond the three mandatory methods."""

    SELECT = "select"
    MONITOR = "monitor"


@dataclass(frozen=True, slots=True)
class HealthReport:
    """What a device says of itself. ``load`` is free of form (CPU, …) and is shown to operators.

    ``connections`` in it is the number of open connections: with ``least_loaded_by`` the scheduler counts it.
    """

    online: bool
    detail: str = ""
    load: dict[str, Any] = field(default_factory=dict)


class DeviceHandler(ABC):
    """Knows one device type. Registered under ``lbaas_scheduler.device_handlers.<service>``; built as ``Handler(conf)``.

    Runs in the server, in several threads at once; keeps no state between calls that must survive. Every call is bounded by
    ``[scheduler] handler_timeout_seconds``. What a method raises, and a call that takes too long, is logged and counts as a
    rejection of the device by this handler: it never stops the placement on other vendors' devices.
    No method may call the device, but for :meth:`get_status`.
    """

    device_type: str
    traits: frozenset[str] = frozenset()
    """What every device of this type can do. A device's registration may narrow, or add the vendor's own ``CUSTOM_*``."""
    abilities: frozenset[Ability] = frozenset()

    @classmethod
    def register_opts(cls, conf: object) -> None:
        """Register the handler's own options on ``conf`` (an ``oslo_config.cfg.ConfigOpts``). Called before ``__init__``."""

    @abstractmethod
    def validate_device(self, device: Device) -> None:
        """Check a device at its registration and at every change of it.

        :raises InvalidRequest: names the wrong attribute and says what would be right. Never repeats a secret.
        """

    def is_good(self, device: Candidate, request: ScheduleRequest) -> Verdict:
        """Whether the device can take the request, beyond what traits and capacities say. Default: it can."""
        return Verdict.yes()

    def weigh(self, device: Candidate, request: ScheduleRequest) -> float:
        """How well the device suits, 0 (barely) to 100 (ideal). Default: 50."""
        return 50.0

    def select(self, devices: Sequence[Candidate], request: ScheduleRequest) -> Sequence[Candidate]:
        """Order the candidates, best first; leave out those that will not do. Only with :attr:`Ability.SELECT`."""
        raise NotImplementedError

    def get_status(self, device: Device) -> HealthReport:
        """Ask the device. The only method that may use the network. Only with :attr:`Ability.MONITOR`."""
        raise NotImplementedError
