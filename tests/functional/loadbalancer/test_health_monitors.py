"""Health monitors and their associations with pools."""

from __future__ import annotations

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.db.models import health_monitors, pool_monitors
from tests.functional.loadbalancer.lab import Lab, tenant

NOWHERE = "00000000-0000-0000-0000-000000000000"


def test_a_monitor_has_its_defaults_and_no_status(lab: Lab) -> None:
    monitor = lab.monitor()
    expected = {
        "tenant_id": "tenant",
        "type": "HTTP",
        "delay": 5,
        "timeout": 2,
        "max_retries": 3,
        "http_method": "GET",
        "url_path": "/",
        "expected_codes": "200",
        "admin_state_up": True,
        "pools": [],
    }
    assert {name: value for name, value in monitor.items() if name != "id"} == expected
    assert lab.plugin.get_health_monitor(lab.me, monitor["id"]) == monitor


@pytest.mark.parametrize("type_", ["PING", "TCP"])
def test_monitors_that_do_not_speak_http_show_nothing_of_it(lab: Lab, type_: str) -> None:
    monitor = lab.monitor(type=type_)
    assert not {"http_method", "url_path", "expected_codes"} & set(monitor)
    assert not {"http_method", "url_path", "expected_codes"} & set(lab.plugin.get_health_monitors(lab.me)[0])


def test_delay_must_not_be_shorter_than_timeout(lab: Lab) -> None:
    with pytest.raises(errors.DelayOrTimeoutInvalid):
        lab.monitor(delay=1, timeout=2)
    monitor = lab.monitor(delay=5, timeout=2)
    with pytest.raises(errors.DelayOrTimeoutInvalid):
        lab.plugin.update_health_monitor(lab.me, monitor["id"], {"delay": 1})
    with pytest.raises(errors.DelayOrTimeoutInvalid):
        lab.plugin.update_health_monitor(lab.me, monitor["id"], {"timeout": 6})
    assert lab.plugin.get_health_monitor(lab.me, monitor["id"]) == monitor
    changed = lab.plugin.update_health_monitor(lab.me, monitor["id"], {"delay": "20", "timeout": "20"})
    assert (changed["delay"], changed["timeout"]) == (20, 20)


def test_a_monitor_can_be_changed_and_deleted(lab: Lab) -> None:
    monitor = lab.monitor()
    changes = {"http_method": "POST", "url_path": "/home/user", "expected_codes": "290"}
    changed = lab.plugin.update_health_monitor(lab.me, monitor["id"], changes)
    assert {name: changed[name] for name in changes} == changes
    lab.plugin.delete_health_monitor(lab.me, monitor["id"])
    with pytest.raises(errors.HealthMonitorNotFound):
        lab.plugin.get_health_monitor(lab.me, monitor["id"])


def test_a_monitor_in_use_cannot_be_deleted(lab: Lab) -> None:
    pool = lab.pool()
    monitor = lab.monitor(pool)
    with pytest.raises(errors.HealthMonitorInUse):
        lab.plugin.delete_health_monitor(lab.me, monitor["id"])
    lab.plugin.delete_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    lab.plugin.delete_health_monitor(lab.me, monitor["id"])
    assert lab.count(health_monitors) == 0


def test_both_sides_list_each_other_until_they_are_parted(lab: Lab) -> None:
    pool = lab.pool()
    monitor = lab.monitor()
    answer = lab.plugin.create_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    assert answer == {"health_monitor": [monitor["id"]]}
    shown = lab.plugin.get_pool(lab.me, pool["id"])
    assert shown["health_monitors"] == [monitor["id"]]
    status = {"monitor_id": monitor["id"], "status": "ACTIVE", "status_description": None}
    assert shown["health_monitors_status"] == [status]
    status = {"pool_id": pool["id"], "status": "ACTIVE", "status_description": None}
    assert lab.plugin.get_health_monitor(lab.me, monitor["id"])["pools"] == [status]
    association = lab.plugin.get_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    assert association == {**status, "monitor_id": monitor["id"], "tenant_id": "tenant"}
    lab.plugin.delete_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    assert lab.plugin.get_pool(lab.me, pool["id"])["health_monitors"] == []
    with pytest.raises(errors.PoolMonitorAssociationNotFound):
        lab.plugin.get_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    with pytest.raises(errors.PoolMonitorAssociationNotFound):
        lab.plugin.delete_pool_health_monitor(lab.me, monitor["id"], pool["id"])


