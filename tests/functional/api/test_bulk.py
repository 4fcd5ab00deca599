"""Several pools, members or VIPs in one request, as Neutron's API has it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.database import counted
from tests.functional.api.house import ADMIN, BERT, House, error_of

PATHS = {name: f"/v2.0/lb/{name}s" for name in ("pool", "member", "vip")}


def members(pool: dict[str, Any], *numbers: int) -> list[dict[str, Any]]:
    return [{"pool_id": pool["id"], "address": f"10.1.0.{number}", "protocol_port": 80} for number in numbers]


def count(house: House, name: str) -> int:
    return len(house.get(PATHS[name]).json[f"{name}s"])


def test_members_are_created_in_one_request_and_with_one_cast(any_house: House) -> None:
    house = any_house
    pool = house.pool()
    house.vip(pool)
    house.agents.casts.clear()
    answer = house.post(PATHS["member"], {"members": members(pool, 1, 2, 3)})
    assert answer.status_code == 201, answer.text
    assert [it["address"] for it in answer.json["members"]] == ["10.1.0.1", "10.1.0.2", "10.1.0.3"]
    assert [verb for verb, *_ in house.agents.casts] == ["update_vip"]
    assert {it["status"] for it in house.get(PATHS["member"]).json["members"]} == {"ACTIVE"}


def test_many_members_cost_as_many_statements_as_two(house: House) -> None:
    pool = house.pool()
    costs = []
    for numbers in (range(1, 3), range(3, 103)):
        with counted(house.database) as sent:
            assert house.post(PATHS["member"], {"members": members(pool, *numbers)}).status_code == 201
        costs.append(len(sent))
    assert costs[0] == costs[1]


def test_pools_are_created_in_one_request(any_house: House) -> None:
    house = any_house
    pool = {"subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}
    answer = house.post(PATHS["pool"], {"pools": [{**pool, "name": "a"}, {**pool, "name": "b", "protocol": "TCP"}]})
    assert answer.status_code == 201, answer.text
    assert [(it["name"], it["protocol"], it["status"]) for it in answer.json["pools"]] == [
        ("a", "HTTP", "ACTIVE"),
        ("b", "TCP", "ACTIVE"),
    ]


def test_vips_are_created_in_one_request(any_house: House) -> None:
    house = any_house
    answer = house.post(PATHS["vip"], {"vips": [house.vip_body(house.pool(), name=name) for name in ("a", "b")]})
    assert answer.status_code == 201, answer.text
    assert [it["name"] for it in answer.json["vips"]] == ["a", "b"]
    assert {it["status"] for it in house.get(PATHS["vip"]).json["vips"]} == {"ACTIVE"}


def test_one_that_cannot_be_leaves_none(any_house: House) -> None:
    house = any_house
    pool, foreign = house.pool(), house.pool(BERT)
    house.member(pool, "10.1.0.9", protocol_port=80)
    wrong: list[tuple[str, list[dict[str, Any]], int]] = [
        ("member", members(pool, 1, 9), 409),
        ("member", members(pool, 1, 1), 409),
        ("member", [*members(pool, 1), *members(foreign, 2)], 404),
        ("member", [*members(pool, 1), {**members(pool, 2)[0], "weight": 257}], 400),
        ("pool", [{"subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}, {}], 400),
        ("vip", [house.vip_body(pool), house.vip_body(pool)], 409),
        ("vip", [house.vip_body(pool), {**house.vip_body(house.pool()), "protocol_port": 0}], 400),
    ]
    before = {name: count(house, name) for name in PATHS}
    for name, bodies, status in wrong:
        answer = house.post(PATHS[name], {f"{name}s": bodies})
        assert answer.status_code == status, (name, answer.text)
        assert {name: count(house, name) for name in PATHS} == before, (name, bodies)
    assert house.get(f"/v2.0/lb/pools/{pool['id']}").json["pool"]["vip_id"] is None
    assert house.vip(pool)["pool_id"] == pool["id"], "nothing holds the pool"


def test_the_quota_holds_for_all_of_them(any_house: House) -> None:
    house = any_house
    pool = house.pool()
    house.put(f"/v2.0/quotas/{house.tenant}", {"quota": {"member": 2}}, ADMIN)
    assert error_of(house.post(PATHS["member"], {"members": members(pool, 1, 2, 3)})) == (409, "OverQuota")
    assert count(house, "member") == 0
    assert house.post(PATHS["member"], {"members": members(pool, 1, 2)}).status_code == 201


@pytest.mark.parametrize("bodies", [[], {}, None, [None], [[]], ["x"], [{}] * 101])
def test_what_is_no_list_of_objects_is_refused(house: House, bodies: Any) -> None:
    for name, path in PATHS.items():
        assert error_of(house.post(path, {f"{name}s": bodies})) == (400, "HTTPBadRequest")
        assert house.post(path, {f"{name}s": [{}], name: {}}).status_code == 400
