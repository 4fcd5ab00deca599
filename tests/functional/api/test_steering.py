"""What operators see of moves, evacuations and the breaker, and the rules that they write, over HTTP."""

from __future__ import annotations

from typing import Any

from tests.functional.api.house import ADMIN, House, error_of

DEVICES = "/v2.0/devices"
RULES = "/v2.0/placement-rules"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def spare(house: House, **attributes: Any) -> str:
    id_: str = house.create(DEVICES, "device", {"name": "spare", "device_type": "fake", **attributes}, ADMIN)["id"]
    return id_


def test_an_evacuation_is_followed_and_cancelled(own_any_house: House) -> None:
    house = own_any_house
    path = f"{DEVICES}/{house.device['id']}"
    house.vip()
    assert error_of(house.get(f"{path}/evacuation", ADMIN)) == (404, "NotFound")
    assert error_of(house.delete(f"{path}/evacuation", ADMIN)) == (404, "NotFound")
    assert error_of(house.get(f"{DEVICES}/{UNKNOWN}/evacuation", ADMIN)) == (404, "DeviceNotFound")
    # There is no other device: what is to leave waits.
    house.post(f"{path}/evacuate", None, ADMIN)
    shown = house.get(f"{path}/evacuation", ADMIN).json["evacuation"]
    assert (shown["state"], shown["total"], shown["left"]) == ("running", 1, 1)
    answer = house.delete(f"{path}/evacuation", ADMIN)
    assert (answer.status_code, answer.json["evacuation"]["state"]) == (200, "cancelled")
    assert house.get(f"{path}/evacuation", ADMIN).json["evacuation"]["state"] == "cancelled"


def test_the_last_move_of_a_vip_is_shown_and_moves_come_in_pages(house: House) -> None:
    vips = [house.vip() for _ in range(3)]
    assert error_of(house.get(f"/v2.0/moves/{vips[0]['id']}", ADMIN)) == (404, "NotFound")
    target = spare(house)
    for vip in vips:
        house.post(f"/v2.0/lb/vips/{vip['id']}/move", {"move": {"device_id": target}}, ADMIN)
    move = house.get(f"/v2.0/moves/{vips[0]['id']}", ADMIN).json["move"]
    assert (move["resource_id"], move["target_id"], move["cause"]) == (vips[0]["id"], target, "operator")
    ids = sorted(vip["id"] for vip in vips)
    page = house.get("/v2.0/moves?limit=2", ADMIN).json
    assert [it["resource_id"] for it in page["moves"]] == ids[:2]
    rest = house.get(f"/v2.0/moves?limit=2&marker={ids[1]}", ADMIN).json
    assert [it["resource_id"] for it in rest["moves"]] == ids[2:]


def test_the_breaker_says_what_is_lost_and_is_reset(house: House) -> None:
    shown = house.get("/v2.0/breaker", ADMIN).json["breaker"]
    assert (shown["frozen"], {it["kind"]: it["lost"] for it in shown["kinds"]}) == (False, {"devices": 0, "agents": 0})
    breaker = house.plant.parts.fleet.breaker
    breaker._trip("devices", breaker.losses()["devices"])
    shown = house.get("/v2.0/breaker", ADMIN).json["breaker"]
    (tripped,) = [it for it in shown["kinds"] if it["tripped_at"]]
    assert (shown["frozen"], tripped["kind"]) == (True, "devices")
    assert "vanished within" in tripped["reason"]
    reset = house.post("/v2.0/breaker/reset", None, ADMIN)
    assert (reset.status_code, reset.json["breaker"]["frozen"]) == (200, False)
    assert house.get("/v2.0/breaker", ADMIN).json["breaker"]["frozen"] is False


def test_a_devices_health_is_what_the_last_check_found(house: House) -> None:
    path = f"{DEVICES}/{house.device['id']}"
    health = house.get(f"{path}/health", ADMIN).json["health"]
    assert (health["status"], health["failures"], "online" in health) == ("ONLINE", 0, False)
    assert error_of(house.get(f"{DEVICES}/{UNKNOWN}/health", ADMIN)) == (404, "DeviceNotFound")


