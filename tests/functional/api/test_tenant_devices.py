"""Devices that tenants register for themselves, over HTTP."""

from __future__ import annotations

from typing import Any

from tests.functional.api.house import ADMIN, ANNE, BERT, READER, House, error_of

DEVICES = "/v2.0/devices"
SECRET = "hunter2-hunter2"


def allow(house: House, *networks: str) -> None:
    house.conf.set_override("tenant_device_types", ["fake"], "devices")
    house.conf.set_override("tenant_management_networks", list(networks or ("192.0.2.0/24",)), "devices")


def body(number: int = 1, **attributes: Any) -> dict[str, Any]:
    management = {"address": f"192.0.2.{number}", "port": 443, "user": "me", "password": SECRET}
    return {"device": {"device_type": "fake", "name": f"own-{number}", "management": management, **attributes}}


def own(house: House, number: int = 1, who: Any = None, **attributes: Any) -> dict[str, Any]:
    made: dict[str, Any] = house.create(DEVICES, "device", body(number, **attributes)["device"], who)
    return made


def used(house: House, device: dict[str, Any], who: Any = None) -> int:
    count: int = house.get(f"{DEVICES}/{device['id']}", who).json["device"]["usage"]["VIPS"]["used"]
    return count


def test_a_tenants_own_device_takes_his_vips_and_nobody_elses(own_any_house: House) -> None:
    house = own_any_house
    allow(house)
    mine = own(house, capacity={"VIPS": 1})
    assert (mine["tenant_id"], mine["shared"], mine["agent"]) == ("anne", False, {"alive": True})
    vip, foreign = house.vip(), house.vip(who=BERT)
    where = {it["id"]: house.get(f"/v2.0/lb/vips/{it['id']}/placement", ADMIN).json["placement"] for it in (vip, foreign)}
    assert (where[vip["id"]]["device_id"], where[foreign["id"]]["device_id"]) == (mine["id"], house.device["id"])
    # Usage is its owner's to see, with what is on it.
    assert house.get(f"{DEVICES}/{mine['id']}").json["device"]["usage"]["VIPS"] == {"used": 1, "limit": 1}
    assert house.get(f"{DEVICES}/{mine['id']}/vips?fields=id").json == {"vips": [{"id": vip["id"]}]}
    assert error_of(house.get(f"{DEVICES}/{house.device['id']}/vips")) == (404, "DeviceNotFound")
    assert error_of(house.delete(f"{DEVICES}/{mine['id']}")) == (409, "DeviceInUse")
    # What does not fit any more goes where everybody's goes.
    second = house.vip()
    assert house.get(f"/v2.0/lb/vips/{second['id']}/placement", ADMIN).json["placement"]["device_id"] == house.device["id"]
    house.delete(f"/v2.0/lb/vips/{vip['id']}")
    assert used(house, mine) == 0
    assert house.delete(f"{DEVICES}/{mine['id']}").status_code == 204
    assert error_of(house.get(f"{DEVICES}/{mine['id']}")) == (404, "DeviceNotFound")


def test_tenants_see_their_own_devices_only_and_neither_secrets_nor_agents(house: House) -> None:
    allow(house)
    mine, his = own(house, 1), own(house, 2, BERT)
    dedicated = {"device_type": "fake", "name": "dedicated", "tenant_id": "anne", "management": {"address": "198.51.100.7"}}
    house.create(DEVICES, "device", dedicated, ADMIN)
    shared = house.create(DEVICES, "device", body(3, tenant_id="anne", shared=True)["device"], ADMIN)
    for who, seen in ((ANNE, [mine["id"]]), (READER, [mine["id"]]), (BERT, [his["id"]])):
        answer = house.get(DEVICES, who)
        assert [it["id"] for it in answer.json["devices"]] == seen
        assert SECRET not in answer.text
        assert "agent-1" not in answer.text
    assert len(house.get(DEVICES, ADMIN).json["devices"]) == 5
    for query in (f"id={his['id']}", "tenant_id=bert", "shared=true", "name=box", f"id={shared['id']}", "device_type=haproxy"):
        assert house.get(f"{DEVICES}?{query}").json == {"devices": []}, query
    assert house.get(f"{DEVICES}?tenant_id=anne&tenant_id=bert&fields=id&sort_key=name").json["devices"] == [{"id": mine["id"]}]
    assert house.get(DEVICES, {"X-User-Id": "x", "X-Roles": "member"}).json == {"devices": []}
    assert error_of(house.get(f"{DEVICES}?colour=red")) == (400, "HTTPBadRequest")
    # A narrower permission hides what was registered under a wider one.
    allow(house, "203.0.113.0/24")
    assert house.get(DEVICES).json == {"devices": []}


