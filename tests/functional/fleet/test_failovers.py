"""Lost devices are left by themselves where a service type wants it; but not when it is rather the way to them that is lost."""

from __future__ import annotations

import logging

import pytest

from lbaas_scheduler.domain.clock import DATABASE_CLOCK
from lbaas_scheduler.errors import InvalidRequest, NotAuthorized
from tests.functional.fleet.lab import ADMIN, TENANT, Lab
from tests.functional.fleet.test_monitoring import bring_back, lose, status


@pytest.fixture
def patient(lab: Lab) -> Lab:
    """The default service type gives up lost devices after a minute."""
    _be_patient(lab)
    return lab


def _be_patient(lab: Lab) -> None:
    default = next(it for it in lab.service_types.list() if it.default)
    lab.service_types.update(default.id, {"options": {"evacuate_after_seconds": 60}})


def after(lab: Lab, seconds: float) -> None:
    """Time passes, and servers and agents do what they have to."""
    lab.age_offline(seconds)
    for _ in range(6):
        lab.make_due()
        lab.settle(1)


class TestFailover:
    def test_after_the_grace_time_everything_leaves_a_lost_device(self, any_lab: Lab) -> None:
        _be_patient(any_lab)
        vips = [any_lab.vip(on="a") for _ in range(4)]
        lose(any_lab, "a")
        after(any_lab, 30)
        assert {any_lab.home(vip_id) for vip_id in vips} == {"a"}
        after(any_lab, 61)
        assert sorted(any_lab.home(vip_id) for vip_id in vips) == ["b", "b", "c", "c"]
        assert {any_lab.status(vip_id) for vip_id in vips} == {"ACTIVE"}
        assert {move["cause"] for move in any_lab.fleet.get_moves(ADMIN)} == {"failure"}
        bring_back(any_lab, "a")
        any_lab.check_all()
        after(any_lab, 0)
        any_lab.check_all()
        assert status(any_lab, "a") == "ONLINE"
        assert [any_lab.served(vip_id) for vip_id in vips] == [[any_lab.home(vip_id)] for vip_id in vips]
        assert any_lab.used()["a"] == 0
        assert any_lab.drift() == []

    def test_without_the_option_nothing_leaves(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lose(lab, "a")
        after(lab, 10_000)
        assert (lab.home(vip_id), lab.fleet.get_moves(ADMIN)) == ("a", [])

    def test_a_server_whose_clock_is_wrong_leaves_no_lost_device(self, patient: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        vip_id = patient.vip(on="a")
        lose(patient, "a")
        with monkeypatch.context() as wrong:
            wrong.setattr(DATABASE_CLOCK, "ahead_seconds", 600.0)
            after(patient, 61)
            assert (patient.home(vip_id), patient.fleet.get_moves(ADMIN)) == ("a", [])
        after(patient, 61)
        assert patient.home(vip_id) != "a"

    def test_a_device_that_is_back_in_time_is_not_left(self, patient: Lab) -> None:
        vip_id = patient.vip(on="a")
        for name in ("b", "c"):
            patient.registry.update(patient.ids[name], {"admin_state": "draining"})
        lose(patient, "a")
        after(patient, 61)
        assert [move["state"] for move in patient.fleet.get_moves(ADMIN)] == ["queued"]
        bring_back(patient, "a")
        patient.check_all()
        after(patient, 0)
        assert patient.fleet.get_moves(ADMIN) == []
        patient.open_all()
        after(patient, 0)
        assert patient.served(vip_id) == ["a"]

    def test_what_was_created_right_before_the_loss_becomes_active_elsewhere(self, patient: Lab) -> None:
        patient.agents.silent.add(patient.ids["a"])
        vip_id = patient.vip(on="a")
        assert patient.status(vip_id) == "PENDING_CREATE"
        lose(patient, "a")
        after(patient, 61)
        assert (patient.home(vip_id) in ("b", "c"), patient.status(vip_id)) == (True, "ACTIVE")

    def test_a_deletion_on_a_lost_device_triggers_nothing(self, patient: Lab) -> None:
        vip_id = patient.vip(on="a")
        lose(patient, "a")
        patient.balancers.delete_vip(TENANT, vip_id)
        after(patient, 61)
        assert patient.fleet.get_moves(ADMIN) == []
        assert patient.status(vip_id) == "PENDING_DELETE"

    def test_failing_vips_on_a_healthy_device_trigger_nothing(self, patient: Lab) -> None:
        patient.agents.broken[patient.ids["a"]] = "no"
        vip_id = patient.vip(on="a")
        patient.check_all()
        after(patient, 1000)
        assert (patient.status(vip_id), patient.fleet.get_moves(ADMIN)) == ("ERROR", [])

    def test_a_wrong_grace_time_is_refused(self, lab: Lab) -> None:
        with pytest.raises(InvalidRequest, match="evacuate_after_seconds"):
            lab.service_types.create({"name": "odd", "options": {"evacuate_after_seconds": -1}})


class TestBreaker:
    @pytest.fixture
    def large(self, patient: Lab) -> Lab:
        for number in range(7):
            patient.add_device(f"more-{number}")
        patient.check_all()
        return patient

    def test_six_of_ten_devices_lost_at_once_freeze_what_nobody_asked_for(
        self, large: Lab, caplog: pytest.LogCaptureFixture
    ) -> None:
        vip_id = large.vip(on="a")
        with caplog.at_level(logging.CRITICAL):
            lose(large, "a", *(f"more-{number}" for number in range(5)))
            after(large, 61)
        assert large.home(vip_id) == "a"
        breaker = large.fleet.get_breaker(ADMIN)
        assert breaker["frozen"] is True
        devices = next(it for it in breaker["kinds"] if it["kind"] == "devices")
        assert (devices["lost"], devices["total"]) == (6, 10)
        assert "6 of 10 devices vanished" in devices["reason"]
        assert [record.message for record in caplog.records if record.levelno == logging.CRITICAL] == [
            f"Automatic moves are frozen: {devices['reason']}. Look for a fault that they have in common"
        ]

    def test_moves_by_hand_still_work(self, large: Lab) -> None:
        vip_id, other = large.vip(on="a"), large.vip(on="a")
        lose(large, "a", *(f"more-{number}" for number in range(5)))
        after(large, 61)
        large.move(vip_id, to="b")
        large.fleet.evacuate_device(ADMIN, large.ids["a"])
        after(large, 61)
        assert large.home(vip_id) == "b"
        assert large.home(other) != "a"

    def test_it_closes_by_itself_when_enough_are_back(self, large: Lab) -> None:
        names = ["a", *(f"more-{number}" for number in range(5))]
        vip_id = large.vip(on="a")
        lose(large, *names)
        after(large, 10)
        assert large.fleet.get_breaker(ADMIN)["frozen"] is True
        for name in names[1:4]:
            bring_back(large, name)
        large.check_all()
        after(large, 61)
        assert large.fleet.get_breaker(ADMIN)["frozen"] is False
        assert large.home(vip_id) != "a"

    def test_time_alone_does_not_close_it(self, large: Lab) -> None:
        lose(large, *(f"more-{number}" for number in range(6)))
        after(large, 61)
        after(large, 10_000)
        assert large.fleet.get_breaker(ADMIN)["frozen"] is True

    def test_an_administrator_who_knows_better_unfreezes_it(self, large: Lab) -> None:
        vip_id = large.vip(on="a")
        lose(large, "a", *(f"more-{number}" for number in range(5)))
        after(large, 61)
        assert large.fleet.reset_breaker(ADMIN)["frozen"] is False
        after(large, 61)
        assert large.fleet.get_breaker(ADMIN)["frozen"] is False
        assert large.home(vip_id) != "a"

    def test_losses_one_after_the_other_freeze_nothing(self, large: Lab) -> None:
        for number in range(6):
            lose(large, f"more-{number}")
            large.age_offline(1000)
            large.reconciler.run_once()
        assert large.fleet.get_breaker(ADMIN)["frozen"] is False

    def test_two_losses_in_a_fleet_of_three_freeze_nothing(self, patient: Lab) -> None:
        lose(patient, "a", "b")
        after(patient, 61)
        assert patient.fleet.get_breaker(ADMIN)["frozen"] is False

    def test_many_agents_that_die_at_once_keep_their_devices(self, lab: Lab) -> None:
        for number in range(7):
            lab.add_device(f"more-{number}")
        for device_id in lab.ids.values():
            lab.registry.update(device_id, {"agent_host": None})
        dead = [f"host-more-{number}" for number in range(6)]
        for host in dead:
            lab.heartbeat(host, ago=100)
        lab.reconciler.run_once()
        hosts = {lab.registry.agent_host(device_id) for device_id in lab.ids.values()}
        assert hosts >= set(dead)
        assert lab.fleet.get_breaker(ADMIN)["frozen"] is True
        for host in dead[:4]:
            lab.heartbeat(host)
        lab.reconciler.run_once()
        assert lab.fleet.get_breaker(ADMIN)["frozen"] is False
        hosts = {lab.registry.agent_host(device_id) for device_id in lab.ids.values()}
        assert not hosts & set(dead[4:])

    def test_tenants_see_nothing_of_it(self, lab: Lab) -> None:
        with pytest.raises(NotAuthorized):
            lab.fleet.get_breaker(TENANT)
