"""One HAProxy device under test, and what a test wants to know of it."""

from __future__ import annotations

import http.client
import os
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lbaas_scheduler.domain.deployments import MemberHealth, Result, Version
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.sdk.conformance.documents import deployment
from lbaas_scheduler.vendors.haproxy.driver import HaproxyDriver
from lbaas_scheduler.vendors.haproxy.runtime import Processes, Runtime
from tests.rig.waiting import wait_for


@dataclass
class Lab:
    driver: HaproxyDriver
    device: Device
    revision: int = field(default=0)

    @property
    def folder(self) -> Path:
        return self.driver.settings.state_path / self.device.id

    @property
    def runtime(self) -> Runtime:
        return Runtime(self.folder, 5)

    @property
    def processes(self) -> Processes:
        return self.runtime.processes()

    @property
    def worker(self) -> int:
        worker = self.processes.worker
        assert worker is not None
        return worker

    @property
    def master(self) -> int:
        return int((self.folder / "pid").read_text())

    def apply(self, *vips: Vip) -> list[Result]:
        """With a revision that is one higher each time."""
        self.revision += 1
        return list(self.driver.apply(self.device, [deployment(vip, 1, self.revision) for vip in vips]))

    def serve(self, *vips: Vip) -> None:
        """Apply; all must succeed, without any reservation."""
        results = self.apply(*vips)
        assert [(result.error, dict(result.object_errors)) for result in results] == [(None, {})] * len(vips)

    def remove(self, *vips: Vip) -> None:
        assert all(result.removed for result in self.driver.remove(self.device, [vip.id for vip in vips]))

    def listed(self) -> Mapping[str, Version]:
        return self.driver.list_deployed(self.device)

    def health(self, vip: Vip, member_id: str) -> MemberHealth:
        return self.driver.read_stats(self.device)[vip.id].members[member_id]

    def wait_for_health(self, vip: Vip, member_id: str, up: bool | None) -> None:
        wait_for(lambda: self.health(vip, member_id).up is up, 15, f"health {up} of {member_id}")

    def kill(self, pid: int) -> None:
        both = self.master, self.worker
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(map(alive, both)), 5, f"the end of {both}", interval=0.01)

    def restarted(self) -> Lab:
        """The same device with a driver that remembers nothing."""
        driver = HaproxyDriver.__new__(HaproxyDriver)
        driver.__dict__.update({**self.driver.__dict__, "_nodes": {}})
        return Lab(driver, self.device, self.revision)


def alive(pid: int) -> bool:
    """A zombie has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def request(vip: Vip, method: str = "GET", headers: Mapping[str, str] | None = None) -> tuple[int, str, dict[str, str]]:
    """One request on a connection of its own: status, body, headers."""
    connection = http.client.HTTPConnection(vip.address, vip.protocol_port, timeout=20)
    try:
        connection.request(method, "/", headers={"Connection": "close", **(headers or {})})
        response = connection.getresponse()
        return response.status, response.read().decode(), {name.lower(): text for name, text in response.getheaders()}
    finally:
        connection.close()


def spread(vip: Vip, requests: int = 20, headers: Mapping[str, str] | None = None) -> Counter[str]:
    """How many requests each backend answered; all must succeed."""
    replies = [request(vip, headers=headers) for _ in range(requests)]
    assert {status for status, _, _ in replies} == {200}
    return Counter(body for _, body, _ in replies)
