"""A real Envoy per test, and tiny backends on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.sdk import processes
from lbaas_scheduler.sdk.conformance.documents import LOOPBACK, new_id
from lbaas_scheduler.sdk.conformance.traffic import Backend
from lbaas_scheduler.vendors.envoy.driver import EnvoyDriver


@pytest.fixture
def state_path(tmp_path: Path) -> Path:
    """Longer than a socket's path may be."""
    return tmp_path / ("state-" + "x" * 100)


@pytest.fixture
def conf(state_path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    EnvoyDriver.register_opts(conf)
    conf([])
    conf.set_override("state_path", str(state_path), group="envoy")
    return conf


@pytest.fixture
def driver(conf: cfg.ConfigOpts) -> Iterator[EnvoyDriver]:
    driver = EnvoyDriver(conf)
    yield driver
    for device_id in driver.local_devices():
        driver.purge(device_id)


@pytest.fixture
def device() -> Device:
    return Device(new_id(), "lab", "LoadBalancer", "envoy")


@pytest.fixture
def backends() -> Iterator[list[Backend]]:
    servers = [Backend(new_id(), LOOPBACK) for _ in range(3)]
    yield servers
    for server in servers:
        server.close()


def pids(state_path: Path, device: Device) -> list[int]:
    return processes.find(f"-c\0{state_path}/{device.id}/bootstrap.json\0")
