"""An agent that hears nothing takes down what others may have taken over, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from lbaas_scheduler.agent import contact as module
from lbaas_scheduler.agent.contact import Contact
from lbaas_scheduler.agent.fence import Fence
from lbaas_scheduler.domain.deployments import Version
from lbaas_scheduler.rpc.server_api import SealedDevice
from tests.agent_side import device
from tests.unit.agent.conftest import Bench

LOST = {"v1": Version(0, 0)}
SERVES = {"v1": Version(1, 1)}


@dataclass
class Site:
    bench: Bench
    now: float = 100.0
    after: float = 30.0
    lifted: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.contact = Contact(lambda: None)
        drivers = {"stub": self.bench.stub, "local": self.bench.local}
        self.fence = Fence(self.contact, self.bench.workers, drivers, lambda: self.after, lambda: self.lifted.append(self.now))

    def hold(self, name: str, **fields: object) -> None:
        self.bench.synced(SealedDevice(device(name, **fields)))
        driver = self.bench.stub if fields.get("device_type") == "stub" else self.bench.local
        driver.content[name] = dict(SERVES)

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.fence.step()


@pytest.fixture
def site(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Site:
    made: list[Site] = []
    monkeypatch.setattr(module.time, "monotonic", lambda: made[0].now if made else 100.0)
    made.append(Site(bench))
    return made[0]


def test_devices_fall_after_the_silence_and_only_then(site: Site) -> None:
    site.hold("d1", device_type="local")
    site.later(29)
    assert site.bench.local.content["d1"] == SERVES
    site.later(1)
    assert site.bench.local.content["d1"] == LOST


def test_each_sign_of_the_bus_begins_the_silence_anew(site: Site) -> None:
    site.hold("d1", device_type="local")
    for sign in (site.contact.heard, site.contact.made, site.contact.heard):
        site.later(29)
        sign()
    site.later(29)
    assert site.bench.local.content["d1"] == SERVES


def test_pinned_and_remote_devices_serve_on(site: Site) -> None:
    site.hold("pinned", device_type="local", agent_host="agent-1")
    site.hold("remote", device_type="stub")
    site.later(31)
    assert site.bench.local.content["pinned"] == SERVES
    assert site.bench.stub.content["remote"] == SERVES


def test_what_is_here_and_unknown_since_a_restart_falls_too(site: Site) -> None:
    site.bench.local.content["left-by-a-predecessor"] = dict(SERVES)
    site.later(31)
    assert site.bench.local.content["left-by-a-predecessor"] == LOST


def test_a_device_that_came_back_while_the_fence_is_down_falls_again(site: Site) -> None:
    site.hold("d1", device_type="local")
    site.later(31)
    site.bench.local.content["d1"] = dict(SERVES)
    site.later(1)
    assert site.bench.local.content["d1"] == LOST


def test_the_first_sign_of_the_bus_has_all_devices_compared_once(site: Site) -> None:
    site.hold("d1", device_type="local")
    site.later(31)
    assert site.lifted == []
    site.contact.heard()
    site.later(1)
    site.later(1)
    assert len(site.lifted) == 1
    assert len(site.bench.local.called("fence")) == 1


def test_a_device_that_cannot_be_fenced_costs_no_other(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    def fail(call: str, device_id: str) -> None:
        if (call, device_id) in (("fence", "bad"), ("fence", "bad-stray")):
            raise RuntimeError("no")

    site.bench.local.before = fail
    site.hold("bad", device_type="local")
    site.hold("good", device_type="local")
    site.bench.local.content |= {"bad-stray": dict(SERVES), "good-stray": dict(SERVES)}
    site.later(31)
    assert site.bench.local.content["good"] == site.bench.local.content["good-stray"] == LOST
    assert "Device bad is not fenced" in caplog.text


def test_without_the_option_nothing_ever_falls(site: Site) -> None:
    site.after = 0
    site.hold("d1", device_type="local")
    site.later(1e6)
    assert site.bench.local.content["d1"] == SERVES
    assert site.lifted == []
