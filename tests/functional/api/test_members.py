"""Members over HTTP: what LBaaS v1's own suites ask of them."""

from __future__ import annotations

from typing import Any

import pytest

from lbaas_scheduler.domain.deployments import MemberHealth
from tests.functional.api.house import ADMIN, BERT, House, error_of

MEMBERS = "/v2.0/lb/members"


def show(house: House, member_id: str) -> dict[str, Any]:
    return house.get(f"{MEMBERS}/{member_id}").json["member"]


def members_of(house: House, pool: dict[str, Any]) -> list[str]:
    return house.get(f"/v2.0/lb/pools/{pool['id']}").json["pool"]["members"]


def test_create_member_answers_with_the_defaults(any_house: House) -> None:
    pool = any_house.pool()
    member = any_house.member(pool)
    assert (member["weight"], member["admin_state_up"], member["status"]) == (1, True, "ACTIVE")
    assert show(any_house, member["id"]) == member
    assert members_of(any_house, pool) == [member["id"]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "not an address"},
        {"address": "10.0.0.1 "},
        {"address": "::ffff:10.0.0.1"},
        {"address": "224.0.0.1"},
        {"protocol_port": 0},
        {"protocol_port": 65536},
        {"weight": 257},
        {"weight": -1},
        {"weight": "heavy"},
        {"status": "ACTIVE"},
    ],
)
def test_create_member_with_invalid_values_is_refused(any_house: House, wrong: dict[str, Any]) -> None:
    pool = any_house.pool()
    body = {"pool_id": pool["id"], "address": "10.1.0.1", "protocol_port": 80, **wrong}
    assert any_house.post(MEMBERS, {"member": body}).status_code == 400
    assert members_of(any_house, pool) == []


def test_create_member_of_an_unknown_pool_is_refused(any_house: House) -> None:
    body = {"pool_id": "11111111-2222-3333-4444-555555555555", "address": "10.1.0.1", "protocol_port": 80}
    assert error_of(any_house.post(MEMBERS, {"member": body})) == (404, "PoolNotFound")


def test_the_same_member_twice_is_refused_and_the_first_kept(any_house: House) -> None:
    pool = any_house.pool()
    member = any_house.member(pool)
    body = {"pool_id": pool["id"], "address": "10.1.0.1", "protocol_port": "8080"}
    assert error_of(any_house.post(MEMBERS, {"member": body})) == (409, "MemberExists")
    assert members_of(any_house, pool) == [member["id"]]


def test_moving_a_member_onto_its_like_is_refused(any_house: House) -> None:
    first, second = any_house.pool(), any_house.pool()
    member = any_house.member(first)
    any_house.member(second)
    assert error_of(any_house.put(f"{MEMBERS}/{member['id']}", {"member": {"pool_id": second["id"]}})) == (409, "MemberExists")


def test_update_member_moves_it_to_another_pool_and_back(any_house: House) -> None:
    first, second = any_house.pool(), any_house.pool()
    any_house.vip(first)
    member = any_house.member(first)
    moved = any_house.put(f"{MEMBERS}/{member['id']}", {"member": {"pool_id": second["id"]}})
    assert (moved.status_code, moved.json["member"]["pool_id"]) == (200, second["id"])
    assert (members_of(any_house, first), members_of(any_house, second)) == ([], [member["id"]])
    any_house.put(f"{MEMBERS}/{member['id']}", {"member": {"pool_id": first["id"]}})
    assert (members_of(any_house, first), members_of(any_house, second)) == ([member["id"]], [])


def test_update_member_takes_a_weight_and_its_state(any_house: House) -> None:
    pool = any_house.pool()
    any_house.vip(pool)
    member = any_house.member(pool)
    answer = any_house.put(f"{MEMBERS}/{member['id']}", {"member": {"weight": "2", "admin_state_up": False}})
    assert answer.json["member"] == {**member, "weight": 2, "admin_state_up": False, "status": "PENDING_UPDATE"}
    assert show(any_house, member["id"])["status"] == "DISABLED"


@pytest.mark.parametrize("name", ["address", "protocol_port", "tenant_id", "id", "status"])
def test_what_is_read_only_cannot_be_updated(any_house: House, name: str) -> None:
    member = any_house.member(any_house.pool())
    assert any_house.put(f"{MEMBERS}/{member['id']}", {"member": {name: member[name]}}).status_code == 400


def test_delete_member(any_house: House) -> None:
    pool = any_house.pool()
    any_house.vip(pool)
    member = any_house.member(pool)
    assert any_house.delete(f"{MEMBERS}/{member['id']}").status_code == 204
    assert error_of(any_house.get(f"{MEMBERS}/{member['id']}")) == (404, "MemberNotFound")
    assert members_of(any_house, pool) == []


def test_a_second_member_is_taken_while_the_vip_is_pending(any_house: House) -> None:
    pool = any_house.pool()
    any_house.agents.idle = True
    any_house.vip(pool)
    assert [any_house.member(pool, address)["status"] for address in ("10.1.0.1", "10.1.0.2")] == ["PENDING_CREATE"] * 2


def test_members_follow_the_health_that_their_device_reports(any_house: House) -> None:
    pool = any_house.pool()
    vip, member = any_house.vip(pool), any_house.member(pool)
    any_house.associate(any_house.monitor(), pool)
    any_house.stats(vip["id"], members={member["id"]: MemberHealth(up=False)})
    assert show(any_house, member["id"])["status"] == "INACTIVE"
    any_house.stats(vip["id"], members={member["id"]: MemberHealth(up=True)})
    assert show(any_house, member["id"])["status"] == "ACTIVE"


@pytest.mark.parametrize("address", ["10.0.9.47", "2015::beef"])
def test_list_members_with_each_attribute_as_a_filter_still_has_it(any_house: House, address: str) -> None:
    pool = any_house.pool()
    member = any_house.member(pool, address, weight=3, protocol_port=8088)
    any_house.member(pool, "10.1.0.9")
    for name in set(member) - {"status_description"}:
        found = any_house.get(f"{MEMBERS}?{name}={member[name]}").json["members"]
        assert member["id"] in [each["id"] for each in found], name
    for name in ("address", "weight", "protocol_port", "id"):
        assert len(any_house.get(f"{MEMBERS}?{name}={member[name]}").json["members"]) == 1, name


def test_the_members_of_a_pool_show_status_and_admin_state(any_house: House) -> None:
    pool = any_house.pool()
    any_house.member(pool)
    for member_id in members_of(any_house, pool):
        assert {"status", "admin_state_up"} <= show(any_house, member_id).keys()


def test_an_administrator_creates_a_member_for_another_tenant(any_house: House) -> None:
    member = any_house.member(any_house.pool(ADMIN, tenant_id="bert"), who=ADMIN, tenant_id="bert")
    assert member["tenant_id"] == "bert"
    assert any_house.get(f"{MEMBERS}/{member['id']}", BERT).status_code == 200
