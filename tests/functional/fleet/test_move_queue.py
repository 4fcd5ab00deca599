"""Moves that wait: whoever asks for many is answered at once, and no cycle of a server is taken up by them."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.moves import MoveState, Transfer
from lbaas_scheduler.plugins.fleet import queue
from lbaas_scheduler.plugins.fleet.starting import Starter
from tests.database import counted
from tests.functional.fleet.lab import ADMIN, Lab
from tests.functional.fleet.test_evacuations import begin, deploying, fill


def states(lab: Lab) -> dict[str, int]:
    found: dict[str, int] = lab.fleet.get_evacuation(ADMIN, lab.ids["a"])["moves"]
    return found


def test_an_evacuation_is_queued_in_as_many_statements_for_many_as_for_few(any_lab: Lab) -> None:
    lab = any_lab

    def asked() -> int:
        with counted(lab.database) as sent:
            answer = lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
        assert answer["state"] == "running"
        assert answer["moves"] == {"queued": answer["total"]}
        return len(sent)

    fill(lab, 1)
    few = asked()
    fill(lab, 8)
    assert asked() == few
    assert deploying(lab) == 0


def test_a_plan_is_queued_in_as_many_statements_for_many_steps_as_for_few(lab: Lab) -> None:
    vips = fill(lab, 9)

    def asked(some: list[str]) -> int:
        with counted(lab.database) as sent:
            assert lab.mover.transfer([Transfer(vip_id, lab.ids["a"], lab.ids["b"]) for vip_id in some]) == len(some)
        return len(sent)

    assert asked(vips[:1]) == asked(vips[1:])
    assert deploying(lab) == 0


def test_a_cycle_begins_moves_for_a_bounded_time_and_the_others_wait_for_the_next(
    any_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = any_lab
    fill(lab, 6)
    lab.option("max_moves_per_device", 100)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    genuine, clock = Starter.begin, [0.0]

    def slow(*arguments: object) -> object:
        clock[0] += queue.TURN_SECONDS / 2
        return genuine(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Starter, "begin", slow)
    monkeypatch.setattr(lab.mover._queue, "_monotonic", lambda: clock[0])
    begin(lab)
    assert states(lab) == {"deploying": 2, "queued": 4}
    waiting = lab.fleet.get_moves(ADMIN, states=["queued"])
    assert all(lab.last_move(it["resource_id"]).due_at <= utcnow() for it in waiting)
    begin(lab)
    assert states(lab) == {"deploying": 4, "queued": 2}


def test_moves_without_room_cost_a_cycle_nothing(lab: Lab) -> None:
    fill(lab, 9)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    begin(lab)
    assert states(lab) == {"deploying": 4, "queued": 5}
    with counted(lab.database) as few:
        begin(lab)
    lab.make_due()
    with counted(lab.database) as many:
        begin(lab)
    assert states(lab) == {"deploying": 4, "queued": 5}
    assert len(few) == len(many) <= 8


def test_moves_that_find_their_targets_crowded_do_not_keep_a_cycle_going(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler chooses a device that has enough under way: its rank says so only when the claim is made."""
    fill(lab, 6)
    tries: list[str] = []

    def crowded(_starter: object, move: object, _plan: object) -> None:
        tries.append(move.resource_id)  # type: ignore[attr-defined]
        raise queue.Crowded

    monkeypatch.setattr(queue, "MAX_CROWDED", 3)
    monkeypatch.setattr(Starter, "begin", crowded)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    begin(lab)
    assert len(tries) == 3
    begin(lab)
    assert len(set(tries)) > 3  # those that were not tried have the next turn
    assert {lab.last_move(vip_id).attempts for vip_id in tries} == {0}


def test_a_device_with_enough_under_way_keeps_no_move_of_another_waiting(any_lab: Lab) -> None:
    lab = any_lab
    lab.option("max_moves_per_device", 1)
    many, (other,) = fill(lab, 6, "a"), fill(lab, 1, "c")
    transfers = [Transfer(vip_id, lab.ids["a"], lab.ids["b"]) for vip_id in many]
    assert lab.mover.transfer(transfers) == 6
    begin(lab)
    assert lab.mover.transfer([Transfer(other, lab.ids["c"], lab.add_device("d"))]) == 1
    lab.make_due()
    begin(lab)
    assert lab.last_move(other).state is MoveState.DEPLOYING
    assert deploying(lab) == 2


def test_a_move_that_fails_again_and_again_rests_longer_each_time_and_keeps_no_other_waiting(any_lab: Lab) -> None:
    lab = any_lab
    lab.option("max_moves", 1)
    bad, *good = fill(lab, 4)
    lab.registry.update(lab.ids["c"], {"admin_state": "disabled"})
    lab.agents.refused.add(bad)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    pauses = []
    for _ in range(12):
        lab.settle(2)
        move = lab.last_move(bad)
        if move.state is MoveState.QUEUED and move.due_at > utcnow() + timedelta(seconds=1):
            pauses.append((move.due_at - utcnow()).total_seconds())
            lab.make_due()
    assert {lab.home(vip_id) for vip_id in good} == {"b"}
    assert (lab.home(bad), lab.status(bad)) == ("a", "ACTIVE")
    assert len(pauses) >= 3
    assert all(later > 1.5 * before for before, later in itertools.pairwise(pauses) if before < 150)


def test_others_begin_while_one_that_no_device_can_take_rests(lab: Lab) -> None:
    big = lab.vip(on="a", connection_limit=1000)
    for name in ("b", "c"):
        lab.registry.update(lab.ids[name], {"capacity": {"VIPS": 10, "CONNECTIONS": 100}})
    small = fill(lab, 3)
    lab.option("max_moves", 1)
    lab.fleet.evacuate_device(ADMIN, lab.ids["a"])
    lab.settle(8)
    assert {lab.home(vip_id) for vip_id in small} <= {"b", "c"}
    assert lab.home(big) == "a"
