"""Pools, and what their changes do to the VIP before them."""

from __future__ import annotations

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.db.models import members, pool_monitors, pool_stats, pools
from tests.functional.loadbalancer.lab import Lab


def test_a_pool_without_a_vip_needs_no_device_and_is_active_at_once(lab: Lab) -> None:
    pool = lab.pool(name="web")
    expected = {
        "tenant_id": "tenant",
        "name": "web",
        "description": "",
        "vip_id": None,
        "subnet_id": lab.subnet["id"],
        "protocol": "HTTP",
        "provider": "default",
        "lb_method": "ROUND_ROBIN",
        "members": [],
        "health_monitors": [],
        "health_monitors_status": [],
        "admin_state_up": True,
        "status": "ACTIVE",
        "status_description": None,
    }
    assert {name: pool[name] for name in expected} == expected
    assert lab.plugin.get_pool(lab.me, pool["id"]) == pool
    assert lab.caster.casts == []


def test_a_pool_that_is_administratively_down_is_disabled(lab: Lab) -> None:
    pool = lab.pool(admin_state_up=False)
    assert pool["status"] == "DISABLED"
    assert lab.plugin.update_pool(lab.me, pool["id"], {"admin_state_up": True})["status"] == "ACTIVE"


def test_an_update_without_a_vip_deploys_nothing(lab: Lab) -> None:
    pool = lab.pool()
    changed = lab.plugin.update_pool(lab.me, pool["id"], {"lb_method": "LEAST_CONNECTIONS", "name": "n"})
    assert (changed["status"], changed["lb_method"], changed["name"]) == ("ACTIVE", "LEAST_CONNECTIONS", "n")
    assert lab.caster.casts == []


def test_an_update_below_a_vip_goes_to_its_device(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    before = lab.version(vip["id"])
    changed = lab.plugin.update_pool(lab.me, pool["id"], {"lb_method": "SOURCE_IP"})
    assert changed["status"] == "PENDING_UPDATE"
    assert lab.plugin.get_vip(lab.me, vip["id"])["status"] == "ACTIVE"
    assert lab.version(vip["id"]).revision == before.revision + 1
    assert lab.document(vip["id"]).pool.lb_method == "SOURCE_IP"
    assert lab.caster.casts[-1] == [vip["id"]]
    lab.confirm(vip["id"])
    assert lab.plugin.get_pool(lab.me, pool["id"])["status"] == "ACTIVE"


@pytest.mark.parametrize("changes", [{"lb_method": "DUMMY"}, {"protocol": "TCP"}, {"vip_id": "x"}, {"members": []}, {"foo": 1}])
def test_a_wrong_update_is_refused_and_changes_nothing(lab: Lab, changes: dict[str, object]) -> None:
    pool = lab.pool()
    with pytest.raises(errors.InvalidRequest):
        lab.plugin.update_pool(lab.me, pool["id"], changes)
    assert lab.plugin.get_pool(lab.me, pool["id"]) == pool


@pytest.mark.parametrize("wrong", [{"protocol": "UDP"}, {"lb_method": ""}, {"subnet_id": None}, {"provider": "unheard of"}])
def test_a_wrong_pool_is_refused(lab: Lab, wrong: dict[str, object]) -> None:
    with pytest.raises(errors.InvalidRequest):
        lab.pool(**wrong)
    assert lab.count(pools) == 0


def test_the_list_of_health_monitors_is_accepted_and_ignored(lab: Lab) -> None:
    pool = lab.pool(health_monitors=None)
    changed = lab.plugin.update_pool(lab.me, pool["id"], {"health_monitors": [pool["id"]]})
    assert changed == pool


def test_a_pool_with_a_vip_cannot_be_deleted_and_keeps_its_status(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    before = lab.version(vip["id"])
    with pytest.raises(errors.PoolInUse) as caught:
        lab.plugin.delete_pool(lab.me, pool["id"])
    assert vip["id"] in caught.value.message
    assert lab.plugin.get_pool(lab.me, pool["id"])["status"] == "ACTIVE"
    assert lab.version(vip["id"]) == before


def test_a_deleted_pool_takes_its_members_and_associations_with_it(lab: Lab) -> None:
    pool = lab.pool()
    lab.member(pool)
    monitor = lab.monitor(pool)
    lab.plugin.delete_pool(lab.me, pool["id"])
    assert [lab.count(table) for table in (pools, members, pool_monitors, pool_stats)] == [0, 0, 0, 0]
    assert lab.plugin.get_health_monitor(lab.me, monitor["id"])["pools"] == []
    with pytest.raises(errors.PoolNotFound):
        lab.plugin.get_pool(lab.me, pool["id"])


def test_a_pool_whose_vip_is_being_deleted_can_be_deleted(lab: Lab) -> None:
    pool = lab.pool()
    lab.member(pool)
    vip = lab.active_vip(pool)
    lab.plugin.delete_vip(lab.me, vip["id"])
    lab.plugin.delete_pool(lab.me, pool["id"])
    assert lab.confirm(vip["id"], removed=True) == [vip["id"]]


def test_a_pool_whose_vip_goes_waits_for_no_device_any_more(lab: Lab) -> None:
    pool = lab.pool()
    stays, leaves = lab.member(pool), lab.member(pool, "10.1.0.2")
    monitor = lab.monitor(pool)
    vip = lab.vip(pool)
    lab.plugin.update_member(lab.me, stays["id"], {"weight": 3})
    lab.plugin.delete_member(lab.me, leaves["id"])
    lab.plugin.update_health_monitor(lab.me, monitor["id"], {"delay": 9})
    lab.plugin.update_pool(lab.me, pool["id"], {"name": "n"})
    lab.plugin.delete_vip(lab.me, vip["id"])
    shown = lab.plugin.get_pool(lab.me, pool["id"])
    assert (shown["status"], shown["members"]) == ("ACTIVE", [stays["id"]])
    assert shown["health_monitors_status"][0]["status"] == "ACTIVE"
    assert lab.plugin.get_member(lab.me, stays["id"])["status"] == "ACTIVE"


def test_a_method_that_the_device_cannot_do_is_refused(lab: Lab) -> None:
    lab.add_device("simple", without=["METHOD_SOURCE_IP"], vips=5)
    lab.only("simple")
    pool = lab.pool()
    lab.vip(pool)
    with pytest.raises(errors.Conflict, match="METHOD_SOURCE_IP"):
        lab.plugin.update_pool(lab.me, pool["id"], {"lb_method": "SOURCE_IP"})
    assert lab.plugin.get_pool(lab.me, pool["id"])["lb_method"] == "ROUND_ROBIN"
