"""Members."""

from __future__ import annotations

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.db.models import members
from tests.functional.loadbalancer.lab import Lab, admin, tenant


def test_a_member_is_active_at_once_where_no_device_is_involved(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    expected = {
        "tenant_id": "tenant",
        "pool_id": pool["id"],
        "address": "10.1.0.1",
        "protocol_port": 8080,
        "weight": 1,
        "admin_state_up": True,
        "status": "ACTIVE",
        "status_description": None,
    }
    assert {name: member[name] for name in expected} == expected
    assert lab.member(pool, "10.1.0.2", admin_state_up="false")["status"] == "DISABLED"


def test_a_member_behind_a_vip_waits_for_the_device(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    member = lab.member(pool)
    assert member["status"] == "PENDING_CREATE"
    assert [each.id for each in lab.document(vip["id"]).pool.members] == [member["id"]]
    lab.confirm(vip["id"])
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "ACTIVE"


def test_the_pool_lists_its_members(lab: Lab) -> None:
    pool = lab.pool()
    ids = {lab.member(pool)["id"], lab.member(pool, "10.1.0.2")["id"]}
    assert set(lab.plugin.get_pool(lab.me, pool["id"])["members"]) == ids


def test_members_are_accepted_while_the_vip_is_pending(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.vip(pool)
    first, second = lab.member(pool), lab.member(pool, "10.1.0.2")
    lab.plugin.update_vip(lab.me, vip["id"], {"name": "x"})
    third = lab.member(pool, "10.1.0.3")
    lab.confirm(vip["id"])
    states = {each["id"]: each["status"] for each in lab.plugin.get_members(lab.me)}
    assert states == dict.fromkeys((first["id"], second["id"], third["id"]), "ACTIVE")


@pytest.mark.parametrize("address", ["10.1.0.1", "2001:DB8::1"])
def test_the_same_member_twice_is_refused(lab: Lab, address: str) -> None:
    pool = lab.pool()
    lab.member(pool, "2001:db8:0:0::1")
    lab.member(pool, "10.1.0.1")
    with pytest.raises(errors.MemberExists):
        lab.member(pool, address)
    assert lab.count(members) == 2
    lab.member(pool, address, protocol_port=81)
    lab.member(lab.pool(), address)


def test_a_member_moves_between_pools_and_both_devices_hear_of_it(lab: Lab) -> None:
    old, new = lab.pool(), lab.pool()
    first, second = lab.active_vip(old), lab.active_vip(new)
    member = lab.member(old)
    lab.confirm(first["id"])
    moved = lab.plugin.update_member(lab.me, member["id"], {"pool_id": new["id"]})
    assert (moved["pool_id"], moved["status"]) == (new["id"], "PENDING_UPDATE")
    assert lab.caster.casts[-1] == sorted([first["id"], second["id"]])
    assert lab.plugin.get_pool(lab.me, old["id"])["members"] == []
    assert lab.plugin.get_pool(lab.me, new["id"])["members"] == [member["id"]]
    assert lab.document(first["id"]).pool.members == ()
    lab.confirm(second["id"])
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "ACTIVE"
    back = lab.plugin.update_member(lab.me, member["id"], {"pool_id": old["id"]})
    assert back["pool_id"] == old["id"]


def test_a_member_cannot_move_where_its_like_is(lab: Lab) -> None:
    old, new = lab.pool(), lab.pool()
    member = lab.member(old)
    lab.member(new)
    with pytest.raises(errors.MemberExists):
        lab.plugin.update_member(lab.me, member["id"], {"pool_id": new["id"]})
    assert lab.plugin.get_member(lab.me, member["id"]) == member


def test_a_member_without_a_device_goes_at_once(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    lab.plugin.delete_member(lab.me, member["id"])
    with pytest.raises(errors.MemberNotFound):
        lab.plugin.get_member(lab.me, member["id"])
    assert lab.plugin.get_pool(lab.me, pool["id"])["members"] == []


def test_a_member_behind_a_vip_stays_until_the_device_has_let_go(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    vip = lab.active_vip(pool)
    lab.plugin.delete_member(lab.me, member["id"])
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "PENDING_DELETE"
    assert lab.document(vip["id"]).pool.members == ()
    with pytest.raises(errors.StateInvalid):
        lab.plugin.update_member(lab.me, member["id"], {"weight": 2})
    lab.plugin.delete_member(lab.me, member["id"])
    lab.confirm(vip["id"])
    with pytest.raises(errors.MemberNotFound):
        lab.plugin.get_member(lab.me, member["id"])


def test_the_address_of_a_leaving_member_can_be_taken_at_once(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    lab.plugin.delete_member(lab.me, lab.member(pool)["id"])
    again = lab.member(pool)
    assert [each.id for each in lab.document(vip["id"]).pool.members] == [again["id"]]
    lab.confirm(vip["id"])
    assert [each["id"] for each in lab.plugin.get_members(lab.me)] == [again["id"]]


def test_a_leaving_member_stays_while_only_an_older_state_is_confirmed(lab: Lab) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    vip = lab.active_vip(pool)
    lab.plugin.update_member(lab.me, member["id"], {"weight": 2})
    older = lab.version(vip["id"])
    lab.plugin.delete_member(lab.me, member["id"])
    lab.confirm(vip["id"], older)
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "PENDING_DELETE"


@pytest.mark.parametrize("change", [{"weight": 256}, {"weight": 0}, {"admin_state_up": False}])
def test_each_change_reaches_the_document(lab: Lab, change: dict[str, object]) -> None:
    pool = lab.pool()
    member = lab.member(pool)
    vip = lab.active_vip(pool)
    changed = lab.plugin.update_member(lab.me, member["id"], change)
    assert changed["status"] == "PENDING_UPDATE"
    (in_document,) = lab.document(vip["id"]).pool.members
    assert {name: getattr(in_document, name) for name in change} == change


def test_a_member_needs_a_pool_that_its_owner_can_see(lab: Lab) -> None:
    pool = lab.pool()
    with pytest.raises(errors.PoolNotFound):
        lab.plugin.create_member(tenant("stranger"), {"pool_id": pool["id"], "address": "10.1.0.1", "protocol_port": 1})
    body = {"pool_id": pool["id"], "address": "10.1.0.1", "protocol_port": 1, "tenant_id": "third"}
    assert lab.plugin.create_member(admin(), body)["tenant_id"] == "third"
    assert lab.count(members) == 1
