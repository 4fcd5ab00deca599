"""The agent's parts without a bus."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from lbaas_scheduler.agent.workers import DeviceWorkers
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.domain.deployments import Result
from tests.agent_side import LocalDriver, StubDriver

KEY = "ZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmY="


@dataclass
class Bench:
    """Workers over stub drivers, and what they said."""

    timeout_seconds: float = 30.0
    stub: StubDriver = field(default_factory=StubDriver)
    local: LocalDriver = field(default_factory=LocalDriver)
    results: list[tuple[str, Result]] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.vault = Vault([KEY])
        drivers = {"stub": self.stub, "local": self.local}
        self.workers = DeviceWorkers(drivers, self.vault, self._report, self.wanted.append, lambda: self.timeout_seconds)
        self.workers.start()

    def _report(self, device_id: str, result: Result) -> None:
        self.results.append((device_id, result))

    def synced(self, sealed):
        """Hold a device whose desired state is known to be empty."""
        self.workers.hold(sealed)
        self.workers.adopt(sealed.device.id, [], self.workers.ticket())
        return sealed

    def last(self, vip_id: str) -> Result | None:
        found = [result for _, result in self.results if result.vip_id == vip_id]
        return found[-1] if found else None


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.workers.stop(time.monotonic() + 5)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What hanging calls wait for; set at the end at the latest."""
    event = threading.Event()
    yield event
    event.set()
