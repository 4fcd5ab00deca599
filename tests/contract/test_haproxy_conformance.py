"""The HAProxy vendor keeps the contracts, with real HAProxy processes and real traffic."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.sdk import conformance
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.behaviour import LOOPS
from lbaas_scheduler.vendors.haproxy.driver import HaproxyDriver
from lbaas_scheduler.vendors.haproxy.handler import HaproxyHandler
from tests.rig.waiting import wait_for

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed")


@pytest.fixture
def conf(tmp_path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    HaproxyDriver.register_opts(conf)
    conf([])
    conf.set_override("state_path", str(tmp_path / "devices"), group="haproxy")
    return conf


@pytest.fixture
def make_driver(conf: cfg.ConfigOpts) -> Iterator[Callable[[], HaproxyDriver]]:
    yield lambda: HaproxyDriver(conf)
    driver = HaproxyDriver(conf)
    for device_id in driver.local_devices():
        driver.purge(device_id)


@pytest.fixture
def handler(conf: cfg.ConfigOpts) -> HaproxyHandler:
    return HaproxyHandler(conf)


@pytest.fixture
def device() -> Device:
    return Device(documents.new_id(), "lab", "LoadBalancer", "haproxy", extra={"maxconn": 2000, "nbthread": 1})


class TestHandler(conformance.HandlerConformance):
    @pytest.fixture
    def bad_devices(self, device: Device) -> Mapping[str, Device]:
        extras: dict[str, Mapping[str, object]] = {
            "unknown key": {"colour": "red"},
            "text for a number": {"maxconn": "2000"},
            "flag for a number": {"nbthread": True},
            "too small": {"maxconn": 0},
            "too large": {"nbthread": 65},
        }
        return {
            "other service": replace(device, service="FIREWALL"),
            "other type": replace(device, device_type="envoy"),
            "a trait that HAProxy does not have": replace(device, traits=frozenset({"MONITOR_PING"})),
            **{name: replace(device, extra=extra) for name, extra in extras.items()},
        }


class TestDriver(conformance.DriverConformance):
    @pytest.fixture
    def bad_vip(self) -> Vip:
        """Its address, of the block for documentation, is not one of this host."""
        return documents.vip("203.0.113.7", 80)

    @pytest.fixture
    def break_device(self, conf: cfg.ConfigOpts) -> Callable[[Device], None]:
        def kill(device: Device) -> None:
            pid = int((Path(conf.haproxy.state_path) / device.id / "pid").read_text())
            os.kill(pid, signal.SIGKILL)
            wait_for_end(pid)

        return kill

    @pytest.fixture
    def leftovers(self, conf: cfg.ConfigOpts) -> Callable[[Device], object]:
        def left(device: Device) -> object:
            folder = Path(conf.haproxy.state_path) / device.id
            return [*folder.parent.glob(device.id), *processes_of(folder)]

        return left


class TestTraffic(conformance.TrafficConformance):
    pass


class TestBehaviour(conformance.BehaviourConformance):
    @pytest.fixture
    def make_impatient(self, conf: cfg.ConfigOpts, make_driver: Callable[[], HaproxyDriver]) -> Callable[[float], HaproxyDriver]:
        def make(seconds: float) -> HaproxyDriver:
            for name in ("client_timeout_ms", "server_timeout_ms"):
                conf.set_override(name, int(seconds * 1000), group="haproxy")
            return make_driver()

        return make

    @pytest.fixture
    def device(self, device: Device) -> Device:
        """A small one, for :meth:`make_small`."""
        return replace(device, extra={"maxconn": LOOPS, "nbthread": 1})

    @pytest.fixture
    def make_small(self, make_driver: Callable[[], HaproxyDriver]) -> Callable[[int], HaproxyDriver]:
        return lambda _: make_driver()


def processes_of(folder: Path) -> list[str]:
    """Command lines that name the folder."""
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in line and b"haproxy" in line.split(b"\0")[0]:
                lines.append(line.decode())
    return lines


def wait_for_end(pid: int) -> None:
    """Wait until the process has ended; a zombie has, and has no command line."""

    def ended() -> bool:
        try:
            return not Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return True

    wait_for(ended, 5, f"the end of process {pid}", interval=0.01)
