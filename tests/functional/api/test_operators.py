"""Devices, agents, service types, networks, ports and the catalogue over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.api.house import ADMIN, House, error_of

DEVICES = "/v2.0/devices"
TYPES = "/v2.0/service-types"
SECRET = "hunter2-hunter2"


def test_a_devices_secrets_go_in_and_never_come_out(any_house: House) -> None:
    management = {"address": "192.0.2.1", "port": 443, "user": "admin", "password": SECRET}
    answer = any_house.post(DEVICES, {"device": {"device_type": "fake", "name": "f5", "management": management}}, ADMIN)
    assert answer.status_code == 201
    device = answer.json["device"]
    assert device["management"] == {"address": "192.0.2.1", "port": 443, "user": "admin", "secret_set": True}
    for path in (DEVICES, f"{DEVICES}/{device['id']}"):
        assert SECRET not in any_house.get(path, ADMIN).text
    wrong = any_house.put(f"{DEVICES}/{device['id']}", {"device": {"management": {"password": [SECRET]}}}, ADMIN)
    assert wrong.status_code == 400
    assert SECRET not in wrong.text


def test_a_device_is_registered_changed_and_removed(any_house: House) -> None:
    body = {"device_type": "fake", "name": "box-2", "capacity": {"VIPS": 3}, "zone": "a"}
    device = any_house.create(DEVICES, "device", body, ADMIN)
    assert (device["usage"]["VIPS"], device["agent"]["alive"]) == ({"used": 0, "limit": 3}, True)
    path = f"{DEVICES}/{device['id']}"
    changed = any_house.put(path, {"device": {"name": "box-3", "generation": device["generation"]}}, ADMIN).json["device"]
    assert (changed["name"], changed["zone"]) == ("box-3", "a")
    stale = any_house.put(path, {"device": {"name": "box-4", "generation": device["generation"]}}, ADMIN)
    assert error_of(stale) == (409, "StaleGeneration")
    assert [each["id"] for each in any_house.get(f"{DEVICES}?zone=a", ADMIN).json["devices"]] == [device["id"]]
    assert any_house.delete(path, ADMIN).status_code == 204
    assert error_of(any_house.get(path, ADMIN)) == (404, "DeviceNotFound")


@pytest.mark.parametrize("state", ["draining", "disabled"])
def test_a_device_is_drained_disabled_and_enabled_by_its_admin_state(house: House, state: str) -> None:
    path = f"{DEVICES}/{house.device['id']}"
    assert house.put(path, {"device": {"admin_state": state}}, ADMIN).json["device"]["admin_state"] == state
    assert house.post("/v2.0/lb/vips", {"vip": house.vip_body(house.pool())}).status_code == 503
    house.put(path, {"device": {"admin_state": "enabled"}}, ADMIN)
    house.vip()


def test_a_device_lists_its_vips_and_is_not_removed_with_them(house: House) -> None:
    vip = house.vip()
    listed = house.get(f"{DEVICES}/{house.device['id']}/vips?fields=id", ADMIN).json
    assert listed == {"vips": [{"id": vip["id"]}]}
    assert error_of(house.delete(f"{DEVICES}/{house.device['id']}", ADMIN)) == (409, "DeviceInUse")
    assert house.get(f"{DEVICES}/{vip['id']}/vips", ADMIN).status_code == 404


@pytest.mark.parametrize("wrong", [{"device_type": "f5"}, {"name": "x"}, {"device_type": "fake", "colour": "red"}, {"id": "x"}])
def test_a_device_that_makes_no_sense_is_refused(house: House, wrong: dict[str, Any]) -> None:
    assert house.post(DEVICES, {"device": wrong}, ADMIN).status_code == 400


def test_a_vips_placement_says_where_and_why(house: House) -> None:
    vip = house.vip()
    placement = house.get(f"/v2.0/lb/vips/{vip['id']}/placement", ADMIN).json["placement"]
    assert (placement["device_id"], placement["agent_host"], placement["epoch"]) == (house.device["id"], "agent-1", 1)
    assert placement["trail"]["algorithm"] == "least_loaded"
    assert placement["revision"] == placement["applied_revision"]


def test_a_service_type_lives_as_the_seed_wants_it(own_any_house: House) -> None:
    definitions = [{"service": "LoadBalancer", "driver": "fake"}]
    body = {"name": "gold", "description": "the best", "service_definitions": definitions}
    gold = own_any_house.create(TYPES, "service_type", body, ADMIN)
    assert (gold["enabled"], gold["default"], gold["description"]) == (True, False, "the best")
    assert gold["service_definitions"] == [{"service": "LoadBalancer", "plugin": "LoadBalancer", "driver": "fake"}]
    vip = own_any_house.vip(service_type_id="gold")
    assert error_of(own_any_house.delete(f"{TYPES}/{gold['id']}", ADMIN)) == (409, "ServiceTypeInUse")
    off = own_any_house.put(f"{TYPES}/{gold['id']}", {"service_type": {"enabled": False}}, ADMIN)
    assert off.json["service_type"]["enabled"] is False
    refused = own_any_house.post("/v2.0/lb/vips", {"vip": own_any_house.vip_body(own_any_house.pool(), service_type_id="gold")})
    assert error_of(refused) == (400, "ServiceProviderNotFound")
    own_any_house.delete(f"/v2.0/lb/vips/{vip['id']}")
    assert own_any_house.delete(f"{TYPES}/{gold['id']}", ADMIN).status_code == 204


def test_service_providers_are_the_enabled_types_and_never_show_a_driver(house: House) -> None:
    house.create(TYPES, "service_type", {"name": "off", "enabled": False}, ADMIN)
    answer = house.get("/v2.0/service-providers")
    assert answer.json == {"service_providers": [{"service_type": "LOADBALANCER", "name": "default", "default": True}]}
    assert house.get("/v2.0/service-providers?name=off").json == {"service_providers": []}


def test_an_agent_is_shown_described_and_disabled(own_any_house: House) -> None:
    agent = own_any_house.get("/v2.0/agents?host=agent-1&fields=id", ADMIN).json["agents"]
    path = f"/v2.0/agents/{agent[0]['id']}"
    changes = {"admin_state_up": "False", "description": "in repair"}
    changed = own_any_house.put(path, {"agent": changes}, ADMIN).json["agent"]
    assert (changed["admin_state_up"], changed["description"], changed["alive"]) == (False, "in repair", True)
    assert own_any_house.put(path, {"agent": {"host": "other"}}, ADMIN).status_code == 400
    assert error_of(own_any_house.delete(path, ADMIN)) == (409, "Conflict")


def test_the_port_of_a_vip_is_read_and_goes_with_its_vip_only(any_house: House) -> None:
    vip = any_house.vip()
    path = f"/v2.0/ports/{vip['port_id']}"
    port = any_house.get(path).json["port"]
    assert (port["name"], port["device_owner"]) == (f"vip-{vip['id']}", "neutron:LOADBALANCER")
    assert port["fixed_ips"] == [{"subnet_id": vip["subnet_id"], "ip_address": vip["address"]}]
    assert port["network_id"] == any_house.network["id"]
    assert any_house.get(f"/v2.0/ports?device_id={vip['id']}").json["ports"] == [port]
    assert any_house.get("/v2.0/ports?device_id=other").json == {"ports": []}
    assert error_of(any_house.delete(path)) == (409, "ServicePortInUse")
    any_house.delete(f"/v2.0/lb/vips/{vip['id']}")
    assert error_of(any_house.get(path)) == (404, "PortNotFound")


def test_clients_look_subnets_up_by_name(house: House) -> None:
    found = house.get("/v2.0/subnets.json?name=front-v4&fields=id").json
    assert found == {"subnets": [{"id": house.subnet["id"]}]}
    assert house.get("/v2.0/networks?name=front&fields=id").json == {"networks": [{"id": house.network["id"]}]}


def test_the_catalogue_says_what_there_is(house: House) -> None:
    version = house.get("/", {}).json["versions"][0]
    assert (version["id"], version["status"]) == ("v2.0", "CURRENT")
    assert version["links"][0]["href"].endswith("/v2.0/")
    assert {each["collection"] for each in house.get("/v2.0", {}).json["resources"]} >= {"vips", "pools"}
    aliases = {each["alias"] for each in house.get("/v2.0/extensions").json["extensions"]}
    assert aliases >= {"lbaas", "lbaas_agent_scheduler", "service-type", "agent", "quotas"}
    assert house.get("/v2.0/extensions/lbaas").json["extension"]["name"] == "LoadBalancing service"
    assert house.get("/v2.0/extensions/firewall").status_code == 404
    assert house.get("/openapi.json", {}).json["openapi"] == "3.1.0"
