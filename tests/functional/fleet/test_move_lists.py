"""What operators and agents are told of what moves."""

from __future__ import annotations

import pytest

from lbaas_scheduler.errors import InvalidRequest
from tests.functional.fleet.lab import ADMIN, Lab


def test_moves_come_in_pages_the_oldest_first(lab: Lab) -> None:
    vips = [lab.vip(on="a") for _ in range(3)]
    for vip_id in vips:
        lab.move(vip_id, to="b")
    pages, marker = [], None
    while found := lab.fleet.get_moves(ADMIN, lab.ids["a"], ["deploying"], marker=marker, limit=2):
        marker = found[-1]["resource_id"]
        pages.append([it["resource_id"] for it in found])
    assert pages == [vips[:2], vips[2:]]
    assert lab.fleet.get_moves(ADMIN, lab.ids["c"]) == []
    for wrong in ({"limit": 0}, {"limit": True}, {"marker": "none"}, {"states": ["lost"]}):
        with pytest.raises(InvalidRequest):
            lab.fleet.get_moves(ADMIN, **wrong)


def test_what_agents_compare_with_never_calls_a_moving_vip_an_orphan(lab: Lab) -> None:
    """sapcc #59: the target's orphan clean-up, or the source's resync, must not delete what is on its way."""

    def desired(name: str) -> dict[str, str]:
        lines = lab.callbacks.list_desired(None, f"host-{name}", lab.ids[name], None, 100)
        return {line["vip_id"]: line["operation"] for line in lines}

    vip_id = lab.vip(on="a")
    lab.move(vip_id, to="b")
    assert (desired("a"), desired("b")) == ({vip_id: "apply"}, {vip_id: "apply"})
    documents = lab.callbacks.get_deployments(None, "host-b", lab.ids["b"], [vip_id])
    assert [it["vip"]["id"] for it in documents] == [vip_id]
    lab.agents.work()
    assert (desired("a"), desired("b")) == ({vip_id: "remove"}, {vip_id: "apply"})
    lab.settle()
    assert (desired("a"), desired("b")) == ({}, {vip_id: "apply"})
