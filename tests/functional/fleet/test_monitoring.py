"""Devices are asked how they are. What counts is the device, not its agent."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db.models import devices
from lbaas_scheduler.devices import monitor as monitoring
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.statuses import DeviceStatus
from lbaas_scheduler.errors import DeviceNotFound, NoValidDevice
from lbaas_scheduler.sdk.handlers import HealthReport
from lbaas_scheduler.vendors.fake.handler import FakeHandler
from tests.functional.fleet.lab import ADMIN, Lab


def lose(lab: Lab, *names: str) -> None:
    """The devices are gone: they answer neither the server nor their agents."""
    for name in names:
        lab.change(name, offline=True)
        lab.agents.silent.add(lab.ids[name])
    for _ in range(3):
        lab.check_all()


def status(lab: Lab, name: str) -> str:
    return str(lab.registry.get(lab.ids[name]).status)


def bring_back(lab: Lab, name: str) -> None:
    lab.change(name)
    lab.agents.silent.discard(lab.ids[name])


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Device name → what its handler returns or raises instead."""
    made: dict[str, Any] = {}
    genuine = FakeHandler.get_status

    def get_status(self: FakeHandler, device: Any) -> Any:
        answer = made.get(device.name)
        if answer is None:
            return genuine(self, device)
        return answer(device) if callable(answer) else answer

    monkeypatch.setattr(FakeHandler, "get_status", get_status)
    return made


