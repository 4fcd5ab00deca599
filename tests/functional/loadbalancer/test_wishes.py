"""Where a VIP goes: by its service type, by placement rules, by an administrator's word; and where it would go."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from oslo_context.context import RequestContext

from lbaas_scheduler.db import placements
from lbaas_scheduler.db.models import device_load, vips
from lbaas_scheduler.domain import traits
from lbaas_scheduler.errors import (
    Conflict,
    DeviceNotFound,
    InvalidRequest,
    NotAuthorized,
    NoValidDevice,
    PlacementRuleNotFound,
    PoolNotFound,
    ProtocolMismatch,
    ServiceProviderNotFound,
    SubnetNotFound,
)
from tests.factories import add_devices, new_device
from tests.functional.loadbalancer.lab import TENANT, Lab, admin

Body = dict[str, Any]


def place(lab: Lab, context: RequestContext | None = None, **attributes: Any) -> placements.Placement:
    pool = lab.pool(protocol=attributes.get("protocol", "HTTP"))
    body = {"subnet_id": lab.subnet["id"], "protocol": pool["protocol"], "protocol_port": 80, "pool_id": pool["id"]}
    owner = {"tenant_id": TENANT} if context else {}
    made = lab.plugin.create_vip(context or lab.me, {**body, **owner, **attributes})
    found = lab.database.read(lambda conn: placements.get(conn, made["id"]))
    assert found is not None
    return found


def rule(lab: Lab, name: str, match: Body | None = None, **rest: Any) -> Body:
    wishes = rest.pop("wishes", {"zone": "z"})
    return lab.rules.create({"name": name, "match": match, "wishes": wishes, **rest})


def furnish(lab: Lab) -> None:
    """Beside the device without a zone: one in zone z, one that has a trait of a vendor's."""
    lab.add_device("zoned", zone="z")
    add_devices(lab.database, new_device("special", vips=1000, traits=traits.STANDARD | {"CUSTOM_WAF"}))


def test_a_rule_sends_what_it_matches_to_the_zone_and_is_named_in_the_trail(any_lab: Lab) -> None:
    furnish(any_lab)
    rule(any_lab, "web", {"protocol": "HTTP", "protocol_port": ["80", "8000-8999"]})
    placed = place(any_lab, protocol_port=8500)
    assert (placed.device_id, placed.trail["rule"]) == ("zoned", "web")
    rest = {place(any_lab, protocol="TCP", protocol_port=8500).trail["rule"], place(any_lab, protocol_port=9000).trail["rule"]}
    assert rest == {""}


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ({}, True),
        ({"tenant_id": TENANT}, True),
        ({"tenant_id": ["a", "b"]}, False),
        ({"network_id": "THE"}, True),
        ({"network_id": "other"}, False),
        ({"subnet_id": ["THE", "other"]}, True),
        ({"subnet_id": "other"}, False),
        ({"name": "prod-*"}, True),
        ({"name": ["test-*", "*-[0-9]"]}, True),
        ({"name": "PROD-*"}, False),
        ({"protocol_port": 80}, True),
        ({"protocol_port": "81-90"}, False),
        ({"protocol": ["TCP", "HTTP"], "name": "prod-?"}, True),
        ({"protocol": "HTTP", "name": "test-?"}, False),
    ],
    ids=str,
)
def test_every_condition_must_hold_and_one_value_of_it(lab: Lab, match: Body, matches: bool) -> None:
    furnish(lab)
    known = {"network_id": lab.network["id"], "subnet_id": lab.subnet["id"]}

    def real(key: str, value: Any) -> Any:
        return [known[key] if it == "THE" else it for it in value] if isinstance(value, list) else real(key, [value])[0]

    rule(lab, "it", {key: real(key, value) for key, value in match.items()})
    assert place(lab, name="prod-1").trail["rule"] == ("it" if matches else "")


def test_the_first_enabled_rule_wins_by_position(lab: Lab) -> None:
    furnish(lab)
    rule(lab, "last", wishes={"required": ["CUSTOM_WAF"]})
    assert place(lab).device_id == "special"
    rule(lab, "first", position=0)
    assert place(lab).device_id == "zoned"
    [first] = lab.rules.list({"name": ["first"]})
    lab.rules.update(first["id"], {"enabled": False})
    assert place(lab).device_id == "special"
    assert [it["name"] for it in lab.rules.list()] == ["first", "last"]


