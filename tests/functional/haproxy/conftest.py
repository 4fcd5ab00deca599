"""A driver with its devices in a temporary folder, and backends on loopback."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Protocol, Vip
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.vendors.haproxy.driver import HaproxyDriver
from tests.functional.haproxy.backends import Backend
from tests.functional.haproxy.lab import Lab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if shutil.which("haproxy") is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="HAProxy is not installed"))


@pytest.fixture
def conf(tmp_path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    HaproxyDriver.register_opts(conf)
    conf([])
    conf.set_override("state_path", str(tmp_path / "devices"), group="haproxy")
    return conf


@pytest.fixture
def lab(conf: cfg.ConfigOpts) -> Iterator[Lab]:
    """One device and its driver. Afterwards nothing of it is left."""
    lab = Lab(HaproxyDriver(conf), Device(documents.new_id(), "lab", "LoadBalancer", "haproxy"))
    yield lab
    fresh = HaproxyDriver(conf)
    for device_id in fresh.local_devices():
        fresh.purge(device_id)


@pytest.fixture
def make_backend() -> Iterator[Callable[..., Backend]]:
    made: list[Backend] = []

    def make(**options: object) -> Backend:
        made.append(Backend(documents.new_id(), **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def backends(make_backend: Callable[..., Backend]) -> list[Backend]:
    return [make_backend() for _ in range(2)]


@pytest.fixture
def web(backends: list[Backend]) -> Vip:
    """An HTTP VIP over both backends, without a monitor."""
    return documents.vip(protocol=Protocol.HTTP, members=tuple(backend.member() for backend in backends))


@pytest.fixture
def neighbour(web: Vip) -> Vip:
    """A second VIP over the same backends."""
    other = replace(web, id=documents.new_id(), protocol_port=documents.free_port())
    return documents.with_pool(other, id=documents.new_id())
