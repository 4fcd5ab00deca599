"""Everything leaves a host that is lost as fast as the others can take it."""

from __future__ import annotations

import pytest

from lbaas_scheduler.domain.moves import MoveState
from lbaas_scheduler.plugins.casts import MAX_PER_MESSAGE
from tests.database import counted
from tests.functional.fleet.lab import ADMIN, Lab
from tests.functional.fleet.test_evacuations import begin, deploying, fill
from tests.functional.fleet.test_monitoring import bring_back, lose

STATEMENTS_PER_MOVE = 24
"""A claim and what goes with it, in one transaction each; what a move needs to know is read for all together."""


@pytest.fixture(params=["device", "agent"])
def lost(request: pytest.FixtureRequest, any_lab: Lab) -> Lab:
    """Nine VIPs on a device that is OFFLINE, or whose agent is dead."""
    return _lost(any_lab, request.param, 9)


def _lost(lab: Lab, what: str, count: int) -> Lab:
    fill(lab, count)
    if what == "device":
        lose(lab, "a")
    else:
        lab.agents.silent.add(lab.ids["a"])
        lab.heartbeat("host-a", ago=1000)
    lab.option("max_moves", 1)
    lab.option("max_moves_per_device", 1)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    return lab


def test_all_of_a_lost_device_begins_to_move_at_once(lost: Lab) -> None:
    begin(lost)
    assert deploying(lost) == 9
    lost.agents.work()
    assert lost.used() == {"a": 9, "b": 5, "c": 4} or lost.used() == {"a": 9, "b": 4, "c": 5}


def test_nobody_waits_until_a_lost_device_has_let_go(lost: Lab) -> None:
    begin(lost)
    lost.agents.work()
    lost.mover.sweep_evacuations()
    assert lost.fleet.get_evacuation(ADMIN, lost.ids["a"])["state"] == "finished"
    moved = lost.fleet.get_moves(ADMIN)
    assert {move["state"] for move in moved} == {"removing"}
    # They go on, as anybody's: what the lost device still has takes no place.
    again = moved[0]["resource_id"]
    lost.move(again, to="c" if lost.home(again) == "b" else "b")
    lost.agents.work()
    assert lost.last_move(again).state in (MoveState.REMOVING, MoveState.DONE)
    assert lost.drift() == []


def test_a_lost_device_that_comes_back_lets_go_of_what_left_it(any_lab: Lab) -> None:
    lab = _lost(any_lab, "device", 3)
    begin(lab)
    lab.agents.work()
    bring_back(lab, "a")
    lab.check_all()
    lab.make_due()
    lab.settle()
    assert lab.used()["a"] == 0
    assert {move["state"] for move in lab.fleet.get_moves(ADMIN)} == {"done"}
    assert lab.drift() == []


def test_no_more_come_to_one_device_off_lost_ones_than_may_be(any_lab: Lab) -> None:
    lab = _lost(any_lab, "device", 9)
    lab.registry.update(lab.ids["c"], {"admin_state": "disabled"})
    lab.option("max_rescues_per_device", 4)
    begin(lab)
    assert deploying(lab) == 4
    lab.agents.work()
    lab.make_due()
    begin(lab)
    assert (deploying(lab), lab.used()["b"]) == (4, 8)


def test_what_leaves_a_lost_device_keeps_nothing_else_from_moving(any_lab: Lab) -> None:
    lab = any_lab
    other = lab.vip(on="b")
    _lost(lab, "device", 4)
    begin(lab)
    assert deploying(lab) == 4
    lab.fleet.evacuate_device(ADMIN, lab.ids["b"])
    begin(lab)
    assert lab.last_move(other).state is MoveState.DEPLOYING


def test_what_is_on_its_way_to_a_device_that_was_lost_since_keeps_nothing_else_from_moving(any_lab: Lab) -> None:
    lab = any_lab
    fill(lab, 2)
    lab.option("max_moves", 2)
    lab.only("a", "b")
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    begin(lab)
    assert deploying(lab) == 2
    lose(lab, "b")
    lab.registry.update(lab.ids["c"], {"admin_state": "enabled"})
    (late,) = fill(lab, 1, "c")
    lab.registry.update(lab.ids["a"], {"admin_state": "draining"})
    lab.add_device("d")
    lab.fleet.evacuate_device(ADMIN, lab.ids["c"])
    begin(lab)
    assert lab.last_move(late).state is MoveState.DEPLOYING


def test_agents_are_told_of_what_comes_off_a_lost_device_in_few_messages(lab: Lab) -> None:
    _lost(lab, "device", 9)
    lab.registry.update(lab.ids["c"], {"admin_state": "disabled"})
    lab.agents.messages.clear()
    begin(lab)
    assert MAX_PER_MESSAGE >= 9
    assert [number for host, number in lab.agents.messages if host == "host-b"] == [9]


def test_each_further_move_off_a_lost_device_costs_its_claim_and_no_more(any_lab: Lab) -> None:
    lab = any_lab

    def began(count: int) -> int:
        fill(lab, count)
        lose(lab, "a")
        lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
        with counted(lab.database) as sent:
            begin(lab)
        assert deploying(lab) == count
        lab.agents.work()
        bring_back(lab, "a")
        lab.check_all()
        lab.settle()
        lab.check_all()
        return len(sent)

    began(1)  # what is kept in memory is read
    few, many = began(1), began(6)
    assert (many - few) / 5 <= STATEMENTS_PER_MOVE
