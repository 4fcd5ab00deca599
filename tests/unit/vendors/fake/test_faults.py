"""What a fake device can be told, and that it then does it: on both sides, as a device's extra travels over the bus."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.errors import DriverError, InvalidRequest
from lbaas_scheduler.sdk.conformance.documents import deployment, member, monitor, new_id, vip
from lbaas_scheduler.vendors.fake import faults
from lbaas_scheduler.vendors.fake.driver import FakeDriver
from lbaas_scheduler.vendors.fake.handler import FakeHandler
from lbaas_scheduler.vendors.fake.rack import Call

REQUEST = ScheduleRequest("vip", "LoadBalancer", "tenant")


@pytest.fixture
def conf(tmp_path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    FakeDriver.register_opts(conf)
    FakeHandler.register_opts(conf)
    conf([])
    conf.set_override("state_path", str(tmp_path), group="fake")
    return conf


@pytest.fixture
def driver(conf: cfg.ConfigOpts) -> FakeDriver:
    return FakeDriver(conf)


@pytest.fixture
def handler(conf: cfg.ConfigOpts) -> FakeHandler:
    return FakeHandler(conf)


def device(**extra: Any) -> Device:
    return Device(new_id(), "lab", "LoadBalancer", "fake", extra=json.loads(json.dumps(extra)))


DRIVER_CALLS: dict[str, Callable[[FakeDriver, Device], object]] = {
    "apply": lambda driver, used: driver.apply(used, [deployment(vip(port=80))]),
    "remove": lambda driver, used: driver.remove(used, ["absent"]),
    "list_deployed": lambda driver, used: driver.list_deployed(used),
    "read_stats": lambda driver, used: driver.read_stats(used),
}
HANDLER_CALLS: dict[str, Callable[[FakeHandler, Device], object]] = {
    "is_good": lambda handler, used: handler.is_good(Candidate(used), REQUEST),
    "weigh": lambda handler, used: handler.weigh(Candidate(used), REQUEST),
    "select": lambda handler, used: handler.select([Candidate(used)], REQUEST),
    "get_status": lambda handler, used: handler.get_status(used),
}


@pytest.mark.parametrize("call", sorted(faults.CALLS))
@pytest.mark.parametrize(("key", "error"), [("fail", DriverError), ("crash", RuntimeError)])
def test_each_call_can_be_told_to_raise(
    driver: FakeDriver, handler: FakeHandler, call: str, key: str, error: type[Exception]
) -> None:
    used = device(**{key: call})
    with pytest.raises(error):
        DRIVER_CALLS[call](driver, used) if call in DRIVER_CALLS else HANDLER_CALLS[call](handler, used)


@pytest.mark.parametrize("call", sorted(faults.CALLS))
def test_each_call_can_be_told_to_hang(driver: FakeDriver, handler: FakeHandler, call: str) -> None:
    used, begin = device(hang=[call], hang_seconds=0.1), time.monotonic()
    DRIVER_CALLS[call](driver, used) if call in DRIVER_CALLS else HANDLER_CALLS[call](handler, used)
    assert time.monotonic() - begin >= 0.1


def test_hang_seconds_alone_makes_every_call_of_the_driver_hang() -> None:
    told = faults.parse({"hang_seconds": 3})
    assert {call: told.delay(call) for call in faults.CALLS} == {
        **dict.fromkeys(faults.DRIVER_CALLS, 3.0),
        **dict.fromkeys(faults.HANDLER_CALLS, 0.0),
    }


def test_a_stopped_driver_hangs_no_longer(driver: FakeDriver) -> None:
    driver.stop()
    begin = time.monotonic()
    driver.list_deployed(device(hang="list_deployed", hang_seconds=60))
    assert time.monotonic() - begin < 5


def test_a_lying_apply_reports_success_and_deploys_nothing(driver: FakeDriver) -> None:
    used = device(lie="apply")
    assert driver.apply(used, [deployment(vip(port=80))])[0].ok
    assert dict(driver.list_deployed(used)) == {}


def test_a_lying_list_knows_nothing_of_what_is_there(driver: FakeDriver) -> None:
    used, document = device(), vip(port=80)
    driver.apply(used, [deployment(document)])
    assert dict(driver.list_deployed(replace(used, extra={"lie": "list_deployed"}))) == {}
    assert set(driver.list_deployed(used)) == {document.id}


def test_a_lying_handler_talks_nonsense(handler: FakeHandler) -> None:
    used = device(lie=sorted(faults.HANDLER_CALLS), offline=True)
    assert isinstance(handler.is_good(Candidate(used), REQUEST), str)
    assert handler.weigh(Candidate(used), REQUEST) == 1e9
    assert handler.select([Candidate(used)], REQUEST)[0].device.id != used.id
    assert handler.get_status(used).online


def test_an_offline_device_says_so_and_cannot_be_driven(driver: FakeDriver, handler: FakeHandler) -> None:
    used = device(offline=True)
    assert not handler.get_status(used).online
    with pytest.raises(DriverError):
        driver.list_deployed(used)


def test_a_handler_can_be_told_to_reject(handler: FakeHandler) -> None:
    verdict = handler.is_good(Candidate(device(reject="full of cats")), REQUEST)
    assert (verdict.ok, verdict.reason) == (False, "full of cats")


def test_single_members_fail_while_their_vip_works(driver: FakeDriver) -> None:
    good, bad = member(), member()
    result = driver.apply(device(fail_members=[bad.id]), [deployment(vip(port=80, members=(good, bad)))])[0]
    assert result.ok
    assert set(result.object_errors) == {bad.id}


def test_a_stuck_vip_stays(driver: FakeDriver) -> None:
    document = vip(port=80)
    used = device(stuck_vips=[document.id])
    driver.apply(used, [deployment(document)])
    assert not driver.remove(used, [document.id])[0].ok
    assert set(driver.list_deployed(used)) == {document.id}


def test_stats_show_what_was_told(driver: FakeDriver) -> None:
    up, down = member(), member()
    document = vip(port=80, members=(up, down), monitors=(monitor(),))
    used = device(down_members=[down.id], counters={"bytes_in": 5_000_000_000})
    driver.apply(used, [deployment(document)])
    stats = driver.read_stats(used)[document.id]
    assert stats.bytes_in == 5_000_000_000
    assert {key: health.up for key, health in stats.members.items()} == {up.id: True, down.id: False}


def test_every_call_is_recorded_even_one_that_fails(conf: cfg.ConfigOpts, driver: FakeDriver) -> None:
    used = device(fail="remove")
    with pytest.raises(DriverError):
        driver.remove(used, ["a", "b"])
    driver.list_deployed(used)
    assert FakeDriver(conf).contents(used.id).calls == (Call("remove", ("a", "b")), Call("list_deployed"))


def test_a_broken_state_file_is_named_and_not_overwritten(driver: FakeDriver, tmp_path: Path) -> None:
    used = device()
    path = tmp_path / f"{used.id}.json"
    path.write_text("{}")
    with pytest.raises(DriverError) as caught:
        driver.list_deployed(used)
    assert str(path) in caught.value.operator_message
    assert path.read_text() == "{}"


@pytest.mark.parametrize("device_id", ["", "..", "../x", "a/b", "a\0b"])
def test_an_id_cannot_lead_out_of_the_state_folder(driver: FakeDriver, device_id: str) -> None:
    with pytest.raises(DriverError):
        driver.list_deployed(replace(device(), id=device_id))


@pytest.mark.parametrize(
    "extra",
    [{"fail": 3}, {"lie": ["nothing"]}, {"fail_vips": "abc"}, {"latency_seconds": True}, {"reject": None}, {"x": 1}],
)
def test_what_makes_no_sense_is_refused_by_name(extra: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        faults.parse(extra)
    assert next(iter(extra)) in caught.value.message
