"""Everything leaves a device, a few at a time, and whoever dies meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from lbaas_scheduler.db import evacuations, move_queue
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.moves import Transfer
from lbaas_scheduler.errors import DeviceNotFound, NotFound
from lbaas_scheduler.plugins.fleet.starting import Starter
from tests.functional.fleet.lab import ADMIN, Lab


def fill(lab: Lab, count: int, name: str = "a") -> list[str]:
    lab.only(name)
    vips = [lab.vip() for _ in range(count)]
    lab.open_all()
    return vips


def run(lab: Lab, cycles: int = 12) -> None:
    for _ in range(cycles):
        lab.make_due()
        lab.settle(1)


def begin(lab: Lab) -> None:
    """What a server does in its next cycle, apart from all else."""
    lab.mover.begin_queued_moves()


def deploying(lab: Lab) -> int:
    return len(lab.fleet.get_moves(ADMIN, states=["deploying"]))


def test_a_device_is_emptied_onto_the_others_evenly(any_lab: Lab) -> None:
    vips = fill(any_lab, 8)
    progress = any_lab.fleet.evacuate_device(ADMIN, any_lab.ids["a"])
    assert (progress["state"], progress["total"], progress["left"]) == ("running", 8, 8)
    run(any_lab)
    assert any_lab.used() == {"a": 0, "b": 4, "c": 4}
    assert {any_lab.status(vip_id) for vip_id in vips} == {"ACTIVE"}
    assert [len(any_lab.served(vip_id)) for vip_id in vips] == [1] * 8
    progress = any_lab.fleet.get_evacuation(ADMIN, any_lab.ids["a"])
    assert (progress["state"], progress["left"], progress["moves"]) == ("finished", 0, {"done": 8})
    assert any_lab.drift() == []


def test_the_device_takes_nothing_new_from_then_on(lab: Lab) -> None:
    fill(lab, 1)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    assert lab.registry.get(lab.ids["a"]).admin_state == "draining"
    lab.registry.update(lab.ids["b"], {"admin_state": "disabled"})
    assert lab.home(lab.vip()) == "c"


def test_a_disabled_device_stays_disabled(lab: Lab) -> None:
    vips = fill(lab, 2)
    lab.registry.update(lab.ids["a"], {"admin_state": "disabled"})
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    run(lab)
    assert lab.registry.get(lab.ids["a"]).admin_state == "disabled"
    assert {lab.home(vip_id) for vip_id in vips} <= {"b", "c"}


def test_no_more_are_on_their_way_at_once_than_may_be(lab: Lab) -> None:
    fill(lab, 9)
    lab.option("max_moves", 5)
    lab.option("max_moves_per_device", 3)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    seen = []
    for _ in range(20):
        lab.make_due()
        lab.reconciler.run_once()
        seen.append(deploying(lab))
        lab.agents.work()
    assert max(seen) == 3
    assert lab.used()["a"] == 0


def test_one_that_nobody_can_take_stops_no_other_and_leaves_when_there_is_room(lab: Lab) -> None:
    big = lab.vip(on="a", connection_limit=1000)
    small = fill(lab, 3)
    for name in ("b", "c"):
        lab.registry.update(lab.ids[name], {"capacity": {"VIPS": 10, "CONNECTIONS": 100}})
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    run(lab)
    assert {lab.home(vip_id) for vip_id in small} <= {"b", "c"}
    progress = lab.fleet.get_evacuation(ADMIN, lab.ids["a"])
    assert (progress["state"], progress["left"]) == ("running", 1)
    ((waiting),) = progress["waiting"]
    assert waiting["resource_id"] == big
    assert "capacity.CONNECTIONS" in waiting["reason"]
    lab.registry.update(lab.ids["c"], {"capacity": {"VIPS": 10, "CONNECTIONS": 5000}})
    run(lab)
    assert lab.home(big) == "c"
    assert lab.fleet.get_evacuation(ADMIN, lab.ids["a"])["state"] == "finished"


def test_a_target_that_fails_is_not_asked_again_at_once(lab: Lab) -> None:
    vips = fill(lab, 3)
    lab.agents.broken[lab.ids["b"]] = "no"
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    run(lab)
    assert {lab.home(vip_id) for vip_id in vips} == {"c"}
    assert lab.used() == {"a": 0, "b": 0, "c": 3}
    assert {lab.status(vip_id) for vip_id in vips} == {"ACTIVE"}
    assert lab.drift() == []


def test_a_target_that_failed_gets_another_chance_when_it_is_the_only_one(lab: Lab) -> None:
    vips = fill(lab, 1)
    lab.registry.update(lab.ids["c"], {"admin_state": "disabled"})
    lab.agents.broken[lab.ids["b"]] = "no"
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    run(lab, 4)
    assert lab.home(vips[0]) == "a"
    lab.agents.broken.clear()
    run(lab)
    assert lab.home(vips[0]) == "b"


def test_what_comes_to_the_device_after_the_start_leaves_it_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    late = lab.vip(on="a")
    with monkeypatch.context() as patch:  # its creation had its claim before the drain, and is committed after it
        patch.setattr(move_queue, "to_be_evacuated", lambda *_: [])
        lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    assert lab.last_move(late) is None
    run(lab)
    assert lab.home(late) in ("b", "c")


def test_cancelled_what_has_not_begun_to_leave_stays(lab: Lab) -> None:
    fill(lab, 6)
    lab.option("max_moves", 2)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    begin(lab)
    progress = lab.fleet.cancel_evacuation(ADMIN, lab.ids["a"])
    assert progress["state"] == "cancelled"
    run(lab)
    assert lab.used() == {"a": 4, "b": 1, "c": 1}


def test_what_is_not_cancelled_in_time_is_not_queued_after_all(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server looks for what is left to go while the evacuation is cancelled."""
    fill(lab, 6)
    lab.option("max_moves", 1)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    begin(lab)
    lab.fleet.cancel_evacuation(ADMIN, lab.ids["a"])
    monkeypatch.setattr(evacuations, "running", lambda _conn: [lab.ids["a"]])
    lab.mover.sweep_evacuations()
    assert lab.fleet.get_evacuation(ADMIN, lab.ids["a"])["moves"] == {"deploying": 1}