def test_an_explanation_says_stage_by_stage_why_a_vip_is_where_it_is(house: House) -> None:
    house.create(RULES, "placement_rule", {"name": "rack a first", "wishes": {"preferred": ["PROTOCOL_HTTP"]}}, ADMIN)
    house.put(f"{DEVICES}/{house.device['id']}", {"device": {"capacity": {"VIPS": 0}}}, ADMIN)
    chosen = spare(house)
    vip = house.vip()
    told = house.get(f"/v2.0/lb/vips/{vip['id']}/explain", ADMIN).json["explanation"]
    assert (told["resource_id"], told["device_id"], told["device_name"]) == (vip["id"], chosen, "spare")
    stages = {it["stage"]: it["said"] for it in told["stages"]}
    assert list(stages) == ["request", "filter", "rank", "claim"]
    assert "'rack a first' applied" in stages["request"]
    assert "least_loaded preferred" in stages["rank"]
    assert "spare had room and was taken" in stages["claim"]
    assert error_of(house.get(f"/v2.0/lb/vips/{UNKNOWN}/explain", ADMIN)) == (404, "VipNotFound")


def test_placement_rules_are_written_ordered_changed_and_removed(own_any_house: House) -> None:
    house = own_any_house
    made = [
        house.create(RULES, "placement_rule", {"name": name, "wishes": {"zone": "a"}, **more}, ADMIN)
        for name, more in (("zulu", {"position": 5}), ("mike", {"position": 7}), ("alfa", {}))
    ]
    assert [it["position"] for it in made] == [5, 7, 8]

    def order(query: str = "") -> list[str]:
        return [it["name"] for it in house.get(f"{RULES}{query}", ADMIN).json["placement_rules"]]

    assert order() == ["zulu", "mike", "alfa"]
    house.put(f"{RULES}/{made[2]['id']}", {"placement_rule": {"position": 1, "enabled": False}}, ADMIN)
    assert order() == ["alfa", "zulu", "mike"]
    assert order("?sort_key=name&sort_dir=desc") == ["zulu", "mike", "alfa"]
    assert order("?enabled=false") == ["alfa"]
    page = house.get(f"{RULES}?limit=2", ADMIN).json
    assert [it["name"] for it in page["placement_rules"]] == ["alfa", "zulu"]
    assert [it["rel"] for it in page["placement_rules_links"]] == ["next"]
    assert order(f"?limit=2&marker={page['placement_rules'][-1]['id']}") == ["mike"]
    path = f"{RULES}/{made[0]['id']}"
    assert house.get(f"{path}?fields=name", ADMIN).json == {"placement_rule": {"name": "zulu"}}
    assert house.delete(path, ADMIN).status_code == 204
    assert error_of(house.get(path, ADMIN)) == (404, "PlacementRuleNotFound")
    assert order() == ["alfa", "mike"]


def test_a_rule_that_makes_no_sense_is_refused(house: House) -> None:
    rule = house.create(RULES, "placement_rule", {"name": "one", "wishes": {"zone": "a"}}, ADMIN)
    for wrong in (
        {},
        {"name": "x"},
        {"name": "x", "wishes": {}},
        {"name": "x", "wishes": {"required": ["FLIES"]}},
        {"name": "x", "wishes": {"zone": "a"}, "match": {"protocol_port": "9-1"}},
        {"name": "x", "wishes": {"zone": "a"}, "service": "Firewall"},
        {"name": "x", "wishes": {"zone": "a"}, "position": -1},
        {"name": "x", "wishes": {"zone": "a"}, "colour": "red"},
    ):
        assert error_of(house.post(RULES, {"placement_rule": wrong}, ADMIN)) == (400, "HTTPBadRequest"), wrong
    assert error_of(house.post(RULES, {"placement_rule": {"name": "one", "wishes": {"zone": "b"}}}, ADMIN)) == (409, "Conflict")
    assert house.put(f"{RULES}/{rule['id']}", {"placement_rule": {"service": "LoadBalancer"}}, ADMIN).status_code == 400
    assert house.get(f"{RULES}?colour=red", ADMIN).status_code == 400
    assert [it["name"] for it in house.get(RULES, ADMIN).json["placement_rules"]] == ["one"]
