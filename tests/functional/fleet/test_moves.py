"""A VIP moves from device to device, and is served all the time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from lbaas_scheduler.db import placements
from lbaas_scheduler.domain import traits
from lbaas_scheduler.errors import Conflict, DeviceNotFound, LBaaSError, NotAuthorized, NotFound, NoValidDevice, StateInvalid
from lbaas_scheduler.plugins.device_scheduler.endpoint import FLEET_METHODS
from tests.functional.fleet.lab import ADMIN, TENANT, Lab


def watched(lab: Lab, vip_id: str) -> list[int]:
    """How many devices serve the VIP, after every change."""
    counts: list[int] = []
    lab.agents.watch = lambda: counts.append(len(lab.served(vip_id)))
    return counts


def test_a_vip_moves_and_is_served_all_the_time(any_lab: Lab) -> None:
    vip_id = any_lab.vip(on="a")
    counts = watched(any_lab, vip_id)
    move = any_lab.move(vip_id, to="b")
    assert (move["state"], move["source_id"], move["target_id"]) == ("deploying", any_lab.ids["a"], any_lab.ids["b"])
    assert any_lab.used() == {"a": 1, "b": 1, "c": 0}
    assert (any_lab.home(vip_id), any_lab.status(vip_id)) == ("a", "ACTIVE")
    any_lab.agents.work()
    assert (any_lab.home(vip_id), any_lab.status(vip_id)) == ("b", "ACTIVE")
    assert any_lab.last_move(vip_id).state == "removing"
    any_lab.agents.work()  # the source was told right after that
    assert counts == [2, 1]
    assert any_lab.served(vip_id) == ["b"]
    assert any_lab.used() == {"a": 0, "b": 1, "c": 0}
    assert any_lab.last_move(vip_id).state == "done"
    assert (list(any_lab.rows(vip_id)), any_lab.status(vip_id)) == (["b"], "ACTIVE")
    assert any_lab.drift() == []


def test_the_scheduler_chooses_a_target_and_never_the_source(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    lab.vip(on="b")
    lab.move(vip_id)
    lab.settle()
    assert lab.served(vip_id) == ["c"]
    placement = lab.database.read(lambda conn: placements.get(conn, vip_id))
    assert placement is not None
    assert [(it["device_id"], it["code"]) for it in placement.trail["rejections"] if it["code"] == "excluded"] in (
        [],
        [(lab.ids["a"], "excluded")],
    )


def test_each_step_has_an_epoch_of_its_own(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    assert lab.rows(vip_id)["a"].version.epoch == 1
    lab.move(vip_id, to="b")
    assert lab.rows(vip_id)["b"].version.epoch == 2
    lab.agents.work()
    assert lab.rows(vip_id)["a"].version.epoch == 3
    lab.settle()
    lab.move(vip_id, to="a")
    assert lab.rows(vip_id)["a"].version.epoch == 4


class TestRefusals:
    """Nothing is changed by them."""

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"admin_state": "disabled"}, "is disabled"),
            ({"admin_state": "draining"}, "is being drained"),
            ({"capacity": {"VIPS": 0}}, "has no room for 1 VIPS"),
            ({"capabilities": sorted(traits.STANDARD - {"PROTOCOL_HTTP"})}, "PROTOCOL_HTTP"),
            ({"extra": {"reject": "of its colour"}}, "of its colour"),
        ],
        ids=["disabled", "draining", "full", "unable", "refused by its handler"],
    )
    def test_a_target_that_cannot_take_it_is_refused_with_its_reason(self, lab: Lab, change: dict, reason: str) -> None:
        vip_id = lab.vip(on="a")
        lab.registry.update(lab.ids["b"], change)
        before = lab.snapshot()
        with pytest.raises(NoValidDevice, match=reason) as refused:
            lab.move(vip_id, to="b")
        assert refused.value.message.startswith(f"Device {lab.ids['b']} cannot take {vip_id}: ")
        assert lab.snapshot() == before

    def test_a_target_whose_agent_an_administrator_has_disabled(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        agents = lab.plant.parts.agents
        agents.update(agents.list({"host": ["host-b"]})[0]["id"], {"admin_state_up": False})
        with pytest.raises(NoValidDevice, match="its agent is disabled"):
            lab.move(vip_id, to="b")

    def test_an_unknown_target(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        before = lab.snapshot()
        with pytest.raises(DeviceNotFound):
            lab.fleet.move_vip(ADMIN, vip_id, "nowhere")
        assert lab.snapshot() == before

    def test_the_device_that_it_is_on(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        with pytest.raises(Conflict, match="already"):
            lab.move(vip_id, to="a")

    def test_an_unknown_vip(self, lab: Lab) -> None:
        with pytest.raises(NotFound):
            lab.move("nothing", to="a")

    def test_a_vip_that_is_being_deleted(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.balancers.delete_vip(TENANT, vip_id)
        with pytest.raises(StateInvalid, match="being deleted"):
            lab.move(vip_id, to="b")

    def test_a_vip_that_is_on_its_way_already(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.move(vip_id, to="b")
        with pytest.raises(Conflict, match="on its way"):
            lab.move(vip_id, to="c")

    def test_whoever_is_no_administrator(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        with pytest.raises(NotAuthorized):
            lab.fleet.move_vip(TENANT, vip_id)


class TestATargetThatFails:
    def test_an_error_leaves_the_vip_where_it_is(self, any_lab: Lab) -> None:
        vip_id = any_lab.vip(on="a")
        any_lab.agents.broken[any_lab.ids["b"]] = "out of memory"
        any_lab.move(vip_id, to="b")
        any_lab.agents.work()
        assert any_lab.last_move(vip_id).state == "rolling_back"
        assert (any_lab.home(vip_id), any_lab.status(vip_id)) == ("a", "ACTIVE")
        any_lab.settle()
        move = any_lab.last_move(vip_id)
        assert (move.state, move.error) == ("failed", "out of memory")
        assert any_lab.served(vip_id) == ["a"]
        assert any_lab.used() == {"a": 1, "b": 0, "c": 0}
        assert list(any_lab.rows(vip_id)) == ["a"]
        assert any_lab.drift() == []

    def test_one_that_takes_too_long_is_given_up_and_its_late_success_counts_for_nothing(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.move(vip_id, to="b")
        lab.expire_moves()
        lab.mover.run_once()
        assert lab.last_move(vip_id).state == "rolling_back"
        lab.agents.work(1)
        assert lab.served(vip_id) == ["a", "b"]
        assert lab.home(vip_id) == "a"
        lab.settle()
        assert lab.served(vip_id) == ["a"]
        assert lab.last_move(vip_id).state == "failed"
        assert "has not confirmed" in lab.last_move(vip_id).error
        assert lab.used() == {"a": 1, "b": 0, "c": 0}

    def test_its_claim_holds_until_it_let_go(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.agents.broken[lab.ids["b"]] = "no"
        lab.move(vip_id, to="b")
        lab.agents.work()
        lab.agents.silent.add(lab.ids["b"])
        lab.settle()
        assert lab.used() == {"a": 1, "b": 1, "c": 0}
        lab.agents.silent.clear()
        lab.agents.broken.clear()
        lab.make_due()
        lab.settle()
        assert lab.used() == {"a": 1, "b": 0, "c": 0}

    def test_it_does_not_keep_the_vip_from_moving_elsewhere(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.agents.broken[lab.ids["b"]] = "no"
        lab.move(vip_id, to="b")
        lab.agents.work()
        lab.agents.silent.add(lab.ids["b"])
        lab.move(vip_id, to="c")
        lab.settle()
        assert lab.served(vip_id) == ["c"]
        with pytest.raises(Conflict, match="has not let go"):
            lab.move(vip_id, to="b")


class TestASourceThatIsGone:
    def test_the_vip_is_served_elsewhere_and_can_move_on(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.agents.silent.add(lab.ids["a"])
        lab.move(vip_id, to="b")
        lab.settle()
        assert (lab.home(vip_id), lab.status(vip_id)) == ("b", "ACTIVE")
        assert lab.last_move(vip_id).state == "removing"
        assert lab.used() == {"a": 1, "b": 1, "c": 0}
        lab.move(vip_id, to="c")
        lab.settle()
        assert lab.used() == {"a": 1, "b": 0, "c": 1}
        assert lab.served(vip_id) == ["a", "c"]

    def test_it_lets_go_when_it_comes_back(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.agents.silent.add(lab.ids["a"])
        lab.move(vip_id, to="b")
        lab.settle()
        lab.agents.silent.clear()
        lab.make_due()
        lab.settle()
        assert lab.served(vip_id) == ["b"]
        assert lab.used() == {"a": 0, "b": 1, "c": 0}
        assert lab.last_move(vip_id).state == "done"
        assert lab.drift() == []

    def test_a_removal_that_it_refuses_is_no_matter_of_the_tenants(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.move(vip_id, to="b")
        lab.agents.work()
        row = lab.rows(vip_id)["a"]
        result = {"vip_id": vip_id, "version": list(row.version), "error": "busy", "object_errors": {}, "removed": False}
        lab.callbacks.report_results(None, "host-a", {lab.ids["a"]: [result]})
        assert lab.status(vip_id) == "ACTIVE"
        assert lab.rows(vip_id)["a"].error == "busy"


class TestChangesOnTheWay:
    def test_an_update_reaches_both_devices(self, any_lab: Lab) -> None:
        vip_id = any_lab.vip(on="a")
        any_lab.move(vip_id, to="b")
        any_lab.balancers.update_vip(TENANT, vip_id, {"connection_limit": 7})
        assert any_lab.status(vip_id) == "PENDING_UPDATE"
        any_lab.agents.work()
        assert any_lab.status(vip_id) == "ACTIVE"
        limits = {
            name: any_lab.agents.served[id_][vip_id].vip.connection_limit for name, id_ in any_lab.ids.items() if name != "c"
        }
        assert limits == {"a": 7, "b": 7}
        any_lab.settle()
        assert (any_lab.served(vip_id), any_lab.used()) == (["b"], {"a": 0, "b": 1, "c": 0})
        assert any_lab.drift() == []

    def test_it_does_not_arrive_with_an_older_state_than_it_left_with(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        lab.move(vip_id, to="b")
        lab.agents.silent.add(lab.ids["a"])
        lab.agents.work(1)
        assert lab.home(vip_id) == "b"
        lab.settle()
        lab.agents.silent.clear()
        other = lab.vip(on="a")
        lab.move(other, to="b")
        lab.balancers.update_vip(TENANT, other, {"connection_limit": 7})
        lab.agents.work(1)  # the first cast, of the state before the update
        assert lab.home(other) == "a"

    def test_one_that_the_target_has_no_room_for_is_accepted_and_the_move_undone(self, lab: Lab) -> None:
        lab.registry.update(lab.ids["b"], {"capacity": {"VIPS": 10, "CONNECTIONS": 100}})
        vip_id = lab.vip(on="a", connection_limit=50)
        lab.move(vip_id, to="b")
        lab.balancers.update_vip(TENANT, vip_id, {"connection_limit": 500})
        assert lab.last_move(vip_id).state == "rolling_back"
        lab.settle()
        assert (lab.served(vip_id), lab.status(vip_id)) == (["a"], "ACTIVE")
        assert lab.used() == {"a": 1, "b": 0, "c": 0}
        assert lab.drift() == []

    def test_one_that_the_target_cannot_do_is_accepted_and_the_move_undone(self, lab: Lab) -> None:
        lab.registry.update(lab.ids["b"], {"capabilities": sorted(traits.STANDARD - {"PERSISTENCE_SOURCE_IP"})})
        vip_id = lab.vip(on="a")
        lab.move(vip_id, to="b")
        lab.balancers.update_vip(TENANT, vip_id, {"session_persistence": {"type": "SOURCE_IP"}})
        assert lab.last_move(vip_id).state == "rolling_back"
        assert "PERSISTENCE_SOURCE_IP" in lab.last_move(vip_id).error
        lab.settle()
        assert (lab.served(vip_id), lab.status(vip_id)) == (["a"], "ACTIVE")

    @pytest.mark.parametrize("steps", [0, 1, 2])
    def test_a_deletion_at_any_step_leaves_nothing_behind(self, any_lab: Lab, steps: int) -> None:
        vip_id = any_lab.vip(on="a")
        any_lab.move(vip_id, to="b")
        for _ in range(steps):
            any_lab.agents.work(1)
            any_lab.reconciler.run_once()
        any_lab.balancers.delete_vip(TENANT, vip_id)
        any_lab.settle()
        with pytest.raises(NotFound):
            any_lab.status(vip_id)
        assert any_lab.served(vip_id) == []
        assert any_lab.used() == {"a": 0, "b": 0, "c": 0}
        assert any_lab.last_move(vip_id) is None
        assert any_lab.drift() == []

    def test_statistics_count_from_the_device_that_serves_it(self, lab: Lab) -> None:
        vip_id = lab.vip(on="a")
        pool_id = lab.balancers.get_vip(TENANT, vip_id)["pool_id"]
        lab.stats(vip_id, "a", bytes_in=5)
        lab.move(vip_id, to="b")
        lab.stats(vip_id, "b", bytes_in=1)
        assert lab.balancers.stats(TENANT, pool_id)["stats"]["bytes_in"] == 5
        lab.agents.work()
        lab.stats(vip_id, "b", bytes_in=2)
        lab.stats(vip_id, "a", bytes_in=9)
        assert lab.balancers.stats(TENANT, pool_id)["stats"]["bytes_in"] == 2


class TestRaces:
    def test_of_two_that_move_a_vip_one_wins(self, any_lab: Lab) -> None:
        vip_id = any_lab.vip(on="a")
        servers = [any_lab, Lab(any_lab.url, agents=any_lab.agents)]

        def move(number: int) -> str:
            try:
                servers[number].fleet.move_vip(ADMIN, vip_id, any_lab.ids["bc"[number]])
            except LBaaSError as error:
                return type(error).__name__
            return "moved"

        with ThreadPoolExecutor(2) as pool:
            outcomes = sorted(pool.map(move, range(2)))
        servers[1].close()
        assert outcomes == ["Conflict", "moved"]
        assert sum(any_lab.used().values()) == 2
        any_lab.settle()
        assert len(any_lab.served(vip_id)) == 1
        assert sum(any_lab.used().values()) == 1
        assert any_lab.drift() == []

    def test_moves_updates_and_reports_at_once_leave_the_counters_true(self, any_lab: Lab) -> None:
        vips = [any_lab.vip(on="a") for _ in range(6)]
        other = Lab(any_lab.url, agents=any_lab.agents)

        def tenant(vip_id: str) -> None:
            for limit in range(3):
                any_lab.balancers.update_vip(TENANT, vip_id, {"connection_limit": limit + 1})

        def operator(vip_id: str) -> None:
            with suppress(Conflict):
                other.fleet.move_vip(ADMIN, vip_id)

        with ThreadPoolExecutor(4) as pool:
            for vip_id in vips:
                pool.submit(tenant, vip_id)
                pool.submit(operator, vip_id)
        other.close()
        any_lab.settle(10)
        assert {any_lab.status(vip_id) for vip_id in vips} == {"ACTIVE"}
        assert [len(any_lab.served(vip_id)) for vip_id in vips] == [1] * 6
        assert [any_lab.served(vip_id) for vip_id in vips] == [[any_lab.home(vip_id)] for vip_id in vips]
        assert sum(any_lab.used().values()) == 6
        assert any_lab.drift() == []


def test_a_device_that_gets_another_agent_on_the_way_is_told_anew(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    lab.registry.update(lab.ids["b"], {"agent_host": None})
    lab.move(vip_id, to="b")
    lab.agents.forget()
    lab.heartbeat("host-b", ago=1000)
    lab.settle()
    assert lab.plant.parts.registry.agent_host(lab.ids["b"]) in ("host-a", "host-c")
    lab.settle()
    assert lab.served(vip_id) == ["b"]
    assert lab.last_move(vip_id).state == "done"


def test_tenants_and_administrators_are_told_where_a_moving_vip_is(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    pool_id = lab.balancers.get_vip(TENANT, vip_id)["pool_id"]
    host = {name: lab.plant.parts.registry.agent_host(lab.ids[name]) for name in "ab"}

    def agent() -> str:
        agent_id = lab.balancers.get_agent_of_pool(ADMIN, pool_id)
        return str(lab.plant.parts.agents.get(agent_id)["host"])

    lab.move(vip_id, to="b")
    assert agent() == host["a"]
    lab.agents.work()
    assert agent() == host["b"]


@pytest.mark.parametrize("method", FLEET_METHODS)
def test_no_operation_on_the_fleet_is_a_tenants(lab: Lab, method: str) -> None:
    without_id = ("get_moves", "rebalance", "get_breaker", "reset_breaker")
    with pytest.raises(NotAuthorized):
        getattr(lab.fleet, method)(TENANT, *(() if method in without_id else (lab.ids["a"],)))