def test_a_rule_adds_traits_to_those_of_the_service_type_and_overrides_the_rest(lab: Lab) -> None:
    furnish(lab)
    both = new_device("both", vips=1000, traits=traits.STANDARD | {"CUSTOM_WAF", "CUSTOM_SSD"}, zone="z")
    add_devices(lab.database, both)
    lab.add_service_type("gold", options={"required": ["CUSTOM_SSD"], "zone": "elsewhere", "algorithm": "least_loaded"})
    rule(lab, "waf", wishes={"required": ["CUSTOM_WAF"], "zone": "z", "algorithm": "most_loaded"})
    placed = place(lab, service_type_id="gold")
    assert (placed.device_id, placed.trail["algorithm"]) == ("both", "most_loaded")


def test_a_service_type_names_its_algorithm(lab: Lab) -> None:
    lab.add_service_type("packed", options={"algorithm": "most_loaded", "options": {"strict": True}})
    assert place(lab, service_type_id="packed").trail["algorithm"] == "most_loaded"
    assert place(lab).trail["algorithm"] == "least_loaded"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"algorithm": "magic"}, r"options\.algorithm: unknown algorithm 'magic'; loaded: least_loaded, most_loaded\."),
        ({"required": ["FAST"]}, r"options\.required: 'FAST' is no trait; known are ADDRESS_IPV4, .*start with CUSTOM_"),
        ({"tenancy": "mine"}, r"options\.tenancy must be one of private_first, private_only, shared_only, dedicated"),
        ({"form": "liquid"}, r"options\.form must be one of"),
        ({"required": ["CUSTOM_A"], "forbidden": ["CUSTOM_A"]}, "CUSTOM_A is required and forbidden at once"),
        ({"options": {"strict": "yes"}}, r"options\.options\.strict must be true or false"),
        ({"options": {"least_loaded_by": "luck"}}, r"options\.options\.least_loaded_by must be one of placed, reported, both\."),
        ({"options": {"weighers": {"luck": 1}}}, r"options\.options\.weighers: unknown weigher 'luck'; known: "),
        ({"colour": "red"}, "unknown attribute 'colour'; known are algorithm, "),
    ],
)
def test_a_wrong_wish_is_refused_when_it_is_written(lab: Lab, options: Body, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        lab.add_service_type("wrong", options=options)
    with pytest.raises(InvalidRequest, match=said):
        lab.service_types.update(lab.default_service_type_id, {"options": options})
    with pytest.raises(InvalidRequest, match=said.replace(r"options\.", r"wishes\.", 1)):
        rule(lab, "wrong", wishes=options)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({}, "name is missing"),
        ({"name": "x"}, "wishes is missing"),
        ({"name": "x", "wishes": {}}, "wishes must ask for something: tenancy, form"),
        ({"name": "x", "wishes": {"zone": "z"}, "service": "Laundry"}, "unknown service 'Laundry'; loaded: LoadBalancer"),
        (
            {"name": "x", "wishes": {"zone": "z"}, "match": {"protocol_port": "90-80"}},
            "must be a port from 1 to 65535 or a range",
        ),
        ({"name": "x", "wishes": {"zone": "z"}, "match": {"protocol_port": 0}}, "must be a port from 1 to 65535 or a range"),
        *(
            ({"name": "x", "wishes": {"zone": "z"}, "match": {"tenant_id": wrong}}, "match.tenant_id must be a tenant's id")
            for wrong in ([], "a b", ["a\n"])
        ),
        ({"name": "x", "wishes": {"zone": "z"}, "match": {"colour": "red"}}, "unknown attribute 'colour'; known are name, "),
        ({"name": "x", "wishes": {"zone": "z"}, "position": -1}, "position must be an integer from 0"),
        ("rule", "placement_rule must be an object"),
    ],
)
def test_a_wrong_rule_is_refused_when_it_is_written(lab: Lab, attributes: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        lab.rules.create(attributes)
    assert lab.rules.list() == []


def test_rules_are_written_read_changed_and_removed(any_lab: Lab) -> None:
    rules = any_lab.rules
    made = rules.create({"name": "one", "match": {"name": "a*"}, "wishes": {"preferred": ["CUSTOM_A"]}})
    assert made == {
        "id": made["id"],
        "name": "one",
        "service": "LoadBalancer",
        "position": 1,
        "description": "",
        "enabled": True,
        "match": {"name": "a*"},
        "wishes": {"preferred": ["CUSTOM_A"]},
    }
    with pytest.raises(Conflict, match="a placement rule named 'one' already"):
        rule(any_lab, "one")
    assert rule(any_lab, "two")["position"] == 2
    changed = rules.update(made["id"], {"name": "uno", "match": None, "position": 7})
    assert (changed["name"], changed["match"], changed["position"]) == ("uno", {}, 7)
    assert rules.update(made["id"], {}) == changed
    with pytest.raises(Conflict, match="'two' already"):
        rules.update(made["id"], {"name": "two"})
    with pytest.raises(InvalidRequest, match="service of a placement rule cannot be changed"):
        rules.update(made["id"], {"service": "LoadBalancer"})
    assert [it["name"] for it in rules.list({"enabled": [True]})] == ["two", "uno"]
    with pytest.raises(InvalidRequest, match="Unknown filter 'match'; known are id, name, service, enabled"):
        rules.list({"match": ["x"]})
    rules.delete(made["id"])
    for missing in (lambda: rules.get(made["id"]), lambda: rules.delete(made["id"]), lambda: rules.update(made["id"], {})):
        with pytest.raises(PlacementRuleNotFound):
            missing()


def test_an_administrator_names_the_device_and_nobody_else_does(any_lab: Lab) -> None:
    furnish(any_lab)
    assert {place(any_lab, admin(), device_id="zoned").device_id for _ in range(3)} == {"zoned"}
    for device_id in ("zoned", "absent"):
        with pytest.raises(NotAuthorized, match="only administrators choose the device of a VIP"):
            place(any_lab, device_id=device_id)
    for device_id in ("absent", "ä", "x" * 50):
        with pytest.raises(DeviceNotFound):
            place(any_lab, admin(), device_id=device_id)
    assert place(any_lab, device_id=None).trail["rule"] == ""


def test_a_named_device_that_cannot_is_refused_with_the_reason_and_nothing_stays(lab: Lab) -> None:
    lab.add_device("poor", without={"PROTOCOL_HTTP"})
    with pytest.raises(NoValidDevice) as error:
        place(lab, admin(), device_id="poor")
    assert error.value.details["trail"]["dropped"] == {"hint": 1, "trait.PROTOCOL_HTTP": 1}
    assert lab.database.read(lambda conn: conn.scalar(sa.select(sa.func.count()).select_from(vips))) == 0


def test_a_simulation_tells_administrators_where_vips_would_go(any_lab: Lab) -> None:
    any_lab.add_device("small", vips=2)
    any_lab.add_device("poor", without={"PROTOCOL_HTTPS"})
    before = _load(any_lab)
    said = any_lab.plugin.simulate(admin(), {"protocol": "HTTPS", "monitors": ["TCP"], "device_id": "small"}, 5)
    assert (said["wanted"], said["placed"]) == (5, 2)
    [share] = said["devices"]
    assert (share["device_id"], share["count"], share["load_after"]) == ("small", 2, 10_000)
    assert said["fills_first"] == {"device_id": "small", "device_name": "small", "limited_by": "VIPS", "after": 2}
    assert said["summary"].startswith("2 of 5 would find a device; then: 1 × capacity.VIPS, 1 × hint, 1 × trait.PROTOCOL_HTTPS.")
    assert said["summary"].endswith("small would fill up first, after 2, for want of VIPS.")
    assert _load(any_lab) == before
    assert any_lab.caster.casts == []


def test_a_change_of_one_condition_or_wish_of_a_rule_leaves_the_others(any_lab: Lab) -> None:
    rules = any_lab.rules
    match, wishes = {"name": "a*", "protocol": "TCP"}, {"zone": "north", "required": ["CUSTOM_A"]}
    made = rules.create({"name": "one", "match": match, "wishes": wishes})
    changed = rules.update(made["id"], {"match": {"protocol": None, "protocol_port": 80}, "wishes": {"zone": "south"}})
    assert (changed["match"], changed["wishes"]) == (
        {"name": "a*", "protocol_port": 80},
        {"zone": "south", "required": ["CUSTOM_A"]},
    )
    with pytest.raises(InvalidRequest, match="CUSTOM_A is required and forbidden at once"):
        rules.update(made["id"], {"wishes": {"forbidden": ["CUSTOM_A"]}})
    with pytest.raises(InvalidRequest, match="wishes must ask for something"):
        rules.update(made["id"], {"wishes": {"zone": None, "required": None}})
    assert rules.get(made["id"]) == changed


def test_a_simulation_goes_by_pool_subnet_service_type_and_rules(lab: Lab) -> None:
    furnish(lab)
    lab.add_device("old", without={"ADDRESS_IPV6"})
    rule(lab, "zoned", {"subnet_id": lab.subnet["id"], "name": "prod-*"})
    pool = lab.pool(protocol="TCP")
    body = {"pool_id": pool["id"], "subnet_id": lab.subnet["id"], "name": "prod-1"}
    said = lab.plugin.simulate(admin(), body)
    assert ([it["device_id"] for it in said["devices"]], said["trail"]["rule"]) == (["zoned"], "zoned")
    assert said["summary"] == "All 1 would find a device, on 1 device(s)."
    said = lab.plugin.simulate(admin(), {"address": "2001:db8::1"}, 100)
    assert sum(it["count"] for it in said["devices"]) == 100
    assert "old" not in {it["device_id"] for it in said["devices"]}


@pytest.mark.parametrize(
    ("body", "count", "error"),
    [
        ({"colour": "red"}, 1, InvalidRequest),
        ({"protocol": "UDP"}, 1, InvalidRequest),
        ({}, 0, InvalidRequest),
        ({}, 1001, InvalidRequest),
        ("vip", 1, InvalidRequest),
        ({"monitors": ["UDP"]}, 1, InvalidRequest),
        ({"session_persistence": {"type": "HTTP_COOKIE"}, "protocol": "TCP"}, 1, InvalidRequest),
        ({"pool_id": "00000000-0000-0000-0000-000000000000"}, 1, PoolNotFound),
        ({"subnet_id": "00000000-0000-0000-0000-000000000000"}, 1, SubnetNotFound),
        ({"service_type_id": "absent"}, 1, ServiceProviderNotFound),
        ({"device_id": "absent"}, 1, DeviceNotFound),
    ],
)
def test_a_simulation_of_nonsense_is_refused(lab: Lab, body: Any, count: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        lab.plugin.simulate(admin(), body, count)


def test_only_administrators_simulate(lab: Lab) -> None:
    with pytest.raises(NotAuthorized, match="only administrators see where VIPs would go"):
        lab.plugin.simulate(lab.me, {})


def test_a_simulated_vip_speaks_its_pools_protocol(lab: Lab) -> None:
    pool = lab.pool(protocol="TCP")
    with pytest.raises(ProtocolMismatch):
        lab.plugin.simulate(admin(), {"pool_id": pool["id"], "protocol": "HTTP"})
    with pytest.raises(InvalidRequest, match="has its own monitors"):
        lab.plugin.simulate(admin(), {"pool_id": pool["id"], "monitors": ["TCP"]})


def _load(lab: Lab) -> list[Any]:
    return lab.database.read(lambda conn: sorted(map(tuple, conn.execute(sa.select(device_load)))))


def test_a_service_type_says_what_becomes_of_a_clients_word_on_where_it_comes_from(any_lab: Lab) -> None:
    lab = any_lab
    careful, proxied = lab.active_vip(), lab.add_service_type("behind-a-proxy", options={"forwarded_for": "append"})
    trusting = lab.active_vip(service_type_id=proxied)
    assert lab.document(careful["id"]).forwarded_for == "replace"
    assert lab.document(trusting["id"]).forwarded_for == "append"


def test_another_word_of_the_service_type_reaches_the_vips_that_are_there(any_lab: Lab) -> None:
    lab = any_lab
    other, service_type = lab.active_vip(), lab.add_service_type("web")
    vip = lab.active_vip(service_type_id=service_type)
    before = lab.version(vip["id"]), lab.version(other["id"])
    lab.service_types.update(service_type, {"options": {"forwarded_for": "append"}})
    assert lab.document(vip["id"]).forwarded_for == "append"
    row = lab.deployment(vip["id"])
    assert row is not None
    assert row.due_at is not None
    assert (lab.version(vip["id"]) > before[0], lab.version(other["id"]) == before[1]) == (True, True)
    lab.confirm(vip["id"])
    lab.service_types.update(service_type, {"description": "something else"})
    assert lab.version(vip["id"]) == row.version


def test_another_word_than_replace_and_append_is_refused(lab: Lab) -> None:
    with pytest.raises(InvalidRequest, match="'replace'"):
        lab.add_service_type("odd", options={"forwarded_for": "drop"})
