"""What operators do with the fleet, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.api.house import ADMIN, ANNE, READER, House, error_of

UNKNOWN = "00000000-0000-4000-8000-000000000000"
DEVICES = "/v2.0/devices"
MOVES = "/v2.0/moves"
SIMULATE = "/v2.0/placements/simulate"
REBALANCE = "/v2.0/placements/rebalance"

POSTS: tuple[tuple[str, Any], ...] = (
    (f"{DEVICES}/{UNKNOWN}/evacuate", None),
    (f"{DEVICES}/{UNKNOWN}/check", None),
    (f"{DEVICES}/{UNKNOWN}/write-off", {"write_off": {}}),
    (f"/v2.0/lb/vips/{UNKNOWN}/move", {"move": {}}),
)


def another(house: House, name: str = "spare") -> str:
    id_: str = house.create(DEVICES, "device", {"name": name, "device_type": "fake"}, ADMIN)["id"]
    return id_


def where(house: House, vip: dict[str, Any]) -> str:
    id_: str = house.get(f"/v2.0/lb/vips/{vip['id']}/placement", ADMIN).json["placement"]["device_id"]
    return id_


@pytest.mark.parametrize(("path", "body"), POSTS)
def test_what_is_unknown_is_404_to_administrators_and_403_to_others(house: House, path: str, body: Any) -> None:
    assert house.post(path, body, ADMIN).status_code == 404
    for who in (ANNE, READER):
        assert error_of(house.post(path, body, who)) == (403, "NotAuthorized")


def test_a_vip_moves_to_the_device_that_is_named(own_any_house: House) -> None:
    house = own_any_house
    vip, spare = house.vip(), another(house)
    answer = house.post(f"/v2.0/lb/vips/{vip['id']}/move", {"move": {"device_id": spare}}, ADMIN)
    assert answer.status_code == 202
    move = answer.json["move"]
    assert (move["source_id"], move["target_id"], move["cause"]) == (house.device["id"], spare, "operator")
    assert where(house, vip) == spare
    (listed,) = house.get(f"{MOVES}?device_id={spare}&state=removing&state=done", ADMIN).json["moves"]
    assert (listed["resource_id"], listed["error"]) == (vip["id"], "")
    assert house.get(f"{MOVES}?state=failed", ADMIN).json == {"moves": []}
    assert house.get(f"{MOVES}?device_id={UNKNOWN}", ADMIN).json == {"moves": []}


def test_a_move_that_cannot_be_says_why_and_changes_nothing(house: House) -> None:
    vip = house.vip()
    path = f"/v2.0/lb/vips/{vip['id']}/move"
    assert error_of(house.post(path, {"move": {"device_id": UNKNOWN}}, ADMIN)) == (404, "DeviceNotFound")
    assert house.post(path, {"move": {"device_id": house.device["id"]}}, ADMIN).status_code == 409
    assert error_of(house.post(path, {"move": {}}, ADMIN)) == (503, "NoEligibleBackend")
    for wrong in ({"device_id": "box"}, {"device_id": 1}, {"target": UNKNOWN}, [], None):
        assert error_of(house.post(path, {"move": wrong}, ADMIN)) == (400, "HTTPBadRequest"), wrong
    assert house.get(MOVES, ADMIN).json == {"moves": []}
    assert where(house, vip) == house.device["id"]


def test_an_evacuated_device_drains_and_is_left(house: House) -> None:
    vip, spare = house.vip(), another(house)
    answer = house.post(f"{DEVICES}/{house.device['id']}/evacuate", None, ADMIN)
    assert answer.status_code == 202
    evacuation = answer.json["evacuation"]
    assert (evacuation["device_id"], evacuation["total"]) == (house.device["id"], 1)
    assert house.get(f"{DEVICES}/{house.device['id']}", ADMIN).json["device"]["admin_state"] == "draining"
    assert (where(house, vip), evacuation["moves"]) == (house.device["id"], {"queued": 1})
    house.move_on()
    assert where(house, vip) == spare


def test_a_device_is_asked_how_it_is(house: House) -> None:
    health = house.post(f"{DEVICES}/{house.device['id']}/check", None, ADMIN).json["health"]
    assert (health["online"], health["status"], health["failures"]) == (True, "ONLINE", 0)


def test_only_a_device_that_is_gone_is_written_off(house: House) -> None:
    path = f"{DEVICES}/{house.device['id']}/write-off"
    assert error_of(house.post(path, {"write_off": {"force": True}}, ADMIN)) == (409, "StateInvalid")
    house.put(f"{DEVICES}/{house.device['id']}", {"device": {"admin_state": "disabled"}}, ADMIN)
    assert error_of(house.post(path, {"write_off": {}}, ADMIN)) == (409, "StateInvalid")
    done = house.post(path, {"write_off": {"force": True}}, ADMIN)
    assert (done.status_code, done.json["write_off"]) == (200, {"device_id": house.device["id"], "settled": 0, "gone": []})
    for wrong in ({"force": "yes"}, {"gone": True}, [], None):
        assert error_of(house.post(path, {"write_off": wrong}, ADMIN)) == (400, "HTTPBadRequest"), wrong


def test_a_simulation_says_where_vips_would_go_and_claims_nothing(house: House) -> None:
    body = {"vip": {"protocol": "HTTP", "subnet_id": house.subnet["id"]}, "count": 3}
    found = house.post(SIMULATE, {"simulation": body}, ADMIN).json["simulation"]
    assert (found["wanted"], found["placed"]) == (3, 3)
    assert [(it["device_name"], it["count"]) for it in found["devices"]] == [("box", 3)]
    assert house.get(f"{DEVICES}/{house.device['id']}", ADMIN).json["device"]["usage"]["VIPS"]["used"] == 0
    assert house.post(SIMULATE, {"simulation": {}}, ADMIN).json["simulation"]["placed"] == 1
    for wrong in (
        {"count": 0},
        {"count": 1001},
        {"count": True},
        {"count": "3"},
        {"vip": 3},
        {"vip": {"colour": "red"}},
        {"x": 1},
        [],
    ):
        assert error_of(house.post(SIMULATE, {"simulation": wrong}, ADMIN)) == (400, "HTTPBadRequest"), wrong


def test_a_plan_is_shown_without_effect_and_applied_as_it_was_shown(house: House) -> None:
    house.put(f"{DEVICES}/{house.device['id']}", {"device": {"capacity": {"VIPS": 4}}}, ADMIN)
    vips = [house.vip() for _ in range(4)]
    spare = house.create(DEVICES, "device", {"name": "spare", "device_type": "fake", "capacity": {"VIPS": 4}}, ADMIN)["id"]
    plan = house.get(f"{REBALANCE}?bound=0.1&max_moves=10", ADMIN).json["rebalance"]
    assert [(it["source_id"], it["target_id"]) for it in plan["moves"]] == [(house.device["id"], spare)] * 2
    assert (plan["queued"], plan["spread_before"], plan["spread_after"]) == (0, 1.0, 0.0)
    assert house.get(MOVES, ADMIN).json == {"moves": []}
    answer = house.post(REBALANCE, {"rebalance": {"moves": plan["moves"]}}, ADMIN)
    assert (answer.status_code, answer.json["rebalance"]["queued"]) == (202, 2)
    house.move_on()
    assert sorted(where(house, vip) == spare for vip in vips) == [False, False, True, True]
    again = house.post(REBALANCE, {"rebalance": {}}, ADMIN).json["rebalance"]
    assert (again["moves"], again["queued"]) == ([], 0)


def test_bounds_that_make_no_sense_are_refused(house: House) -> None:
    for query in ("bound=2", "bound=nan", "bound=-1", "bound=", "max_moves=0", "max_moves=1.0", "max_moves=x", "colour=red"):
        assert error_of(house.get(f"{REBALANCE}?{query}", ADMIN)) == (400, "HTTPBadRequest"), query
    assert error_of(house.get(f"{REBALANCE}?bound=0.1&bound=0.2", ADMIN)) == (400, "HTTPBadRequest")
    for wrong in ({"bound": "0.1"}, {"bound": 2}, {"max_moves": True}, {"moves": [{}]}, {"moves": "all"}, {"apply": True}, "x"):
        assert error_of(house.post(REBALANCE, {"rebalance": wrong}, ADMIN)) == (400, "HTTPBadRequest"), wrong


def test_a_step_to_an_unknown_device_moves_nothing(house: House) -> None:
    vip = house.vip()
    step = {"resource_id": vip["id"], "source_id": house.device["id"], "target_id": UNKNOWN}
    assert house.post(REBALANCE, {"rebalance": {"moves": [step]}}, ADMIN).status_code == 202
    house.move_on()
    assert where(house, vip) == house.device["id"]
    assert house.get(MOVES, ADMIN).json == {"moves": []}


def test_moves_are_filtered_by_what_they_have(house: House) -> None:
    for query in ("state=moving", "colour=red", "sort_key=colour", "device_id=%00"):
        assert error_of(house.get(f"{MOVES}?{query}", ADMIN)) == (400, "HTTPBadRequest"), query