def test_what_waits_to_leave_a_device_for_other_reasons_is_not_cancelled(lab: Lab) -> None:
    vips = fill(lab, 2)
    lab.option("max_moves", 1)
    assert lab.mover.transfer([Transfer(vip_id, lab.ids["a"], lab.ids["b"]) for vip_id in vips]) == 2
    begin(lab)
    with pytest.raises(NotFound, match="Evacuation of device"):
        lab.fleet.cancel_evacuation(ADMIN, lab.ids["a"])
    assert sorted(lab.last_move(vip_id).state for vip_id in vips) == ["deploying", "queued"]


def test_a_device_that_is_removed_while_its_evacuation_begins_is_not_found(any_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = any_lab
    lab.registry.update(lab.ids["a"], {"admin_state": "disabled"})
    get = lab.registry.get

    def get_then_lose(device_id: str) -> Device:
        found = get(device_id)
        lab.registry.remove(device_id)
        return found

    monkeypatch.setattr(lab.registry, "get", get_then_lose)
    with pytest.raises(DeviceNotFound):
        lab.fleet.evacuate_device(ADMIN, lab.ids["a"])


def test_a_server_that_dies_with_what_it_took_costs_a_delay(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    vips = fill(lab, 3)

    class Dead(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Dead

    with monkeypatch.context() as patch:
        patch.setattr(Starter, "_place", die)
        lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
        with pytest.raises(Dead):
            begin(lab)
    assert lab.used() == {"a": 3, "b": 0, "c": 0}
    run(lab)
    assert {lab.home(vip_id) for vip_id in vips} <= {"b", "c"}
    assert lab.drift() == []


def test_several_servers_evacuate_one_device_and_move_each_vip_once(any_lab: Lab) -> None:
    fill(any_lab, 8)
    others = [Lab(any_lab.url, agents=any_lab.agents) for _ in range(2)]
    servers = [any_lab, *others]
    for server in servers:
        server.option("max_moves_per_device", 100)
        server.option("max_moves", 3)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda server: server.fleet.evacuate_device(ADMIN, any_lab.ids["a"]), servers))
        list(pool.map(begin, servers))
        assert deploying(any_lab) == 3
        for server in servers:
            server.option("max_moves", 100)
        any_lab.make_due()
        list(pool.map(lambda server: server.mover.run_once(), servers))
    assert sum(any_lab.used().values()) <= 16
    run(any_lab)
    for server in others:
        server.close()
    assert any_lab.used()["a"] == 0
    assert sum(any_lab.used().values()) == 8
    assert any_lab.drift() == []


def test_an_unknown_device_and_one_that_was_never_evacuated_are_told_apart(lab: Lab) -> None:
    with pytest.raises(DeviceNotFound):
        lab.fleet.evacuate_device(ADMIN, "nothing")
    with pytest.raises(NotFound, match="Evacuation of device"):
        lab.fleet.get_evacuation(ADMIN, lab.ids["a"])


def test_an_empty_device_is_evacuated_at_once_and_can_be_removed(lab: Lab) -> None:
    assert lab.fleet.evacuate_device(ADMIN, lab.ids["a"])["state"] == "finished"
    lab.registry.remove(lab.ids["a"])
