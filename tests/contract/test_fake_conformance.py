"""The fake vendor keeps the contracts that it is the example for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.sdk import conformance
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.vendors.fake.driver import FakeDriver
from lbaas_scheduler.vendors.fake.handler import FakeHandler

BAD_VIP_ID = documents.new_id()


@pytest.fixture(params=["memory", "folder"])
def conf(request: pytest.FixtureRequest, tmp_path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    FakeDriver.register_opts(conf)
    conf([])
    conf.set_override("state_path", str(tmp_path) if request.param == "folder" else "", group="fake")
    return conf


@pytest.fixture
def make_driver(conf: cfg.ConfigOpts) -> Callable[[], FakeDriver]:
    return lambda: FakeDriver(conf)


@pytest.fixture
def handler(conf: cfg.ConfigOpts) -> FakeHandler:
    return FakeHandler(conf)


@pytest.fixture
def device() -> Device:
    return Device(documents.new_id(), "lab", "LoadBalancer", "fake", extra={"fail_vips": [BAD_VIP_ID]})


class TestHandler(conformance.HandlerConformance):
    @pytest.fixture
    def bad_devices(self, device: Device) -> Mapping[str, Device]:
        extras: dict[str, Mapping[str, object]] = {
            "unknown key": {"colour": "red"},
            "unknown call": {"fail": "reboot"},
            "negative time": {"hang_seconds": -1},
            "flag as text": {"offline": "yes"},
            "weight too large": {"weight": 101},
            "counter that is no integer": {"counters": {"bytes_in": 1.5}},
        }
        return {name: replace(device, extra=extra) for name, extra in extras.items()}


class TestDriver(conformance.DriverConformance):
    @pytest.fixture
    def bad_vip(self) -> Vip:
        return documents.vip(id=BAD_VIP_ID)
