"""A fleet is evened out by a plan that is shown first."""

from __future__ import annotations

import pytest

from lbaas_scheduler.errors import InvalidRequest
from tests.database import counted
from tests.functional.fleet.lab import ADMIN, Lab
from tests.functional.fleet.test_evacuations import fill, run


def test_the_plan_is_shown_and_nothing_moves(lab: Lab) -> None:
    fill(lab, 6)
    before = lab.snapshot()
    plan = lab.fleet.rebalance(ADMIN, bound=0.1)
    assert len(plan["moves"]) == 4
    assert (plan["spread_before"], plan["queued"]) == (0.6, 0)
    assert plan["spread_after"] <= 0.1
    assert lab.snapshot() == before


def test_what_was_shown_is_what_moves(any_lab: Lab) -> None:
    vips = fill(any_lab, 6)
    plan = any_lab.fleet.rebalance(ADMIN, bound=0.1)
    assert any_lab.fleet.rebalance(ADMIN, apply=True, moves=plan["moves"])["queued"] == 4
    run(any_lab)
    assert any_lab.used() == {"a": 2, "b": 2, "c": 2}
    assert {any_lab.status(vip_id) for vip_id in vips} == {"ACTIVE"}
    for step in plan["moves"]:
        assert any_lab.ids[any_lab.home(step["resource_id"])] == step["target_id"]
    assert any_lab.fleet.rebalance(ADMIN, bound=0.1)["moves"] == []
    assert any_lab.drift() == []


def test_a_plan_of_many_moves_takes_as_many_statements_as_one_of_few(lab: Lab) -> None:
    def planned() -> tuple[int, int]:
        with counted(lab.database) as sent:
            moves = lab.fleet.rebalance(ADMIN, bound=0.05)["moves"]
        return len(moves), len(sent)

    fill(lab, 2)
    few, statements = planned()
    fill(lab, 7)
    many, same = planned()
    assert (few, many) == (1, 6)
    assert same == statements


def test_steps_that_are_out_of_date_are_left_out(lab: Lab) -> None:
    fill(lab, 3)
    plan = lab.fleet.rebalance(ADMIN, bound=0.1)
    first = plan["moves"][0]
    lab.fleet.move_vip(ADMIN, first["resource_id"])
    assert lab.fleet.rebalance(ADMIN, apply=True, moves=plan["moves"])["queued"] == len(plan["moves"]) - 1


def test_a_step_that_its_target_refuses_fails_with_the_reason(lab: Lab) -> None:
    fill(lab, 3)
    plan = lab.fleet.rebalance(ADMIN, bound=0.1)
    target = lab.name(plan["moves"][0]["target_id"])
    lab.change(target, reject="of its colour")
    lab.fleet.rebalance(ADMIN, apply=True, moves=plan["moves"])
    run(lab)
    failed = lab.fleet.get_moves(ADMIN, states=["failed"])
    assert "of its colour" in failed[0]["error"]
    assert lab.drift() == []


def test_nothing_moves_to_a_device_that_takes_nothing_new(lab: Lab) -> None:
    fill(lab, 6)
    lab.registry.update(lab.ids["b"], {"admin_state": "draining"})
    plan = lab.fleet.rebalance(ADMIN, bound=0.1)
    assert {step["target_id"] for step in plan["moves"]} == {lab.ids["c"]}


@pytest.mark.parametrize("wrong", [{"bound": -1}, {"bound": "x"}, {"max_moves": 0}, {"moves": []}, {"service": "Firewall"}])
def test_a_wrong_wish_is_refused(lab: Lab, wrong: dict) -> None:
    with pytest.raises(InvalidRequest):
        lab.fleet.rebalance(ADMIN, **wrong)