class TestLoss:
    def test_a_device_that_fails_n_checks_in_a_row_is_offline_and_takes_nothing_new(self, any_lab: Lab) -> None:
        any_lab.change("a", offline=True)
        for failures in (1, 2):
            any_lab.check_all()
            health = any_lab.fleet.get_device_health(ADMIN, any_lab.ids["a"])
            assert (health["status"], health["failures"]) == ("ONLINE", failures)
        any_lab.check_all()
        assert status(any_lab, "a") == "OFFLINE"
        vip_id = any_lab.vip()
        with pytest.raises(NoValidDevice, match="is not ONLINE"):
            any_lab.move(vip_id, to="a")

    def test_single_failures_count_for_nothing(self, lab: Lab) -> None:
        for _ in range(4):
            lab.change("a", offline=True)
            lab.check_all()
            lab.change("a")
            lab.check_all()
        assert status(lab, "a") == "ONLINE"

    def test_an_agent_that_falls_silent_makes_no_device_offline(self, lab: Lab) -> None:
        lab.heartbeat("host-a", ago=1000)
        for _ in range(5):
            lab.check_all()
            lab.reconciler.run_once()
        assert status(lab, "a") == "ONLINE"

    def test_a_live_agent_keeps_no_lost_device_in_service(self, lab: Lab) -> None:
        """F5 agent #730, LBaaS agent-and-device confusion: the device is down, its agent reports happily."""
        lose(lab, "a", "b")
        for host in ("host-a", "host-b"):
            lab.heartbeat(host)
        assert {lab.home(lab.vip()) for _ in range(4)} == {"c"}

    @pytest.mark.parametrize(
        "answer",
        ["fine", None.__class__, HealthReport(online="yes"), RuntimeError("bug")],  # type: ignore[arg-type]
        ids=["a text", "a class", "no boolean", "an exception"],
    )
    def test_whatever_is_no_report_is_no_sign_of_life(self, lab: Lab, answers: dict[str, Any], answer: Any) -> None:
        def say(_device: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        answers["a"] = say
        for _ in range(3):
            lab.check_all()
        assert (status(lab, "a"), status(lab, "b")) == ("OFFLINE", "ONLINE")

    def test_one_that_does_not_answer_in_time_holds_up_no_other_and_no_second_thread(
        self, lab: Lab, answers: dict[str, Any]
    ) -> None:
        release, calls = threading.Event(), []

        def hang(_device: Any) -> HealthReport:
            calls.append(1)
            release.wait(30)
            return HealthReport(True)

        answers["a"] = hang
        lab.option("check_timeout_seconds", 0.2)
        began = time.monotonic()
        for _ in range(3):
            lab.check_all()
        assert time.monotonic() - began < 10
        assert (status(lab, "a"), status(lab, "b"), len(calls)) == ("OFFLINE", "ONLINE", 1)
        assert "has not answered" in lab.registry.get(lab.ids["a"]).status_description
        release.set()

    def test_what_cannot_be_asked_is_not_judged(self, lab: Lab, answers: dict[str, Any], monkeypatch: Any) -> None:
        monkeypatch.setattr(monitoring, "MAX_STUCK_CALLS", 1)
        busy = Lab(lab.url, agents=lab.agents, check_timeout_seconds=0.2, check_workers=1)
        busy.ids = lab.ids
        release = threading.Event()
        answers["a"] = lambda _device: release.wait(30)
        for _ in range(5):
            busy.check_all()
        release.set()
        found = {name: busy.fleet.get_device_health(ADMIN, id_)["failures"] for name, id_ in lab.ids.items()}
        assert found["a"] >= 1
        assert (found["b"], found["c"]) == (0, 0)
        busy.close()


class TestReturn:
    def test_it_takes_nothing_new_before_everything_on_it_was_applied_anew(self, any_lab: Lab) -> None:
        vip_id = any_lab.vip(on="a")
        lose(any_lab, "a")
        any_lab.agents.served[any_lab.ids["a"]].clear()  # it returns empty
        bring_back(any_lab, "a")
        any_lab.check_all()
        assert status(any_lab, "a") == "SYNCING"
        assert ("host-a", any_lab.ids["a"]) in any_lab.agents.resynced
        with pytest.raises(NoValidDevice, match="is not ONLINE"):
            any_lab.move(any_lab.vip(on=None), to="a")
        any_lab.check_all()
        assert status(any_lab, "a") == "SYNCING"
        any_lab.settle(1)
        any_lab.check_all()
        assert status(any_lab, "a") == "ONLINE"
        assert (any_lab.served(vip_id), any_lab.status(vip_id)) == (["a"], "ACTIVE")
        health = any_lab.fleet.get_device_health(ADMIN, any_lab.ids["a"])
        assert (health["offline_since"], health["failures"]) == (None, 0)

    def test_a_device_without_anything_is_back_at_once(self, lab: Lab) -> None:
        lose(lab, "a")
        bring_back(lab, "a")
        lab.check_all()
        assert status(lab, "a") == "ONLINE"

    def test_one_that_fails_while_it_is_synced_is_offline_again(self, lab: Lab) -> None:
        lab.vip(on="a")
        lose(lab, "a")
        bring_back(lab, "a")
        lab.check_all()
        lose(lab, "a")
        assert status(lab, "a") == "OFFLINE"

    def test_what_moved_away_meanwhile_is_removed_before_it_counts_as_back(self, lab: Lab) -> None:
        """A device disappears for an hour and returns stale: offline, syncing, ready."""
        vip_id = lab.vip(on="a")
        lose(lab, "a")
        lab.move(vip_id, to="b")
        lab.settle()
        assert lab.served(vip_id) == ["a", "b"]
        bring_back(lab, "a")
        lab.check_all()
        assert status(lab, "a") == "SYNCING"
        lab.settle(1)
        lab.check_all()
        assert status(lab, "a") == "ONLINE"
        assert lab.served(vip_id) == ["b"]
        assert lab.used() == {"a": 0, "b": 1, "c": 0}

    def test_a_vip_that_it_refuses_does_not_keep_it_away_from_all_others(self, lab: Lab) -> None:
        good, bad = lab.vip(on="a"), lab.vip(on="a")
        lose(lab, "a")
        bring_back(lab, "a")
        lab.check_all()
        row = lab.rows(bad)["a"]
        result = {"vip_id": bad, "version": list(row.version), "error": "no", "object_errors": {}, "removed": False}
        lab.callbacks.report_results(None, "host-a", {lab.ids["a"]: [result]})
        lab.check_all()
        assert status(lab, "a") == "SYNCING"
        version = lab.rows(good)["a"].version
        result = {"vip_id": good, "version": list(version), "error": None, "object_errors": {}, "removed": False}
        lab.callbacks.report_results(None, "host-a", {lab.ids["a"]: [result]})
        lab.check_all()
        assert status(lab, "a") == "ONLINE"

    def test_a_device_that_refuses_everything_is_not_back(self, lab: Lab) -> None:
        lab.vip(on="a")
        lose(lab, "a")
        bring_back(lab, "a")
        lab.agents.broken[lab.ids["a"]] = "no"
        lab.check_all()
        lab.settle(2)
        lab.check_all()
        assert status(lab, "a") == "SYNCING"


class TestWhatIsKept:
    def test_the_load_is_kept_without_a_new_generation(self, lab: Lab, answers: dict[str, Any]) -> None:
        generation = lab.registry.get(lab.ids["a"]).generation
        answers["a"] = HealthReport(True, load={"connections": 12})
        lab.check_all()
        assert lab.fleet.get_device_health(ADMIN, lab.ids["a"])["load"] == {"connections": 12}
        assert lab.registry.get(lab.ids["a"]).generation == generation

    def test_a_probe_by_hand_asks_the_device_itself(self, lab: Lab) -> None:
        assert lab.fleet.check_device(ADMIN, lab.ids["a"])["online"] is True
        lab.change("a", offline=True)
        answer = lab.fleet.check_device(ADMIN, lab.ids["a"])
        assert (answer["online"], answer["failures"]) == (False, 1)
        with pytest.raises(DeviceNotFound):
            lab.fleet.check_device(ADMIN, "nothing")

    def test_secrets_are_there_for_the_handler(self, lab: Lab, answers: dict[str, Any]) -> None:
        seen: list[str] = []
        lab.registry.update(lab.ids["a"], {"management": {"address": "192.0.2.1", "password": "hunter2"}})
        answers["a"] = lambda device: seen.append(device.management.secret["password"]) or HealthReport(True)
        lab.check_all()
        assert seen == ["hunter2"]


class TestSharing:
    def test_several_servers_ask_each_device_once(self, any_lab: Lab, answers: dict[str, Any]) -> None:
        lock, calls = threading.Lock(), []

        def count(device: Any) -> HealthReport:
            with lock:
                calls.append(device.name)
            return HealthReport(True)

        for name in any_lab.ids:
            answers[name] = count
        others = [Lab(any_lab.url, agents=any_lab.agents) for _ in range(2)]
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda server: server.monitor.run_once(), [any_lab, *others]))
        for server in others:
            server.close()
        assert sorted(calls) == ["a", "b", "c"]

    def test_checks_are_spread_in_time(self, lab: Lab) -> None:
        for number in range(8):
            lab.add_device(f"more-{number}")
        lab.monitor.run_once()
        due = lab.database.read(lambda conn: list(conn.scalars(sa.select(devices.c.check_due_at))))
        soonest, latest = utcnow() + timedelta(seconds=5), utcnow() + timedelta(seconds=13)
        assert all(soonest <= moment <= latest for moment in due)
        assert len(set(due)) > 4

    def test_the_thread_checks_by_itself_and_ends(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(monitoring, "LOOK_SECONDS", 0.02)
        lab.change("a", offline=True)
        lab.option("check_failures", 1)
        lab.monitor.start()
        deadline = time.monotonic() + 20
        while status(lab, "a") != DeviceStatus.OFFLINE and time.monotonic() < deadline:
            time.sleep(0.02)
        lab.monitor.stop()
        lab.monitor.stop()
        assert status(lab, "a") == "OFFLINE"
