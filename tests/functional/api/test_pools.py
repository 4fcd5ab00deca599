"""Pools over HTTP: what LBaaS v1's own suites ask of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.api.house import ADMIN, BERT, House, error_of

POOLS = "/v2.0/lb/pools"
NOBODY = "11111111-2222-3333-4444-555555555555"


def show(house: House, pool_id: str) -> dict[str, Any]:
    return house.get(f"{POOLS}/{pool_id}").json["pool"]


def test_create_pool_answers_with_the_defaults(any_house: House) -> None:
    pool = any_house.pool()
    expected = {"name": "", "description": "", "vip_id": None, "members": [], "health_monitors": [], "health_monitors_status": []}
    assert {name: pool[name] for name in expected} == expected
    assert (pool["status"], pool["provider"], pool["admin_state_up"]) == ("ACTIVE", "default", True)
    assert show(any_house, pool["id"]) == pool


@pytest.mark.parametrize(
    "wrong",
    [
        {"protocol": "UNSUPPORTED"},
        {"lb_method": "UNSUPPORTED"},
        {"lb_method": None},
        {"subnet_id": "not-a-uuid"},
        {"admin_state_up": "perhaps"},
        {"health_monitors": ["not-a-uuid"]},
        {"health_monitors": [NOBODY, NOBODY]},
        {"vip_id": NOBODY},
        {"members": []},
        {"provider": "unknown"},
        {"tenant_id": "bert"},
    ],
)
def test_create_pool_with_invalid_values_is_refused(any_house: House, wrong: dict[str, Any]) -> None:
    body = {"subnet_id": any_house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN", **wrong}
    assert any_house.post(POOLS, {"pool": body}).status_code == 400
    assert any_house.get(POOLS).json == {"pools": []}


@pytest.mark.parametrize("health_monitors", [None, [], [NOBODY], NOBODY])
def test_monitors_named_with_the_pool_are_taken_and_ignored(any_house: House, health_monitors: Any) -> None:
    assert any_house.pool(health_monitors=health_monitors)["health_monitors"] == []


def test_create_pool_of_another_provider_in_whatever_spelling(any_house: House) -> None:
    any_house.create("/v2.0/service-types", "service_type", {"name": "lbaas"}, ADMIN)
    assert any_house.pool(provider="lbaas")["provider"] == "lbaas"
    assert any_house.pool(provider="LBAAS")["provider"] == "lbaas"


def test_create_pool_of_an_unknown_or_disabled_provider_is_refused(any_house: House) -> None:
    any_house.create("/v2.0/service-types", "service_type", {"name": "old", "enabled": False}, ADMIN)
    for provider in ("unknown", "old"):
        body = {"subnet_id": any_house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN", "provider": provider}
        assert error_of(any_house.post(POOLS, {"pool": body})) == (400, "ServiceProviderNotFound")


def test_no_pool_is_orphaned_of_its_provider(any_house: House) -> None:
    name = f"provider of {any_house.tenant}"
    provider = any_house.create("/v2.0/service-types", "service_type", {"name": name}, ADMIN)
    pool, path = any_house.pool(provider=name), f"/v2.0/service-types/{provider['id']}"
    assert error_of(any_house.delete(path, ADMIN)) == (409, "ServiceTypeInUse")
    assert any_house.put(path, {"service_type": {"enabled": False}}, ADMIN).status_code == 200
    assert show(any_house, pool["id"])["provider"] == name
    any_house.delete(f"{POOLS}/{pool['id']}")
    assert any_house.delete(path, ADMIN).status_code == 204


def test_a_pool_lists_its_members(any_house: House) -> None:
    pool = any_house.pool()
    ids = {any_house.member(pool, f"10.1.0.{number}")["id"] for number in (1, 2)}
    assert set(show(any_house, pool["id"])["members"]) == ids


def test_delete_pool_takes_its_members_and_associations_with_it(any_house: House) -> None:
    pool, monitor = any_house.pool(), any_house.monitor()
    member = any_house.member(pool)
    any_house.associate(monitor, pool)
    assert any_house.delete(f"{POOLS}/{pool['id']}").status_code == 204
    assert error_of(any_house.get(f"{POOLS}/{pool['id']}")) == (404, "PoolNotFound")
    assert any_house.get(f"/v2.0/lb/members/{member['id']}").status_code == 404
    assert any_house.get(f"/v2.0/lb/health_monitors/{monitor['id']}").json["health_monitor"]["pools"] == []


def test_a_refused_deletion_preserves_the_state(any_house: House) -> None:
    pool = any_house.pool()
    any_house.vip(pool)
    before = show(any_house, pool["id"])
    assert error_of(any_house.delete(f"{POOLS}/{pool['id']}")) == (409, "PoolInUse")
    assert show(any_house, pool["id"]) == before


def test_delete_subnet_with_a_pool_is_refused(any_house: House) -> None:
    any_house.pool()
    assert error_of(any_house.delete(f"/v2.0/subnets/{any_house.subnet['id']}", ADMIN)) == (409, "SubnetInUse")


def test_update_pool_with_an_invalid_method_is_refused(any_house: House) -> None:
    assert any_house.put(f"{POOLS}/{any_house.pool()['id']}", {"pool": {"lb_method": "dummy"}}).status_code == 400


def test_update_pool_changes_what_is_named(any_house: House) -> None:
    pool = any_house.pool()
    changes = {"name": "n", "description": "d", "lb_method": "SOURCE_IP", "admin_state_up": "False"}
    updated = any_house.put(f"{POOLS}/{pool['id']}", {"pool": changes}).json["pool"]
    expected = {**pool, "name": "n", "description": "d", "lb_method": "SOURCE_IP", "admin_state_up": False, "status": "DISABLED"}
    assert updated == expected


def test_update_pool_of_a_vip_is_pending_until_the_device_has_it(any_house: House) -> None:
    pool = any_house.pool()
    any_house.vip(pool)
    any_house.agents.idle = True
    updated = any_house.put(f"{POOLS}/{pool['id']}", {"pool": {"lb_method": "LEAST_CONNECTIONS"}}).json["pool"]
    assert updated["status"] == "PENDING_UPDATE"


@pytest.mark.parametrize("name", ["subnet_id", "protocol", "provider", "vip_id", "status", "members"])
def test_what_is_read_only_cannot_be_updated(any_house: House, name: str) -> None:
    pool = any_house.pool()
    assert any_house.put(f"{POOLS}/{pool['id']}", {"pool": {name: pool[name]}}).status_code == 400


def test_list_pools_with_each_attribute_as_a_filter_still_has_it(any_house: House) -> None:
    pool = any_house.pool(name="web", description="d", protocol="TCP", lb_method="SOURCE_IP")
    any_house.pool()
    for name in ("id", "name", "description", "tenant_id", "subnet_id", "protocol", "lb_method", "admin_state_up", "provider"):
        found = any_house.get(f"{POOLS}?{name}={pool[name]}").json["pools"]
        assert pool["id"] in [each["id"] for each in found], name


def test_an_administrator_creates_a_pool_for_another_tenant(any_house: House) -> None:
    pool = any_house.pool(ADMIN, tenant_id="bert")
    assert pool["tenant_id"] == "bert"
    assert any_house.get(f"{POOLS}/{pool['id']}", BERT).status_code == 200


def test_the_counters_of_a_pool_without_statistics_are_zero(any_house: House) -> None:
    stats = any_house.get(f"{POOLS}/{any_house.pool()['id']}/stats")
    assert stats.json == {"stats": {"bytes_in": 0, "bytes_out": 0, "active_connections": 0, "total_connections": 0}}


def test_the_counters_are_as_the_agent_reported_them_last(any_house: House) -> None:
    pool = any_house.pool()
    vip = any_house.vip(pool)
    counters = {"bytes_in": 5_000_000_000, "bytes_out": 2, "active_connections": 3, "total_connections": 4}
    any_house.stats(vip["id"], **counters)
    assert any_house.get(f"{POOLS}/{pool['id']}/stats.json").json == {"stats": counters}


def test_negative_counters_are_not_taken(any_house: House) -> None:
    pool = any_house.pool()
    vip = any_house.vip(pool)
    any_house.stats(vip["id"], bytes_in=7)
    any_house.stats(vip["id"], bytes_in=-1)
    assert any_house.get(f"{POOLS}/{pool['id']}/stats").json["stats"]["bytes_in"] == 7


def test_which_agent_hosts_a_pool_is_told_to_administrators(own_any_house: House) -> None:
    pool = own_any_house.pool()
    path = f"{POOLS}/{pool['id']}/loadbalancer-agent"
    assert own_any_house.get(path, ADMIN).json == {"agent": None}
    own_any_house.vip(pool)
    agent = own_any_house.get(path, ADMIN).json["agent"]
    assert (agent["agent_type"], agent["alive"]) == ("Loadbalancer agent", True)
    assert own_any_house.get(path).status_code == 403
    assert error_of(own_any_house.get(f"{POOLS}/{NOBODY}/loadbalancer-agent", ADMIN)) == (404, "PoolNotFound")


def test_an_agent_lists_the_pools_on_its_devices(own_any_house: House) -> None:
    pool = own_any_house.pool()
    own_any_house.pool()
    own_any_house.vip(pool)
    agent = own_any_house.get("/v2.0/agents", ADMIN).json["agents"][0]
    pools = own_any_house.get(f"/v2.0/agents/{agent['id']}/loadbalancer-pools", ADMIN).json["pools"]
    assert pools == [show(own_any_house, pool["id"])]
    assert own_any_house.get(f"/v2.0/agents/{NOBODY}/loadbalancer-pools", ADMIN).json == {"pools": []}
    assert own_any_house.get(f"/v2.0/agents/{agent['id']}/loadbalancer-pools").status_code == 403
