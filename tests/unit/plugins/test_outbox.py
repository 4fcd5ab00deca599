"""What is to be sent to agents, and who waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator

import pytest
from oslo_messaging import MessageDeliveryFailure

from lbaas_scheduler.devices.assignments import Move
from lbaas_scheduler.plugins import outbox as module
from lbaas_scheduler.plugins.outbox import AWAY, FULL, Outbox
from tests.rig.waiting import wait_for


class Bus:
    """Takes what is sent once its door is open."""

    def __init__(self) -> None:
        self.door = threading.Event()
        self.door.set()
        self.away = False
        self.calls: list[list[str]] = []
        self.told: list[tuple[str, object]] = []

    def cast(self, vip_ids: Collection[str]) -> set[str]:
        self.calls.append(list(vip_ids))
        assert self.door.wait(10)
        return set(vip_ids) if self.away else set()

    def tell_of(self, device_id: str, *hosts: str | None) -> bool:
        self.told += [(device_id, host) for host in hosts]
        return not self.away

    def agent_updated(self, host: str, admin_state_up: bool) -> None:
        self.told.append((host, admin_state_up))
        if self.away:
            raise MessageDeliveryFailure("the broker is away")


class Office:
    def __init__(self) -> None:
        self.bus = Bus()
        self.dropped: list[tuple[str, int]] = []
        self.outbox = Outbox(self.bus, self.bus, lambda why, count: self.dropped.append((why, count)), max_waiting=5)

    def block(self) -> None:
        """Have the thread stand in the bus."""
        self.bus.door.clear()
        self.outbox.cast(["first"])
        wait_for(lambda: self.bus.calls, 10, "the first VIP to be with the bus")


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office()
    yield made
    made.bus.door.set()
    made.outbox.stop()


def test_nobody_waits_for_a_bus_that_takes_nothing(office: Office) -> None:
    office.block()
    began = time.monotonic()
    for number in range(100):
        office.outbox.cast([f"vip-{number}"])
        office.outbox.tell_of("device", "host")
        office.outbox.agent_updated("host", True)
    assert time.monotonic() - began < 1


def test_what_comes_while_the_thread_is_busy_is_sent_together_and_once(office: Office) -> None:
    office.block()
    for vip_id in ("a", "b", "a"):
        office.outbox.cast([vip_id])
    office.bus.door.set()
    wait_for(lambda: len(office.bus.calls) == 2, 10, "the rest to be sent")
    assert office.bus.calls == [["first"], ["a", "b"]]


def test_a_full_outbox_drops_and_counts(office: Office) -> None:
    office.block()
    office.outbox.cast([f"vip-{number}" for number in range(4)])
    office.outbox.cast(["vip-3", "vip-4", "vip-5", "vip-6"])
    office.outbox.announce([Move(f"device-{number}", None, "host") for number in range(6)])
    assert office.dropped == [(FULL, 2), (FULL, 1)]
    office.bus.door.set()
    wait_for(lambda: len(office.bus.told) == 5, 10, "the rest to be sent")
    assert office.bus.calls == [["first"], [f"vip-{number}" for number in range(5)]]


def test_once_the_bus_is_known_to_be_away_nothing_waits_for_it_any_longer(office: Office) -> None:
    office.block()
    office.bus.away = True
    office.outbox.cast(["a", "b"])
    office.outbox.tell_of("device", "host-1", None, "host-2")
    office.bus.door.set()
    wait_for(lambda: office.dropped, 10, "what waits to be dropped")
    assert office.dropped == [(AWAY, 4)]
    assert (office.bus.calls, office.bus.told) == ([["first"]], [])


def test_it_goes_on_when_the_bus_is_there_again(office: Office) -> None:
    office.bus.away = True
    office.outbox.agent_updated("host", False)
    wait_for(lambda: office.bus.told, 10, "the message to fail")
    office.bus.away = False
    office.outbox.cast(["vip"])
    wait_for(lambda: office.bus.calls == [["vip"]], 10, "the VIP to be sent")


def test_a_fault_of_one_thing_does_not_end_the_thread(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_vip_ids: Collection[str]) -> set[str]:
        office.bus.calls.append(["failed"])
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patch:
        patch.setattr(office.bus, "cast", fails)
        office.outbox.cast(["poisoned"])
        wait_for(lambda: office.bus.calls, 10, "the fault")
        assert office.outbox.send(["asked for"]) == {"asked for"}
    assert office.outbox.send(["fine"]) == set()


def test_whoever_asks_learns_what_could_not_be_sent(office: Office) -> None:
    assert office.outbox.send(["a", "b"]) == set()
    assert office.outbox.send([]) == set()
    office.bus.away = True
    assert office.outbox.send(["a", "b"]) == {"a", "b"}


def test_whoever_asks_does_not_wait_for_ever_and_next_time_not_at_all(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEND_SECONDS", 0.2)
    office.block()
    assert office.outbox.send(["a"]) == {"a"}
    monkeypatch.setattr(module, "SEND_SECONDS", 0.0)
    began = time.monotonic()
    assert office.outbox.send(["b"]) == {"b"}
    assert time.monotonic() - began < 0.2
    office.bus.door.set()
    assert office.outbox.stop() is None
    assert office.bus.calls == [["first"]], "what was handed back is not sent as well"


def test_what_waits_at_the_end_is_sent_in_bounded_time(office: Office) -> None:
    office.block()
    office.outbox.cast(["last"])
    began = time.monotonic()
    office.outbox.stop(0.2)
    assert time.monotonic() - began < 5
    office.bus.door.set()
    office.outbox.stop()
    assert office.bus.calls == [["first"], ["last"]]
    office.outbox.cast(["too late"])
    assert office.dropped == [(FULL, 1)]
