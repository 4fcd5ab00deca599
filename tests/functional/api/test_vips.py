"""VIPs over HTTP: what LBaaS v1's own suites ask of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.api.house import ADMIN, BERT, House, error_of

VIPS = "/v2.0/lb/vips"


def show(house: House, vip_id: str) -> dict[str, Any]:
    answer = house.get(f"{VIPS}/{vip_id}")
    assert answer.status_code == 200
    return answer.json["vip"]


def test_create_vip_answers_with_the_defaults_and_pending(any_house: House) -> None:
    pool = any_house.pool()
    vip = any_house.vip(pool)
    assert {name: vip[name] for name in ("name", "description", "connection_limit", "admin_state_up", "session_persistence")} == {
        "name": "",
        "description": "",
        "connection_limit": -1,
        "admin_state_up": True,
        "session_persistence": None,
    }
    assert vip["status"] == "PENDING_CREATE"
    assert vip["pool_id"] == pool["id"]
    assert all(vip[name] for name in ("id", "address", "port_id"))
    assert vip["tenant_id"] == any_house.tenant


def test_show_vip_equals_what_create_answered_but_for_the_status(any_house: House) -> None:
    created = any_house.vip(name="web", session_persistence={"type": "HTTP_COOKIE"})
    shown = show(any_house, created["id"])
    assert shown.pop("status") == "ACTIVE"
    created.pop("status")
    assert shown == created


def test_a_vip_shows_its_tenant_no_device(any_house: House) -> None:
    text = any_house.get(f"{VIPS}/{any_house.vip()['id']}").text
    assert any_house.device["id"] not in text
    assert "agent" not in text


def test_create_vip_when_no_address_is_left_leaves_no_vip(any_house: House) -> None:
    network = any_house.create("/v2.0/networks", "network", {"name": "small"})
    subnet = {"network_id": network["id"], "cidr": "10.9.0.0/30", "allocation_pools": [{"start": "10.9.0.2", "end": "10.9.0.2"}]}
    subnet = any_house.create("/v2.0/subnets", "subnet", subnet)
    any_house.vip(subnet_id=subnet["id"])
    pool = any_house.pool()
    refused = any_house.post(VIPS, {"vip": any_house.vip_body(pool, subnet_id=subnet["id"])})
    assert error_of(refused) == (409, "IpAddressGenerationFailure")
    assert len(any_house.get(VIPS).json["vips"]) == 1
    assert any_house.get(f"/v2.0/lb/pools/{pool['id']}").json["pool"]["vip_id"] is None


def test_a_second_vip_on_a_pool_is_refused(any_house: House) -> None:
    pool = any_house.pool()
    any_house.vip(pool)
    assert error_of(any_house.post(VIPS, {"vip": any_house.vip_body(pool)})) == (409, "VipExists")


def test_moving_a_vip_onto_a_pool_that_has_one_is_refused(any_house: House) -> None:
    pool, vip = any_house.pool(), any_house.vip()
    any_house.vip(pool)
    assert error_of(any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"pool_id": pool["id"]}})) == (409, "VipExists")


def test_moving_a_vip_frees_its_old_pool(any_house: House) -> None:
    old, new = any_house.pool(), any_house.pool()
    vip = any_house.vip(old)
    moved = any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"pool_id": new["id"]}})
    assert (moved.status_code, moved.json["vip"]["pool_id"]) == (200, new["id"])
    assert any_house.get(f"/v2.0/lb/pools/{old['id']}").json["pool"]["vip_id"] is None
    assert any_house.get(f"/v2.0/lb/pools/{new['id']}").json["pool"]["vip_id"] == vip["id"]


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"protocol": "UNSUPPORTED"}, 400),
        ({"protocol_port": 1000500}, 400),
        ({"protocol_port": 0}, 400),
        ({"protocol_port": "eighty"}, 400),
        ({"protocol_port": True}, 400),
        ({"subnet_id": "not-a-uuid"}, 400),
        ({"subnet_id": "11111111-2222-3333-4444-555555555555"}, 404),
        ({"pool_id": "11111111-2222-3333-4444-555555555555"}, 404),
        ({"pool_id": None}, 400),
        ({"connection_limit": -4}, 400),
        ({"address": "10.7.0.1"}, 400),
        ({"address": "not an address"}, 400),
        ({"address": "10.0.0.1\n"}, 400),
        ({"name": "x" * 256}, 400),
        ({"name": "\x00"}, 400),
        ({"name": 5}, 400),
        ({"status": "ACTIVE"}, 400),
        ({"id": "11111111-2222-3333-4444-555555555555"}, 400),
        ({"colour": "red"}, 400),
        ({"service_type_id": "platinum"}, 400),
        ({"admin_state_up": "maybe"}, 400),
        ({"tenant_id": "bert"}, 400),
    ],
)
def test_create_vip_with_invalid_values_is_refused(any_house: House, wrong: dict[str, Any], status: int) -> None:
    answer = any_house.post(VIPS, {"vip": any_house.vip_body(any_house.pool(), **wrong)})
    assert answer.status_code == status, answer.text
    assert any_house.get(VIPS).json == {"vips": []}


@pytest.mark.parametrize("missing", ["subnet_id", "protocol", "protocol_port", "pool_id"])
def test_a_required_attribute_that_is_missing_is_named(any_house: House, missing: str) -> None:
    body = {name: value for name, value in any_house.vip_body(any_house.pool()).items() if name != missing}
    answer = any_house.post(VIPS, {"vip": body})
    assert answer.status_code == 400
    assert f"'{missing}'" in answer.json["NeutronError"]["message"]


def test_create_vip_with_an_address(any_house: House) -> None:
    vip = any_house.vip(address="10.0.0.55")
    assert vip["address"] == "10.0.0.55"
    taken = any_house.post(VIPS, {"vip": any_house.vip_body(any_house.pool(), address="10.0.0.55")})
    assert error_of(taken) == (409, "IpAddressInUse")


def test_create_vip_with_an_address_outside_of_the_subnet_is_refused(any_house: House) -> None:
    answer = any_house.post(VIPS, {"vip": any_house.vip_body(any_house.pool(), address="192.0.2.9")})
    assert error_of(answer) == (400, "InvalidIpForSubnet")


def test_create_vip_with_the_gateways_address_is_refused(any_house: House) -> None:
    answer = any_house.post(VIPS, {"vip": any_house.vip_body(any_house.pool(), address="10.0.0.1")})
    assert error_of(answer) == (409, "IpAddressInUse")


@pytest.mark.parametrize(
    "persistence", [{"type": "HTTP_COOKIE"}, {"type": "SOURCE_IP"}, {"type": "APP_COOKIE", "cookie_name": "jsession"}]
)
def test_create_vip_with_a_session_persistence(any_house: House, persistence: dict[str, Any]) -> None:
    assert any_house.vip(session_persistence=persistence)["session_persistence"] == persistence


@pytest.mark.parametrize(
    "persistence",
    [
        {"type": "UNSUPPORTED"},
        {"type": "HTTP_COOKIE", "cookie_name": "jsession"},
        {"type": "SOURCE_IP", "cookie_name": "jsession"},
        {"type": "APP_COOKIE"},
        {"type": "APP_COOKIE", "cookie_name": "a b"},
        {"type": "APP_COOKIE", "cookie_name": "a\nuse_backend x"},
        {"cookie_name": "jsession"},
        {"type": "SOURCE_IP", "colour": "red"},
        "SOURCE_IP",
    ],
)
def test_a_session_persistence_that_cannot_be_is_refused(any_house: House, persistence: Any) -> None:
    answer = any_house.post(VIPS, {"vip": any_house.vip_body(any_house.pool(), session_persistence=persistence)})
    assert answer.status_code == 400
    vip = any_house.vip()
    assert any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"session_persistence": persistence}}).status_code == 400


def test_create_vip_with_another_protocol_than_its_pool_is_refused(any_house: House) -> None:
    answer = any_house.post(VIPS, {"vip": any_house.vip_body(any_house.pool(), protocol="TCP")})
    assert error_of(answer) == (400, "ProtocolMismatch")


def test_moving_a_vip_to_a_pool_of_another_protocol_is_refused(any_house: House) -> None:
    vip, tcp = any_house.vip(), any_house.pool(protocol="TCP")
    assert error_of(any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"pool_id": tcp["id"]}})) == (400, "ProtocolMismatch")


def test_null_resets_the_session_persistence_and_silence_keeps_it(any_house: House) -> None:
    vip = any_house.vip(session_persistence={"type": "HTTP_COOKIE"})
    kept = any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"name": "new"}})
    assert kept.json["vip"]["session_persistence"] == {"type": "HTTP_COOKIE"}
    reset = any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"session_persistence": None}})
    assert reset.json["vip"]["session_persistence"] is None
    assert show(any_house, vip["id"])["session_persistence"] is None


def test_update_vip_answers_with_the_whole_and_pending(any_house: House) -> None:
    vip = any_house.vip()
    changes = {"name": "new", "description": "d", "connection_limit": "10", "admin_state_up": "False"}
    answer = any_house.put(f"{VIPS}/{vip['id']}", {"vip": {**changes, "session_persistence": {"type": "HTTP_COOKIE"}}})
    assert answer.status_code == 200
    updated = answer.json["vip"]
    assert updated["status"] == "PENDING_UPDATE"
    assert updated == {
        **vip,
        "name": "new",
        "description": "d",
        "connection_limit": 10,
        "admin_state_up": False,
        "session_persistence": {"type": "HTTP_COOKIE"},
        "status": "PENDING_UPDATE",
    }
    assert show(any_house, vip["id"])["status"] == "DISABLED"


@pytest.mark.parametrize(
    "name", ["subnet_id", "address", "protocol", "protocol_port", "tenant_id", "service_type_id", "id", "status"]
)
def test_what_is_read_only_cannot_be_updated(any_house: House, name: str) -> None:
    vip = any_house.vip()
    answer = any_house.put(f"{VIPS}/{vip['id']}", {"vip": {name: vip[name]}})
    assert answer.status_code == 400
    assert "read-only" in answer.json["NeutronError"]["message"]


def test_update_vip_with_a_connection_limit_below_unlimited_is_refused(any_house: House) -> None:
    assert any_house.put(f"{VIPS}/{any_house.vip()['id']}", {"vip": {"connection_limit": -4}}).status_code == 400


def test_delete_vip_frees_its_pool_and_it_is_gone_when_the_device_has_let_go(any_house: House) -> None:
    pool = any_house.pool()
    vip = any_house.vip(pool)
    assert any_house.delete(f"{VIPS}/{vip['id']}").status_code == 204
    assert error_of(any_house.get(f"{VIPS}/{vip['id']}")) == (404, "VipNotFound")
    assert any_house.get(f"/v2.0/lb/pools/{pool['id']}").json["pool"]["vip_id"] is None
    any_house.vip(pool)


def test_a_vip_whose_device_has_not_let_go_stays_pending_delete_and_refuses_changes(any_house: House) -> None:
    vip = any_house.vip()
    any_house.agents.idle = True
    assert any_house.delete(f"{VIPS}/{vip['id']}").status_code == 204
    assert show(any_house, vip["id"])["status"] == "PENDING_DELETE"
    assert error_of(any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"name": "new"}})) == (409, "StateInvalid")
    assert any_house.delete(f"{VIPS}/{vip['id']}").status_code == 204


def test_a_pending_vip_takes_changes(any_house: House) -> None:
    any_house.agents.idle = True
    vip = any_house.vip()
    assert show(any_house, vip["id"])["status"] == "PENDING_CREATE"
    assert any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"name": "new"}}).status_code == 200


def test_a_failed_vip_says_why_to_its_tenant(any_house: House) -> None:
    any_house.agents.error = "There is no such certificate."
    vip = any_house.vip()
    shown = show(any_house, vip["id"])
    assert (shown["status"], shown["status_description"]) == ("ERROR", "There is no such certificate.")
    any_house.agents.error = None
    any_house.put(f"{VIPS}/{vip['id']}", {"vip": {"name": "again"}})
    shown = show(any_house, vip["id"])
    assert (shown["status"], shown["status_description"]) == ("ACTIVE", None)


def test_a_vip_that_no_device_takes_is_not_stored_and_only_administrators_learn_which_device_said_what(
    own_any_house: House,
) -> None:
    closed = own_any_house.put(f"/v2.0/devices/{own_any_house.device['id']}", {"device": {"admin_state": "draining"}}, ADMIN)
    assert closed.status_code == 200
    pool = own_any_house.pool()
    refused = own_any_house.post(VIPS, {"vip": own_any_house.vip_body(pool)})
    assert error_of(refused) == (503, "NoEligibleBackend")
    assert refused.json["NeutronError"]["detail"] == ""
    assert own_any_house.device["id"] not in refused.text
    said = refused.json["NeutronError"]["message"]
    assert said == "No device can take it: none that suits it is in service now; try again later, or ask your operator."
    as_admin = own_any_house.post(VIPS, {"vip": own_any_house.vip_body(pool, tenant_id="anne")}, ADMIN)
    assert own_any_house.device["id"] in as_admin.json["NeutronError"]["detail"]
    named = own_any_house.device["name"] or own_any_house.device["id"]
    assert as_admin.json["NeutronError"]["message"] == f"No device can take it: 1 × device.draining. {named}: is being drained"
    assert own_any_house.get(VIPS).json == {"vips": []}


def test_a_vip_takes_a_service_type_by_name_or_id(any_house: House) -> None:
    gold = any_house.create("/v2.0/service-types", "service_type", {"name": "gold"}, ADMIN)
    assert any_house.vip(service_type_id="gold")["service_type_id"] == gold["id"]
    assert any_house.vip(service_type_id=gold["id"])["service_type_id"] == gold["id"]


def test_an_administrator_creates_a_vip_for_another_tenant(any_house: House) -> None:
    pool = any_house.pool(ADMIN, tenant_id="bert")
    vip = any_house.vip(pool, ADMIN, tenant_id="bert")
    assert vip["tenant_id"] == "bert"
    assert any_house.get(f"{VIPS}/{vip['id']}", BERT).status_code == 200


def test_show_vip_associated_with_pool(any_house: House) -> None:
    pool = any_house.pool()
    vip = any_house.vip(pool)
    vip_id = any_house.get(f"/v2.0/lb/pools/{pool['id']}").json["pool"]["vip_id"]
    assert vip_id == vip["id"]
    assert show(any_house, vip_id)["pool_id"] == pool["id"]


def test_create_update_delete_pool_and_vip_at_the_last_address(any_house: House) -> None:
    pool = any_house.pool()
    vip = any_house.vip(pool, address="10.0.255.254")
    assert vip["address"] == "10.0.255.254"
    changes = {"name": "new", "description": "d", "connection_limit": 10, "admin_state_up": False}
    changes |= {"session_persistence": {"type": "HTTP_COOKIE"}}
    vip = any_house.put(f"{VIPS}/{vip['id']}", {"vip": changes}).json["vip"]
    assert {name: vip[name] for name in changes} == changes
    assert any_house.delete(f"{VIPS}/{vip['id']}").status_code == 204
    assert any_house.get(f"{VIPS}/{vip['id']}").status_code == 404
    pool = any_house.put(f"/v2.0/lb/pools/{pool['id']}", {"pool": {"lb_method": "LEAST_CONNECTIONS"}}).json["pool"]
    assert pool["lb_method"] == "LEAST_CONNECTIONS"
    assert any_house.delete(f"/v2.0/lb/pools/{pool['id']}").status_code == 204


def test_list_vips_has_the_vip(any_house: House) -> None:
    vip = any_house.vip()
    assert vip["id"] in [each["id"] for each in any_house.get(VIPS).json["vips"]]


def test_list_vips_with_each_attribute_as_a_filter_still_has_it(any_house: House) -> None:
    pool = any_house.pool(protocol="HTTPS")
    vip = any_house.vip(pool, name="web", protocol="HTTPS", protocol_port=81, admin_state_up=False)
    any_house.vip(name="other")
    for name in set(vip) - {"status", "session_persistence", "status_description", "description"}:
        found = any_house.get(f"{VIPS}?{name}={vip[name]}").json["vips"]
        assert vip["id"] in [each["id"] for each in found], name
    for name in ("name", "address", "port_id", "pool_id", "id", "protocol", "protocol_port", "admin_state_up"):
        assert len(any_house.get(f"{VIPS}?{name}={vip[name]}").json["vips"]) == 1, name