def test_an_own_list_comes_in_pages(house: House) -> None:
    allow(house)
    ids = sorted(own(house, number)["id"] for number in (1, 2, 3))
    own(house, 4, BERT)
    page = house.get(f"{DEVICES}?limit=2&fields=id").json
    assert [it["id"] for it in page["devices"]] == ids[:2]
    assert [it["rel"] for it in page["devices_links"]] == ["next"]
    rest = house.get(f"{DEVICES}?limit=2&marker={ids[1]}&fields=id").json
    assert [it["id"] for it in rest["devices"]] == ids[2:]


def test_what_is_not_the_tenants_does_not_exist_for_him_whatever_he_does(house: House) -> None:
    allow(house)
    his = own(house, 2, BERT)
    for device_id in (his["id"], house.device["id"]):
        path = f"{DEVICES}/{device_id}"
        for changes in ({"name": "x"}, {"shared": True}, {"management": {"address": "127.0.0.1"}}, {"colour": "red"}, {}):
            assert error_of(house.put(path, {"device": changes})) == (404, "DeviceNotFound"), changes
        assert error_of(house.delete(path)) == (404, "DeviceNotFound")
        assert house.post(f"{path}/evacuate", None).status_code == 403
    assert house.get(f"{DEVICES}/{house.device['id']}", ADMIN).json["device"]["name"] == "box"


def test_a_tenant_changes_his_own_device_within_what_he_may_have(house: House) -> None:
    allow(house)
    path = f"{DEVICES}/{own(house)['id']}"
    changed = house.put(path, {"device": {"name": "new", "admin_state": "draining", "capacity": {"VIPS": 3}}}).json["device"]
    assert (changed["name"], changed["admin_state"], changed["usage"]["VIPS"]["limit"]) == ("new", "draining", 3)
    assert house.put(path, {"device": {"shared": False}}).status_code == 200
    moved = house.put(path, {"device": {"management": {"address": "192.0.2.77"}}}).json["device"]
    assert (moved["management"]["address"], moved["management"]["secret_set"]) == ("192.0.2.77", True)
    for changes, status in (
        ({"shared": True}, 403),
        ({"agent_host": "agent-2"}, 403),
        ({"extra": {"weight": 1}}, 403),
        ({"management": {"address": "127.0.0.1"}}, 403),
        ({"management": {"address": "box.example.org"}}, 400),
        ({"management": None}, 400),
        ({"management": {"address": None}}, 400),
        ({"management": {"user": "x"}}, 200),
        ({"tenant_id": "bert"}, 400),
        ({"device_type": "haproxy"}, 400),
    ):
        answer = house.put(path, {"device": changes})
        assert answer.status_code == status, (changes, answer.text)
    assert "192.0.2.0/24" in house.put(path, {"device": {"management": {"address": "10.0.0.1"}}}).text
    assert house.get(path).json["device"]["management"]["address"] == "192.0.2.77"
    assert house.put(path, {"device": {"name": "y"}}, READER).status_code == 403


def test_a_tenant_registers_nothing_that_the_operator_did_not_allow(house: House) -> None:
    refused = house.post(DEVICES, body())
    assert error_of(refused) == (403, "NotAuthorized")
    assert "types that they may: none" in refused.json["NeutronError"]["message"]
    allow(house)
    for attributes, status in (
        ({"device_type": "haproxy"}, 403),
        ({"shared": True}, 403),
        ({"management": {"address": "169.254.169.254"}}, 403),
        ({"management": {"address": "localhost"}}, 400),
        ({"tenant_id": "bert"}, 400),
    ):
        answer = house.post(DEVICES, body(**attributes))
        assert answer.status_code == status, (attributes, answer.text)
    assert house.post(DEVICES, body(), READER).status_code == 403
    assert house.get(DEVICES).json == {"devices": []}


def test_the_device_quota_holds_for_tenants(house: House) -> None:
    allow(house)
    house.put("/v2.0/quotas/anne", {"quota": {"device": 1}}, ADMIN)
    first = own(house)
    assert error_of(house.post(DEVICES, body(2))) == (409, "OverQuota")
    assert house.delete(f"{DEVICES}/{first['id']}").status_code == 204
    own(house, 2)
