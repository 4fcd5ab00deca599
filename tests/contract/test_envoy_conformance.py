"""Envoy keeps the vendors' contracts, with real processes and real traffic."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.sdk import conformance, processes
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.vendors.envoy.driver import EnvoyDriver
from lbaas_scheduler.vendors.envoy.handler import EnvoyHandler


@pytest.fixture
def conf(tmp_path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    EnvoyDriver.register_opts(conf)
    conf([])
    conf.set_override("state_path", str(tmp_path / "envoy"), group="envoy")
    return conf


@pytest.fixture
def make_driver(conf: cfg.ConfigOpts) -> Callable[[], EnvoyDriver]:
    return lambda: EnvoyDriver(conf)


@pytest.fixture
def handler(conf: cfg.ConfigOpts) -> EnvoyHandler:
    return EnvoyHandler(conf)


@pytest.fixture
def device() -> Device:
    return Device(documents.new_id(), "lab", "LoadBalancer", "envoy")


def pids(state_path: Path, device: Device) -> list[int]:
    return processes.find(f"-c\0{state_path}/{device.id}/bootstrap.json\0")


class TestHandler(conformance.HandlerConformance):
    @pytest.fixture
    def bad_devices(self, device: Device) -> Mapping[str, Device]:
        extras: dict[str, Mapping[str, object]] = {
            "unknown key": {"threads": 2},
            "no worker": {"concurrency": 0},
            "workers as text": {"concurrency": "2"},
        }
        return {name: replace(device, extra=extra) for name, extra in extras.items()}


class TestDriver(conformance.DriverConformance):
    @pytest.fixture
    def bad_vip(self) -> Iterator[Vip]:
        """Its port is taken by somebody else."""
        with socket.socket() as taken:
            port = documents.free_port()
            taken.bind((documents.LOOPBACK, port))
            taken.listen()
            yield documents.vip(port=port)

    @pytest.fixture
    def break_device(self, conf: cfg.ConfigOpts) -> Callable[[Device], None]:
        def kill(device: Device) -> None:
            (pid,) = pids(Path(conf.envoy.state_path), device)
            os.kill(pid, signal.SIGKILL)
            assert processes.wait_gone(pid, device.id, 10)

        return kill

    @pytest.fixture
    def leftovers(self, conf: cfg.ConfigOpts) -> Callable[[Device], object]:
        path = Path(conf.envoy.state_path)
        return lambda device: [*pids(path, device), *path.glob("*")]


class TestTraffic(conformance.TrafficConformance):
    pass


class TestBehaviour(conformance.BehaviourConformance):
    @pytest.fixture
    def make_impatient(self, conf: cfg.ConfigOpts, make_driver: Callable[[], EnvoyDriver]) -> Callable[[float], EnvoyDriver]:
        def make(seconds: float) -> EnvoyDriver:
            conf.set_override("idle_timeout_seconds", int(seconds), group="envoy")
            return make_driver()

        return make

    @pytest.fixture
    def make_small(self, conf: cfg.ConfigOpts, make_driver: Callable[[], EnvoyDriver]) -> Callable[[int], EnvoyDriver]:
        def make(connections: int) -> EnvoyDriver:
            conf.set_override("max_connections", connections, group="envoy")
            return make_driver()

        return make
