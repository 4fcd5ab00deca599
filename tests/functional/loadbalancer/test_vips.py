"""VIPs: their creation, changes and end."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler import errors
from lbaas_scheduler.db.models import deployments, devices, placements, service_types, vips
from lbaas_scheduler.domain.loadbalancers import Persistence, SessionPersistence
from tests.functional.loadbalancer.lab import DEVICE, Lab, addresses, admin

NOWHERE = "00000000-0000-0000-0000-000000000000"


def test_a_new_vip_has_its_defaults_its_address_and_a_port_and_waits_for_its_device(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.vip(pool)
    expected: dict[str, Any] = {
        "tenant_id": "tenant",
        "name": "",
        "description": "",
        "address": "10.0.0.2",
        "protocol": "HTTP",
        "protocol_port": 80,
        "pool_id": pool["id"],
        "session_persistence": None,
        "connection_limit": -1,
        "admin_state_up": True,
        "status": "PENDING_CREATE",
        "status_description": None,
        "service_type_id": lab.default_service_type_id,
    }
    assert {name: vip[name] for name in expected} == expected
    assert vip["port_id"]
    assert lab.plugin.get_pool(lab.me, pool["id"])["vip_id"] == vip["id"]
    assert lab.caster.casts == [[vip["id"]]]
    assert lab.plugin.get_vip(lab.me, vip["id"]) == vip


def test_a_vip_takes_what_it_demands_of_its_device(lab: Lab) -> None:
    vip = lab.vip(connection_limit=7)
    placement = lab.placement(vip["id"])
    assert placement is not None
    assert (placement.device_id, placement.amounts) == ("device", {"VIPS": 1, "CONNECTIONS": 7})
    assert (lab.used("vips"), lab.used("connections")) == (1, 7)


def test_a_vip_may_choose_its_address(lab: Lab) -> None:
    assert lab.vip(address="10.0.0.254")["address"] == "10.0.0.254"


def test_an_address_that_is_taken_is_refused_and_nothing_is_stored(lab: Lab) -> None:
    lab.vip(address="10.0.0.9")
    pool = lab.pool()
    with pytest.raises(errors.IpAddressInUse) as caught:
        lab.vip(pool, address="10.0.0.9")
    assert "10.0.0.9" in caught.value.message
    assert lab.plugin.get_pool(lab.me, pool["id"])["vip_id"] is None
    assert (lab.count(vips), lab.count(placements), lab.count(deployments), lab.used()) == (1, 1, 1, 1)


def test_the_gateways_address_is_in_use(lab: Lab) -> None:
    with pytest.raises(errors.IpAddressInUse):
        lab.vip(address="10.0.0.1")


@pytest.mark.parametrize("address", ["10.0.1.5", "10.0.0.0", "10.0.0.255", "2001:db8::5"])
def test_an_address_outside_of_the_subnet_is_refused(lab: Lab, address: str) -> None:
    with pytest.raises(errors.InvalidIpForSubnet):
        lab.vip(address=address)
    assert lab.count(vips) == 0


def test_a_subnet_without_a_free_address_leaves_no_vip_and_no_claim_behind(lab: Lab) -> None:
    tiny = lab.networks.create_subnet(lab.me, {"network_id": lab.network["id"], "cidr": "10.9.0.0/30"})
    lab.vip(subnet_id=tiny["id"])
    with pytest.raises(errors.IpAddressGenerationFailure):
        lab.vip(subnet_id=tiny["id"])
    assert (lab.count(vips), lab.count(addresses), lab.count(placements), lab.used()) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"pool_id": NOWHERE}, errors.PoolNotFound),
        ({"subnet_id": NOWHERE}, errors.SubnetNotFound),
        ({"protocol": "TCP"}, errors.ProtocolMismatch),
        ({"service_type_id": "gold"}, errors.ServiceProviderNotFound),
        ({"protocol": "UDP"}, errors.InvalidRequest),
        ({"protocol_port": 1000500}, errors.InvalidRequest),
        ({"subnet_id": "bad"}, errors.InvalidRequest),
        ({"session_persistence": {"type": "UNSUPPORTED"}}, errors.InvalidRequest),
        ({"session_persistence": {"type": "HTTP_COOKIE", "cookie_name": "jsessionid"}}, errors.InvalidRequest),
        ({"session_persistence": {"type": "SOURCE_IP", "cookie_name": "jsessionid"}}, errors.InvalidRequest),
        ({"session_persistence": {"type": "APP_COOKIE"}}, errors.InvalidRequest),
        ({"connection_limit": -4}, errors.InvalidRequest),
    ],
)
def test_a_wrong_vip_is_refused_and_nothing_is_stored(lab: Lab, changes: dict[str, Any], error: type[Exception]) -> None:
    pool = lab.pool()
    with pytest.raises(error):
        lab.vip(pool, **changes)
    assert lab.plugin.get_pool(lab.me, pool["id"])["vip_id"] is None
    assert (lab.count(vips), lab.count(addresses), lab.used()) == (0, 0, 0)
    assert lab.caster.casts == []


def test_a_pool_has_one_vip_at_most(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.vip(pool)
    with pytest.raises(errors.VipExists):
        lab.vip(pool)
    assert [each["id"] for each in lab.plugin.get_vips(lab.me)] == [vip["id"]]


@pytest.mark.parametrize(
    "persistence",
    [{"type": "HTTP_COOKIE"}, {"type": "SOURCE_IP"}, {"type": "APP_COOKIE", "cookie_name": "jsessionid"}],
)
def test_session_persistence_comes_back_as_it_was_given(lab: Lab, persistence: dict[str, Any]) -> None:
    vip = lab.vip(session_persistence=persistence)
    assert vip["session_persistence"] == persistence
    expected = SessionPersistence(Persistence(persistence["type"]), persistence.get("cookie_name"))
    assert lab.document(vip["id"]).session_persistence == expected


@pytest.mark.parametrize("cookie", [{"type": "HTTP_COOKIE"}, {"type": "APP_COOKIE", "cookie_name": "a"}])
@pytest.mark.parametrize("protocol", ["TCP", "HTTPS"])
def test_cookies_need_http(lab: Lab, protocol: str, cookie: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidRequest, match="HTTP"):
        lab.vip(protocol=protocol, session_persistence=cookie)


def test_a_put_without_session_persistence_keeps_it_and_null_clears_it(lab: Lab) -> None:
    vip = lab.active_vip(session_persistence={"type": "HTTP_COOKIE"})
    assert lab.plugin.update_vip(lab.me, vip["id"], {"name": "x"})["session_persistence"] == {"type": "HTTP_COOKIE"}
    assert lab.plugin.update_vip(lab.me, vip["id"], {"session_persistence": None})["session_persistence"] is None
    assert lab.document(vip["id"]).session_persistence is None


def test_a_changed_vip_waits_for_its_device_which_gets_the_next_revision(lab: Lab) -> None:
    vip = lab.active_vip()
    before = lab.version(vip["id"])
    changed = lab.plugin.update_vip(
        lab.me,
        vip["id"],
        {
            "name": "new",
            "description": "d",
            "connection_limit": "100",
            "admin_state_up": "False",
            "session_persistence": {"type": "APP_COOKIE", "cookie_name": "jesssionId"},
        },
    )
    assert (changed["status"], changed["name"], changed["connection_limit"]) == ("PENDING_UPDATE", "new", 100)
    assert changed["session_persistence"] == {"type": "APP_COOKIE", "cookie_name": "jesssionId"}
    assert lab.version(vip["id"]).revision == before.revision + 1
    assert lab.caster.casts[-1] == [vip["id"]]
    document = lab.document(vip["id"])
    assert (document.connection_limit, document.admin_state_up) == (100, False)


def test_a_changed_connection_limit_changes_the_claim(lab: Lab) -> None:
    vip = lab.active_vip(connection_limit=10)
    lab.plugin.update_vip(lab.me, vip["id"], {"connection_limit": 25})
    assert lab.used("connections") == 25
    lab.plugin.update_vip(lab.me, vip["id"], {"connection_limit": -1})
    assert lab.used("connections") == 0
    placement = lab.placement(vip["id"])
    assert placement is not None
    assert placement.amounts == {"VIPS": 1}


def test_a_connection_limit_that_the_device_has_no_room_for_is_refused_and_nothing_changes(lab: Lab) -> None:
    lab.add_device("small", capacities={"CONNECTIONS": 50})
    lab.only("small")
    vip = lab.vip(connection_limit=10)
    before = lab.version(vip["id"])
    with pytest.raises(errors.Conflict, match="no room"):
        lab.plugin.update_vip(lab.me, vip["id"], {"connection_limit": 51})
    assert lab.used("connections", "small") == 10
    assert lab.version(vip["id"]) == before
    assert lab.plugin.get_vip(lab.me, vip["id"]) == vip


def test_a_device_that_can_do_less_by_now_stands_in_the_way_of_nothing_that_asks_no_more(lab: Lab) -> None:
    lab.add_device("shrinking")
    lab.only("shrinking")
    pool = lab.pool()
    vip, monitor = lab.active_vip(pool), lab.monitor(pool)
    less = sa.update(devices).where(devices.c.id == "shrinking").values(traits=[])
    lab.database.write(lambda conn: conn.execute(less))
    changed = lab.plugin.update_vip(lab.me, vip["id"], {"name": "new", "admin_state_up": False})
    assert (changed["name"], changed["admin_state_up"]) == ("new", False)
    assert lab.plugin.update_health_monitor(lab.me, monitor["id"], {"delay": 9, "admin_state_up": False})["delay"] == 9
    with pytest.raises(errors.Conflict, match="cannot do"):
        lab.plugin.update_vip(lab.me, vip["id"], {"connection_limit": 5})
    with pytest.raises(errors.Conflict, match="cannot do"):
        lab.plugin.update_health_monitor(lab.me, monitor["id"], {"admin_state_up": True})


def test_what_the_device_cannot_do_is_refused_and_nothing_changes(lab: Lab) -> None:
    lab.add_device("simple", without=["PERSISTENCE_HTTP_COOKIE"])
    lab.only("simple")
    vip = lab.vip()
    with pytest.raises(errors.Conflict, match="PERSISTENCE_HTTP_COOKIE"):
        lab.plugin.update_vip(lab.me, vip["id"], {"session_persistence": {"type": "HTTP_COOKIE"}})
    assert lab.plugin.get_vip(lab.me, vip["id"]) == vip


@pytest.mark.parametrize("name", ["address", "protocol_port", "protocol", "subnet_id", "tenant_id", "id", "status", "port_id"])
def test_what_is_fixed_at_creation_cannot_be_changed(lab: Lab, name: str) -> None:
    vip = lab.vip()
    with pytest.raises(errors.InvalidRequest, match="read-only"):
        lab.plugin.update_vip(lab.me, vip["id"], {name: vip[name]})


def test_a_moved_vip_frees_its_old_pool(lab: Lab) -> None:
    old, new = lab.pool(), lab.pool()
    member = lab.member(old)
    vip = lab.active_vip(old)
    lab.plugin.update_member(lab.me, member["id"], {"weight": 2})
    moved = lab.plugin.update_vip(lab.me, vip["id"], {"pool_id": new["id"]})
    assert (moved["pool_id"], moved["status"]) == (new["id"], "PENDING_UPDATE")
    assert lab.plugin.get_pool(lab.me, old["id"])["vip_id"] is None
    assert lab.plugin.get_pool(lab.me, new["id"])["vip_id"] == vip["id"]
    assert lab.document(vip["id"]).pool.id == new["id"]
    assert lab.plugin.get_member(lab.me, member["id"])["status"] == "ACTIVE"


def test_a_vip_cannot_move_onto_a_pool_that_has_one(lab: Lab) -> None:
    old, taken = lab.pool(), lab.pool()
    vip, other = lab.vip(old), lab.vip(taken)
    with pytest.raises(errors.VipExists):
        lab.plugin.update_vip(lab.me, vip["id"], {"pool_id": taken["id"]})
    assert lab.plugin.get_pool(lab.me, old["id"])["vip_id"] == vip["id"]
    assert lab.plugin.get_pool(lab.me, taken["id"])["vip_id"] == other["id"]


def test_a_vip_cannot_move_onto_a_pool_of_another_protocol(lab: Lab) -> None:
    vip, other = lab.vip(), lab.pool(protocol="TCP")
    with pytest.raises(errors.ProtocolMismatch):
        lab.plugin.update_vip(lab.me, vip["id"], {"pool_id": other["id"]})
    assert lab.plugin.get_vip(lab.me, vip["id"]) == vip


def test_a_deleted_vip_frees_its_pool_at_once_and_stays_until_its_device_has_let_go(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool)
    lab.plugin.delete_vip(lab.me, vip["id"])
    assert lab.plugin.get_pool(lab.me, pool["id"])["vip_id"] is None
    assert lab.plugin.get_vip(lab.me, vip["id"])["status"] == "PENDING_DELETE"
    assert (lab.used(), lab.count(addresses)) == (1, 1)
    assert lab.caster.casts[-1] == [vip["id"]]
    assert lab.confirm(vip["id"], removed=True) == [vip["id"]]
    with pytest.raises(errors.VipNotFound):
        lab.plugin.get_vip(lab.me, vip["id"])
    assert (lab.used(), *(lab.count(table) for table in (addresses, placements, deployments, vips))) == (0, 0, 0, 0, 0)


def test_a_freed_pool_and_address_may_be_used_again_at_once(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.active_vip(pool, address="10.0.0.50")
    lab.plugin.delete_vip(lab.me, vip["id"])
    again = lab.vip(pool)
    lab.confirm(vip["id"], removed=True)
    assert lab.plugin.get_pool(lab.me, pool["id"])["vip_id"] == again["id"]
    assert lab.vip(address="10.0.0.50")["address"] == "10.0.0.50"


@pytest.mark.parametrize("state", ["PENDING_CREATE", "ACTIVE", "PENDING_UPDATE", "ERROR", "PENDING_DELETE"])
def test_delete_is_accepted_in_every_state(lab: Lab, state: str) -> None:
    vip = lab.vip()
    if state == "ERROR":
        lab.confirm(vip["id"], error="broken")
    elif state != "PENDING_CREATE":
        lab.confirm(vip["id"])
    if state == "PENDING_UPDATE":
        lab.plugin.update_vip(lab.me, vip["id"], {"name": "x"})
    if state == "PENDING_DELETE":
        lab.plugin.delete_vip(lab.me, vip["id"])
    assert lab.plugin.get_vip(lab.me, vip["id"])["status"] == state
    lab.plugin.delete_vip(lab.me, vip["id"])
    assert lab.plugin.get_vip(lab.me, vip["id"])["status"] == "PENDING_DELETE"
    lab.confirm(vip["id"], removed=True)
    assert (lab.count(vips), lab.used()) == (0, 0)


def test_a_vip_that_is_being_deleted_cannot_be_changed(lab: Lab) -> None:
    vip = lab.active_vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    with pytest.raises(errors.StateInvalid, match="PENDING_DELETE"):
        lab.plugin.update_vip(lab.me, vip["id"], {"name": "x"})


def test_a_vip_whose_overdue_removal_was_reported_as_an_error_can_still_not_be_changed(lab: Lab) -> None:
    vip = lab.active_vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    lab.confirm(vip["id"], error="no agent")
    shown = lab.plugin.get_vip(lab.me, vip["id"])
    assert (shown["status"], shown["status_description"]) == ("PENDING_DELETE", "no agent")
    with pytest.raises(errors.StateInvalid):
        lab.plugin.update_vip(lab.me, vip["id"], {"name": "x"})


@pytest.mark.parametrize("state", ["PENDING_CREATE", "PENDING_UPDATE", "ERROR"])
def test_updates_are_accepted_while_something_is_pending_or_failed(lab: Lab, state: str) -> None:
    vip = lab.vip()
    if state != "PENDING_CREATE":
        lab.confirm(vip["id"], error="broken" if state == "ERROR" else None)
    if state == "PENDING_UPDATE":
        lab.plugin.update_vip(lab.me, vip["id"], {"name": "x"})
    changed = lab.plugin.update_vip(lab.me, vip["id"], {"name": "y"})
    assert (changed["status"], changed["status_description"], changed["name"]) == ("PENDING_UPDATE", None, "y")


def test_a_vip_that_no_device_can_take_is_not_stored_and_the_tenant_gets_a_summary_only(lab: Lab) -> None:
    lab.fill()
    pool = lab.pool()
    with pytest.raises(errors.NoValidDevice) as caught:
        lab.vip(pool)
    assert caught.value.message == (
        "No device can take it: none that suits it has room now; try again later, or ask your operator."
    )
    assert "trail" not in caught.value.kwargs
    assert DEVICE not in caught.value.kwargs.values()
    assert (lab.count(vips), lab.count(addresses)) == (0, 0)
    assert lab.plugin.get_pool(lab.me, pool["id"])["vip_id"] is None

    lab.me = admin()
    with pytest.raises(errors.NoValidDevice) as caught:
        lab.vip(pool, tenant_id="tenant")
    assert [each["device_name"] for each in caught.value.kwargs["trail"]["rejections"]] == [DEVICE]
    assert caught.value.message == f"No device can take it: 1 × capacity.VIPS. {DEVICE}: has no room for 1 VIPS"


def test_a_vip_gets_the_service_type_that_it_names_else_its_pools_else_the_default(lab: Lab) -> None:
    gold, silver = lab.add_service_type("gold"), lab.add_service_type("silver")
    pool = lab.pool(provider="GOLD")
    assert pool["provider"] == "gold"
    assert lab.vip(pool)["service_type_id"] == gold
    assert lab.vip(lab.pool(provider="gold"), service_type_id="silver")["service_type_id"] == silver
    assert lab.vip(service_type_id=silver)["service_type_id"] == silver
    assert lab.vip()["service_type_id"] == lab.default_service_type_id


def test_a_disabled_default_is_refused(lab: Lab) -> None:
    lab.database.write(lambda conn: conn.execute(sa.update(service_types).values(enabled=False)))
    pool = lab.pool()
    with pytest.raises(errors.ServiceProviderNotFound):
        lab.vip(pool)


def test_names_come_back_unchanged(lab: Lab) -> None:
    name = "a \"quoted\"\n'name' \\ with; 负载均衡器 # \t${x}"
    vip = lab.vip(name=name, description=name)
    shown = lab.plugin.get_vip(lab.me, vip["id"])
    assert (shown["name"], shown["description"]) == (name, name)
    assert [each["id"] for each in lab.plugin.get_vips(lab.me, filters={"name": [name]})] == [vip["id"]]


def test_an_empty_put_changes_nothing(lab: Lab) -> None:
    vip = lab.active_vip()
    before = lab.version(vip["id"])
    assert lab.plugin.update_vip(lab.me, vip["id"], {}) == vip
    assert lab.version(vip["id"]) == before


def test_a_vip_of_ipv6_is_stored_in_canonical_form(lab: Lab) -> None:
    subnet = lab.networks.create_subnet(lab.me, {"network_id": lab.network["id"], "cidr": "2001:db8::/64"})
    vip = lab.vip(subnet_id=subnet["id"], address="2001:DB8:0::00AB")
    assert vip["address"] == "2001:db8::ab"
    with pytest.raises(errors.IpAddressInUse):
        lab.vip(subnet_id=subnet["id"], address="2001:db8::ab")
    assert [each["id"] for each in lab.plugin.get_vips(lab.me, filters={"address": "2001:DB8::AB"})] == [vip["id"]]
    assert lab.document(vip["id"]).subnet_cidr == "2001:db8::/64"
