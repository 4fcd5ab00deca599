"""A device that is gone for good holds nothing up for ever."""

from __future__ import annotations

import pytest

from lbaas_scheduler.domain.moves import MoveState
from lbaas_scheduler.errors import DeviceInUse, DeviceNotFound, InvalidRequest, NotAuthorized, StateInvalid, VipNotFound
from tests.functional.fleet.lab import ADMIN, TENANT, Lab


def lose(lab: Lab, name: str) -> None:
    """The appliance burns down, and its operator knows it."""
    lab.agents.silent.add(lab.ids[name])
    lab.change(name, offline=True)
    for _ in range(lab.conf.scheduler.check_failures):
        lab.check_all()
    lab.registry.update(lab.ids[name], {"admin_state": "disabled"})


def write_off(lab: Lab, name: str, **force: bool) -> dict[str, object]:
    return lab.fleet.write_off_device(ADMIN, lab.ids[name], **force)


def desired(lab: Lab, name: str) -> list[dict[str, object]]:
    return lab.callbacks.list_desired(None, f"host-{name}", lab.ids[name], None, 100)


def test_what_a_lost_device_was_to_remove_counts_as_removed(any_lab: Lab) -> None:
    lab = any_lab
    deleted, moved, arriving = lab.vip(on="a"), lab.vip(on="a"), lab.vip(on="b")
    lab.agents.silent.add(lab.ids["a"])
    lab.move(moved, to="b")
    lab.move(arriving, to="a")
    lab.settle()
    lose(lab, "a")
    lab.balancers.delete_vip(TENANT, deleted)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    lab.settle()
    assert lab.status(deleted) == "PENDING_DELETE"
    assert (lab.last_move(moved).state, lab.last_move(arriving).state) == (MoveState.REMOVING, MoveState.DEPLOYING)
    assert lab.used() == {"a": 3, "b": 2, "c": 0}
    answer = write_off(lab, "a")
    assert answer == {"device_id": lab.ids["a"], "settled": 3, "gone": [deleted]}
    with pytest.raises(VipNotFound):
        lab.status(deleted)
    assert (lab.last_move(moved).state, lab.last_move(arriving).state) == (MoveState.DONE, MoveState.FAILED)
    assert "was written off" in lab.last_move(arriving).error
    assert lab.home(moved) == lab.home(arriving) == "b"
    assert lab.used() == {"a": 0, "b": 2, "c": 0}
    assert lab.fleet.get_evacuation(ADMIN, lab.ids["a"])["state"] == "finished"
    assert write_off(lab, "a") == {"device_id": lab.ids["a"], "settled": 0, "gone": []}
    assert lab.drift() == []
    lab.registry.remove(lab.ids["a"])


def test_what_was_written_off_and_comes_back_is_to_let_go_of_all(lab: Lab) -> None:
    deleted, moved = lab.vip(on="a"), lab.vip(on="a")
    lab.move(moved, to="b")
    lab.agents.work()
    lab.agents.forget()
    lose(lab, "a")
    lab.balancers.delete_vip(TENANT, deleted)
    late = lab.rows(deleted)["a"].version
    write_off(lab, "a")
    assert lab.served(moved) == ["a", "b"]
    # The agent is back: the device is its own still, and nothing is to be on it.
    lab.agents.silent.clear()
    assert [it["id"] for it in lab.callbacks.get_devices(None, "host-a")] == [lab.ids["a"]]
    assert desired(lab, "a") == []
    for vip_id, removed in ((deleted, False), (deleted, True), (moved, False), (moved, True)):
        result = {"vip_id": vip_id, "version": list(late), "error": None, "object_errors": {}, "removed": removed}
        lab.callbacks.report_results(None, "host-a", {lab.ids["a"]: [result]})
    assert (lab.home(moved), lab.status(moved), lab.used()) == ("b", "ACTIVE", {"a": 0, "b": 1, "c": 0})
    lab.change("a")
    lab.registry.update(lab.ids["a"], {"admin_state": "enabled"})
    lab.check_all()
    lab.check_all()
    lab.move(moved, to="a")
    lab.settle()
    assert (lab.home(moved), lab.served(moved)) == ("a", ["a"])
    assert lab.drift() == []


def test_what_lives_on_it_is_named_and_must_leave_first(lab: Lab) -> None:
    vip_id = lab.vip(on="a")
    lose(lab, "a")
    before = lab.snapshot()
    for force in (False, True):
        with pytest.raises(DeviceInUse, match=f"still carries {vip_id}; evacuate it first"):
            write_off(lab, "a", force=force)
    assert lab.snapshot() == before
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    lab.settle()
    assert write_off(lab, "a")["settled"] == 1
    assert lab.used()["a"] == 0


def test_a_device_that_may_be_there_is_not_written_off_by_mistake(lab: Lab) -> None:
    deleted = lab.vip(on="a")
    with pytest.raises(StateInvalid, match="while it is enabled; disable it first"):
        write_off(lab, "a", force=True)
    lab.agents.silent.add(lab.ids["a"])
    lab.registry.update(lab.ids["a"], {"admin_state": "disabled"})
    lab.balancers.delete_vip(TENANT, deleted)
    with pytest.raises(StateInvalid, match="ONLINE with a live agent; if it is gone all the same, say so with force"):
        write_off(lab, "a")
    with pytest.raises(InvalidRequest, match="force must be true or false"):
        write_off(lab, "a", force="no")  # type: ignore[arg-type]
    with pytest.raises(NotAuthorized):
        lab.fleet.write_off_device(TENANT, lab.ids["a"])
    with pytest.raises(DeviceNotFound):
        lab.fleet.write_off_device(ADMIN, "none")
    assert lab.status(deleted) == "PENDING_DELETE"
    lab.heartbeat("host-a", ago=10_000)
    assert write_off(lab, "a")["gone"] == [deleted]
    other = lab.vip(on="b")
    lab.agents.silent.add(lab.ids["b"])
    lab.registry.update(lab.ids["b"], {"admin_state": "disabled"})
    lab.balancers.delete_vip(TENANT, other)
    assert write_off(lab, "b", force=True)["gone"] == [other]
