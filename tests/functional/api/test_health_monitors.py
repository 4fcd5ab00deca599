"""Health monitors and their associations over HTTP: what LBaaS v1's own suites ask of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.api.house import ADMIN, BERT, House, error_of

MONITORS = "/v2.0/lb/health_monitors"
NOBODY = "11111111-2222-3333-4444-555555555555"
HTTP_ONLY = {"http_method", "url_path", "expected_codes"}


def show(house: House, monitor_id: str) -> dict[str, Any]:
    return house.get(f"{MONITORS}/{monitor_id}").json["health_monitor"]


def pool_of(house: House, pool: dict[str, Any]) -> dict[str, Any]:
    return house.get(f"/v2.0/lb/pools/{pool['id']}").json["pool"]


def test_create_health_monitor_of_http_has_defaults(any_house: House) -> None:
    monitor = any_house.monitor(type="HTTP")
    assert {name: monitor[name] for name in HTTP_ONLY} == {"http_method": "GET", "url_path": "/", "expected_codes": "200"}
    assert (monitor["admin_state_up"], monitor["pools"]) == (True, [])
    assert "status" not in monitor
    assert show(any_house, monitor["id"]) == monitor


@pytest.mark.parametrize("kind", ["PING", "TCP"])
def test_a_monitor_that_speaks_no_http_shows_nothing_of_http(any_house: House, kind: str) -> None:
    assert not HTTP_ONLY & any_house.monitor(type=kind).keys()


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "UDP"},
        {"delay": 0},
        {"delay": -1},
        {"timeout": -1},
        {"delay": "soon"},
        {"max_retries": 0},
        {"max_retries": 11},
        {"http_method": "GET\r\nHost: x"},
        {"http_method": "FETCH"},
        {"url_path": "index"},
        {"url_path": "/a b"},
        {"url_path": "/\nx"},
        {"expected_codes": "abc"},
        {"expected_codes": "299-200"},
        {"expected_codes": "200,202-204"},
        {"expected_codes": "200\n"},
        {"expected_codes": "２００"},
        {"pools": []},
        {"name": "a monitor has no name"},
    ],
)
def test_create_health_monitor_with_invalid_values_is_refused(any_house: House, wrong: dict[str, Any]) -> None:
    body = {"type": "HTTP", "delay": 4, "timeout": 1, "max_retries": 3, **wrong}
    assert any_house.post(MONITORS, {"health_monitor": body}).status_code == 400
    assert any_house.get(MONITORS).json == {"health_monitors": []}


def test_a_delay_shorter_than_the_timeout_is_refused_and_an_equal_one_taken(any_house: House) -> None:
    body = {"type": "TCP", "delay": 1, "timeout": 2, "max_retries": 3}
    assert error_of(any_house.post(MONITORS, {"health_monitor": body})) == (400, "DelayOrTimeoutInvalid")
    monitor = any_house.monitor(type="TCP", delay=5, timeout=2)
    path = f"{MONITORS}/{monitor['id']}"
    assert error_of(any_house.put(path, {"health_monitor": {"delay": 1}})) == (400, "DelayOrTimeoutInvalid")
    updated = any_house.put(path, {"health_monitor": {"delay": 20, "timeout": "20", "max_retries": 2}}).json["health_monitor"]
    assert (updated["delay"], updated["timeout"], updated["max_retries"]) == (20, 20, 2)


def test_update_health_monitor_changes_what_it_asks_for(any_house: House) -> None:
    monitor = any_house.monitor()
    changes = {"http_method": "POST", "url_path": "/home/user", "expected_codes": "290"}
    updated = any_house.put(f"{MONITORS}/{monitor['id']}", {"health_monitor": changes}).json["health_monitor"]
    assert updated == {**monitor, **changes}


def test_delete_health_monitor(any_house: House) -> None:
    monitor = any_house.monitor()
    assert any_house.delete(f"{MONITORS}/{monitor['id']}").status_code == 204
    assert error_of(any_house.get(f"{MONITORS}/{monitor['id']}")) == (404, "HealthMonitorNotFound")


def test_delete_health_monitor_in_use_is_refused_and_it_is_kept(any_house: House) -> None:
    monitor, pool = any_house.monitor(), any_house.pool()
    any_house.associate(monitor, pool)
    assert error_of(any_house.delete(f"{MONITORS}/{monitor['id']}")) == (409, "HealthMonitorInUse")
    assert show(any_house, monitor["id"])["pools"][0]["pool_id"] == pool["id"]


def test_two_monitors_of_a_pool_are_pending_until_the_device_has_them(any_house: House) -> None:
    pool = any_house.pool()
    any_house.vip(pool)
    any_house.agents.idle = True
    for monitor in (any_house.monitor(), any_house.monitor(type="TCP")):
        answer = any_house.associate(monitor, pool)
        assert (answer.status_code, answer.json) == (201, {"health_monitor": {}})
    statuses = pool_of(any_house, pool)["health_monitors_status"]
    assert [each["status"] for each in statuses] == ["PENDING_CREATE"] * 2


def test_an_association_reaches_the_device_and_takes_the_status_that_it_reports(any_house: House) -> None:
    pool, good, bad = any_house.pool(), any_house.monitor(), any_house.monitor(type="TCP")
    vip = any_house.vip(pool)
    any_house.agents.object_errors = {bad["id"]: "There is no such check."}
    for monitor in (good, bad):
        any_house.associate(monitor, pool)
    sent = any_house.agents.received[vip["id"]].vip.pool.health_monitors
    assert {monitor.id for monitor in sent} == {good["id"], bad["id"]}

    def statuses() -> dict[str, tuple[str, str | None]]:
        listed = pool_of(any_house, pool)["health_monitors_status"]
        return {each["monitor_id"]: (each["status"], each["status_description"]) for each in listed}

    assert statuses() == {good["id"]: ("ACTIVE", None), bad["id"]: ("ERROR", "There is no such check.")}
    any_house.agents.object_errors = {}
    any_house.put(f"{MONITORS}/{bad['id']}", {"health_monitor": {"delay": 9}})
    assert statuses() == {good["id"]: ("ACTIVE", None), bad["id"]: ("ACTIVE", None)}


def test_disassociating_one_of_two_monitors_leaves_the_other_on_pool_and_device(any_house: House) -> None:
    pool, gone, kept = any_house.pool(), any_house.monitor(), any_house.monitor(type="TCP")
    vip = any_house.vip(pool)
    for monitor in (gone, kept):
        any_house.associate(monitor, pool)
    assert any_house.delete(f"/v2.0/lb/pools/{pool['id']}/health_monitors/{gone['id']}").status_code == 204
    shown = pool_of(any_house, pool)
    assert (shown["health_monitors"], [each["monitor_id"] for each in shown["health_monitors_status"]]) == ([kept["id"]],) * 2
    assert [monitor.id for monitor in any_house.agents.received[vip["id"]].vip.pool.health_monitors] == [kept["id"]]
    assert show(any_house, gone["id"])["pools"] == []


def test_associate_and_disassociate_is_seen_from_both_sides(any_house: House) -> None:
    monitor, pool = any_house.monitor(), any_house.pool()
    any_house.associate(monitor, pool)
    assert pool_of(any_house, pool)["health_monitors"] == [monitor["id"]]
    assert [each["pool_id"] for each in show(any_house, monitor["id"])["pools"]] == [pool["id"]]
    path = f"/v2.0/lb/pools/{pool['id']}/health_monitors/{monitor['id']}"
    shown = any_house.get(path).json["health_monitor"]
    assert (shown["pool_id"], shown["monitor_id"], shown["tenant_id"]) == (pool["id"], monitor["id"], any_house.tenant)

    assert any_house.delete(path).status_code == 204
    assert pool_of(any_house, pool)["health_monitors"] == []
    assert show(any_house, monitor["id"])["pools"] == []
    assert error_of(any_house.get(path)) == (404, "PoolMonitorAssociationNotFound")
    assert error_of(any_house.delete(path)) == (404, "PoolMonitorAssociationNotFound")


def test_associating_twice_is_refused(any_house: House) -> None:
    monitor, pool = any_house.monitor(), any_house.pool()
    any_house.associate(monitor, pool)
    assert error_of(any_house.associate(monitor, pool)) == (409, "PoolMonitorAssociationExists")


def test_associating_with_what_is_not_there_is_refused(any_house: House) -> None:
    assert error_of(any_house.associate(any_house.monitor(), {"id": NOBODY})) == (404, "PoolNotFound")
    assert error_of(any_house.associate({"id": NOBODY}, any_house.pool())) == (404, "HealthMonitorNotFound")
    assert any_house.associate({"id": "not-a-uuid"}, any_house.pool()).status_code == 400


def test_a_monitor_serves_several_pools(any_house: House) -> None:
    monitor = any_house.monitor()
    pools = [any_house.pool(), any_house.pool()]
    for pool in pools:
        any_house.associate(monitor, pool)
    assert {each["pool_id"] for each in show(any_house, monitor["id"])["pools"]} == {pool["id"] for pool in pools}
    assert all(pool_of(any_house, pool)["health_monitors"] == [monitor["id"]] for pool in pools)


def test_an_update_of_a_monitor_is_seen_through_its_pool(any_house: House) -> None:
    monitor, pool = any_house.monitor(), any_house.pool()
    any_house.associate(monitor, pool)
    any_house.put(f"{MONITORS}/{monitor['id']}", {"health_monitor": {"admin_state_up": False}})
    (monitor_id,) = pool_of(any_house, pool)["health_monitors"]
    assert show(any_house, monitor_id)["admin_state_up"] is False


def test_old_associated_monitors_may_be_replaced(any_house: House) -> None:
    old, new, pool = any_house.monitor(), any_house.monitor(type="TCP"), any_house.pool()
    any_house.associate(old, pool)
    assert any_house.delete(f"/v2.0/lb/pools/{pool['id']}/health_monitors/{old['id']}").status_code == 204
    assert any_house.associate(new, pool).status_code == 201
    assert pool_of(any_house, pool)["health_monitors"] == [new["id"]]


def test_list_health_monitors_with_each_attribute_as_a_filter_still_has_it(any_house: House) -> None:
    monitor = any_house.monitor(delay=5, timeout=2, max_retries=4)
    any_house.monitor(type="PING", delay=9)
    for name in set(monitor) - {"pools"}:
        found = any_house.get(f"{MONITORS}?{name}={monitor[name]}").json["health_monitors"]
        assert monitor["id"] in [each["id"] for each in found], name


def test_an_administrator_creates_a_monitor_for_another_tenant(any_house: House) -> None:
    monitor = any_house.monitor(ADMIN, tenant_id="bert")
    assert monitor["tenant_id"] == "bert"
    assert any_house.get(f"{MONITORS}/{monitor['id']}", BERT).status_code == 200


def test_a_whole_load_balancer_is_built_and_taken_down(any_house: House) -> None:
    pool = any_house.pool(name="web")
    members = [any_house.member(pool, f"10.1.0.{number}") for number in (1, 2)]
    monitor = any_house.monitor()
    any_house.associate(monitor, pool)
    vip = any_house.vip(pool, session_persistence={"type": "SOURCE_IP"})
    shown = pool_of(any_house, pool)
    assert shown["vip_id"] == vip["id"]
    assert (set(shown["members"]), shown["health_monitors"]) == ({member["id"] for member in members}, [monitor["id"]])
    statuses = {any_house.get(f"/v2.0/lb/members/{member['id']}").json["member"]["status"] for member in members}
    assert statuses | {shown["status"], shown["health_monitors_status"][0]["status"]} == {"ACTIVE"}

    for path in (f"vips/{vip['id']}", f"pools/{pool['id']}", f"health_monitors/{monitor['id']}"):
        assert any_house.delete(f"/v2.0/lb/{path}").status_code == 204
    for collection in ("vips", "pools", "members", "health_monitors"):
        assert any_house.get(f"/v2.0/lb/{collection}").json == {collection: []}