def test_associations_behind_a_vip_wait_for_the_device(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    ids = [lab.monitor(pool)["id"], lab.monitor(pool, type="TCP")["id"]]
    shown = lab.plugin.get_pool(lab.me, pool["id"])["health_monitors_status"]
    assert {each["monitor_id"]: each["status"] for each in shown} == dict.fromkeys(ids, "PENDING_CREATE")
    assert [each.id for each in lab.document(vip["id"]).pool.health_monitors] == ids
    lab.confirm(vip["id"])
    shown = lab.plugin.get_pool(lab.me, pool["id"])["health_monitors_status"]
    assert {each["monitor_id"]: each["status"] for each in shown} == dict.fromkeys(ids, "ACTIVE")
    lab.plugin.delete_pool_health_monitor(lab.me, ids[0], pool["id"])
    assert [each.id for each in lab.document(vip["id"]).pool.health_monitors] == ids[1:]
    assert lab.caster.casts[-1] == [vip["id"]]


def test_an_association_twice_is_refused(lab: Lab) -> None:
    pool = lab.pool()
    monitor = lab.monitor(pool)
    with pytest.raises(errors.PoolMonitorAssociationExists):
        lab.plugin.create_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    assert lab.count(pool_monitors) == 1


def test_an_association_needs_both_sides(lab: Lab) -> None:
    pool, monitor = lab.pool(), lab.monitor()
    with pytest.raises(errors.HealthMonitorNotFound):
        lab.plugin.create_pool_health_monitor(lab.me, NOWHERE, pool["id"])
    with pytest.raises(errors.PoolNotFound):
        lab.plugin.create_pool_health_monitor(lab.me, monitor["id"], NOWHERE)
    with pytest.raises(errors.HealthMonitorNotFound):
        lab.plugin.create_pool_health_monitor(tenant("stranger"), monitor["id"], pool["id"])


def test_a_changed_monitor_reaches_every_pool_that_it_checks(lab: Lab) -> None:
    first, second, bare = lab.pool(), lab.pool(), lab.pool()
    vips = [lab.active_vip(first), lab.active_vip(second)]
    monitor = lab.monitor(first)
    for pool in (second, bare):
        lab.plugin.create_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    for vip in vips:
        lab.confirm(vip["id"])
    changed = lab.plugin.update_health_monitor(lab.me, monitor["id"], {"max_retries": 10, "admin_state_up": False})
    states = {each["pool_id"]: each["status"] for each in changed["pools"]}
    assert states == {first["id"]: "PENDING_UPDATE", second["id"]: "PENDING_UPDATE", bare["id"]: "DISABLED"}
    assert lab.caster.casts[-1] == sorted(vip["id"] for vip in vips)
    for vip in vips:
        assert lab.document(vip["id"]).pool.health_monitors[0].max_retries == 10
        lab.confirm(vip["id"])
    states = {each["status"] for each in lab.plugin.get_health_monitor(lab.me, monitor["id"])["pools"]}
    assert states == {"DISABLED"}


def test_what_the_device_cannot_check_is_refused(lab: Lab) -> None:
    lab.add_device("simple", without=["MONITOR_PING", "MONITOR_SEVERAL"])
    lab.only("simple")
    pool = lab.pool()
    lab.vip(pool)
    with pytest.raises(errors.Conflict, match="MONITOR_PING"):
        lab.monitor(pool, type="PING")
    lab.monitor(pool)
    asleep = lab.monitor(pool, type="TCP", admin_state_up=False)
    with pytest.raises(errors.Conflict, match="MONITOR_SEVERAL"):
        lab.plugin.update_health_monitor(lab.me, asleep["id"], {"admin_state_up": True})
    assert lab.plugin.get_health_monitor(lab.me, asleep["id"])["admin_state_up"] is False
    assert lab.count(pool_monitors) == 2


def test_the_monitors_of_a_pool_can_be_replaced(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    old, new = lab.monitor(pool), lab.monitor(type="TCP")
    lab.plugin.delete_pool_health_monitor(lab.me, old["id"], pool["id"])
    lab.plugin.create_pool_health_monitor(lab.me, new["id"], pool["id"])
    lab.confirm(vip["id"])
    shown = lab.plugin.get_pool(lab.me, pool["id"])["health_monitors_status"]
    assert shown == [{"monitor_id": new["id"], "status": "ACTIVE", "status_description": None}]
