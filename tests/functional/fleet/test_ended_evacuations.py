"""An evacuation that is cancelled, or whose device is enabled, is over: what has not left by then stays."""

from __future__ import annotations

import pytest

from lbaas_scheduler.db import move_queue, move_reasons
from lbaas_scheduler.domain.moves import Cause, MoveState
from lbaas_scheduler.plugins.fleet.mover import _queued
from tests.functional.fleet.lab import ADMIN, Lab
from tests.functional.fleet.test_evacuations import begin, fill, run
from tests.functional.fleet.test_failovers import _be_patient
from tests.functional.fleet.test_monitoring import bring_back, lose


def leaving(lab: Lab, count: int) -> list[str]:
    """VIPs on their way off ``a``, to devices that will fail."""
    vips = fill(lab, count)
    for name in ("b", "c"):
        lab.agents.broken[lab.ids[name]] = "no"
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    begin(lab)
    return vips


def state(lab: Lab) -> str:
    return str(lab.fleet.get_evacuation(ADMIN, lab.ids["a"])["state"])


def stays(lab: Lab, vip_id: str) -> None:
    for _ in range(3):
        run(lab, 2)
        move = lab.last_move(vip_id)
        assert (move.state, move.error) == (MoveState.FAILED, "no")
    assert (lab.served(vip_id), lab.status(vip_id)) == (["a"], "ACTIVE")
    assert sum(lab.used().values()) == 1
    assert lab.drift() == []


def test_what_fails_on_its_target_after_a_cancel_stays_where_it_is(any_lab: Lab) -> None:
    (vip_id,) = leaving(any_lab, 1)
    any_lab.fleet.cancel_evacuation(ADMIN, any_lab.ids["a"])
    any_lab.agents.work()
    stays(any_lab, vip_id)


def test_what_takes_too_long_after_a_cancel_stays_where_it_is(lab: Lab) -> None:
    (vip_id,) = leaving(lab, 1)
    lab.agents.silent.update(lab.ids[name] for name in ("b", "c"))
    lab.fleet.cancel_evacuation(ADMIN, lab.ids["a"])
    lab.expire_moves()
    run(lab)
    assert lab.last_move(vip_id).state is MoveState.ROLLING_BACK
    assert lab.served(vip_id) == ["a"]


def test_enabling_a_device_ends_its_evacuation(any_lab: Lab) -> None:
    lab = any_lab
    fill(lab, 6)
    lab.option("max_moves", 2)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    begin(lab)
    lab.registry.update(lab.ids["a"], {"admin_state": "enabled"})
    assert state(lab) == "cancelled"
    assert lab.fleet.get_evacuation(ADMIN, lab.ids["a"])["moves"] == {"deploying": 2}
    run(lab)
    assert lab.used() == {"a": 4, "b": 1, "c": 1}
    assert lab.home(lab.vip(on="a")) == "a"
    run(lab)
    assert lab.used()["a"] == 5


def test_what_fails_on_its_target_after_its_device_was_enabled_stays_where_it_is(any_lab: Lab) -> None:
    (vip_id,) = leaving(any_lab, 1)
    any_lab.registry.update(any_lab.ids["a"], {"admin_state": "enabled"})
    any_lab.agents.work()
    stays(any_lab, vip_id)


@pytest.mark.parametrize("change", [{"admin_state": "disabled"}, {"description": "to be replaced"}])
def test_other_changes_of_the_device_end_no_evacuation(lab: Lab, change: dict[str, str]) -> None:
    vips = fill(lab, 2)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    lab.registry.update(lab.ids["a"], change)
    assert state(lab) == "running"
    run(lab)
    assert {lab.home(vip_id) for vip_id in vips} <= {"b", "c"}


def test_while_the_evacuation_goes_on_what_fails_is_tried_elsewhere(lab: Lab) -> None:
    (vip_id,) = leaving(lab, 1)
    lab.agents.work()
    assert lab.last_move(vip_id).state is MoveState.QUEUED


def test_a_move_that_was_queued_again_while_the_evacuation_ended_does_not_begin(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server that heard of the failure had read that the evacuation goes on, before the cancel was committed."""
    (vip_id,) = leaving(lab, 1)
    lab.fleet.cancel_evacuation(ADMIN, lab.ids["a"])
    with monkeypatch.context() as patch:
        patch.setattr(move_reasons, "still_wanted", lambda _conn, moves: {it.resource_id for it in moves})
        lab.agents.work()
    assert lab.last_move(vip_id).state is MoveState.QUEUED
    lab.agents.broken.clear()
    run(lab)
    assert (lab.last_move(vip_id), lab.served(vip_id)) == (None, ["a"])


def test_a_device_that_is_enabled_while_its_evacuation_begins_is_drained_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lab, 2)
    update, times = lab.registry.update, []

    def update_and_lose(device_id: str, changes: dict[str, str]) -> None:
        update(device_id, changes)
        times.append(1)
        if len(times) == 1:  # another administrator
            update(device_id, {"admin_state": "enabled"})

    monkeypatch.setattr(lab.registry, "update", update_and_lose)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    assert (lab.registry.get(lab.ids["a"]).admin_state, state(lab), len(times)) == ("draining", "running", 2)


def test_what_fails_to_leave_a_lost_device_that_is_back_stays_there(lab: Lab) -> None:
    _be_patient(lab)
    vip_id = lab.vip(on="a")
    lab.agents.broken[lab.ids["b"]] = lab.agents.broken[lab.ids["c"]] = "no"
    lose(lab, "a")
    lab.age_offline(61)
    lab.mover.run_once()
    assert lab.last_move(vip_id).state is MoveState.DEPLOYING
    bring_back(lab, "a")
    lab.check_all()
    lab.agents.work()
    lab.check_all()
    run(lab)
    assert (lab.last_move(vip_id).state, lab.served(vip_id)) == (MoveState.FAILED, ["a"])


def test_what_was_queued_by_an_evacuation_that_is_over_is_dropped(lab: Lab) -> None:
    (vip_id,) = fill(lab, 1)
    residents = lab.database.read(lambda conn: move_queue.to_be_moved(conn, [vip_id]))
    lab.database.write(lambda conn: move_queue.enqueue(conn, [_queued(it, Cause.EVACUATION) for it in residents]))
    begin(lab)
    assert lab.last_move(vip_id) is None
