"""What went wrong for people who run such systems, where no other test tells of it."""

from __future__ import annotations

import pytest

from lbaas_scheduler.errors import NoValidDevice
from tests.functional.fleet.lab import ADMIN, TENANT, Lab
from tests.functional.fleet.test_failovers import after, bring_back, lose, status


def options(lab: Lab, **wanted: object) -> None:
    """From now on, of the service type that VIPs get."""
    [default] = lab.service_types.list({"default": [True]})
    lab.service_types.update(default.id, {"options": wanted})


def test_what_was_deleted_while_a_device_was_off_is_not_on_it_when_it_is_back(lab: Lab) -> None:
    """F5 agent 1095, 954: deletions that a device missed stayed on it for ever."""
    doomed, kept = [lab.vip(on="a") for _ in range(5)], lab.vip(on="a")
    lab.agents.silent.add(lab.ids["a"])
    lose(lab, "a")
    for vip_id in doomed:
        lab.balancers.delete_vip(TENANT, vip_id)
    lab.settle(2)
    assert len(lab.agents.served[lab.ids["a"]]) == 6
    assert lab.used()["a"] == 6
    lab.agents.silent.clear()
    bring_back(lab, "a")
    lab.check_all()
    after(lab, 0)
    lab.check_all()
    assert status(lab, "a") == "ONLINE"
    assert list(lab.agents.served[lab.ids["a"]]) == [kept]
    assert ([vip["id"] for vip in lab.balancers.get_vips(TENANT)], lab.used()["a"]) == ([kept], 1)
    assert lab.drift() == []


def test_where_every_other_device_is_lost_too_a_vip_waits_says_why_and_leaves_when_one_is_back(lab: Lab) -> None:
    """Octavia LP 2033894: a failover from one dead device to another was stuck on it for minutes."""
    options(lab, evacuate_after_seconds=60)
    vip_id = lab.vip(on="a")
    lab.option("breaker_lost_percent", 100)
    for name in ("a", "b", "c"):
        lose(lab, name)
    lab.age_offline(61)
    lab.settle(1)
    waiting = lab.last_move(vip_id)
    assert (waiting.state, waiting.target_id, waiting.attempts) == ("queued", None, 1)
    assert "device.offline" in waiting.error
    # It is not tried again before its pause is over.
    lab.settle(3)
    assert lab.last_move(vip_id).attempts == 1
    assert (lab.home(vip_id), lab.used()) == ("a", {"a": 1, "b": 0, "c": 0})
    bring_back(lab, "c")
    lab.check_all()
    after(lab, 61)
    assert (lab.home(vip_id), lab.status(vip_id)) == ("c", "ACTIVE")


def test_a_move_keeps_to_the_zone_that_the_vip_was_placed_by(lab: Lab) -> None:
    """sapcc 208, F5 driver v212.6.9: moving and failing over ignored the availability zone."""
    for name in ("a", "b"):
        lab.registry.update(lab.ids[name], {"zone": "east"})
    lab.registry.update(lab.ids["c"], {"zone": "west"})
    options(lab, zone="east", evacuate_after_seconds=60)
    vip_id = lab.vip(on="a")
    with pytest.raises(NoValidDevice, match="zone"):
        lab.move(vip_id, to="c")
    lab.registry.update(lab.ids["b"], {"admin_state": "draining"})
    with pytest.raises(NoValidDevice):
        lab.move(vip_id)
    lose(lab, "a")
    after(lab, 61)
    assert (lab.home(vip_id), lab.last_move(vip_id).state) == ("a", "queued")
    assert {it["state"] for it in lab.fleet.get_moves(ADMIN)} == {"queued"}
    lab.registry.update(lab.ids["b"], {"admin_state": "enabled"})
    after(lab, 61)
    assert lab.home(vip_id) == "b"
