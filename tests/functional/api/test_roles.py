"""Every route for every role, and tenants that do not see each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from lbaas_scheduler.api.routes import ROUTES
from tests.functional.api.house import ADMIN, ANNE, BERT, READER, House

NOBODY_ROLE = {"X-Project-Id": "anne", "X-User-Id": "guest", "X-Roles": "guest"}
FOREIGN_READER = {"X-Project-Id": "bert", "X-User-Id": "auditor", "X-Roles": "reader"}

WHO: Mapping[str, Mapping[str, str]] = {
    "admin": ADMIN,
    "owner": ANNE,
    "reader": READER,
    "foreign member": BERT,
    "foreign reader": FOREIGN_READER,
    "no role": NOBODY_ROLE,
}


@dataclass(frozen=True)
class Case:
    """A route, a body that is right, and what each role is answered. ``body``: the attributes, or "new": those of one more."""

    path: str
    method: str
    answers: Mapping[str, int]
    body: Any = None


def _all(ok: int) -> dict[str, int]:
    return dict.fromkeys(WHO, ok)


def _tenants(read: int, foreign: int = 404) -> dict[str, int]:
    """Whoever may read reads his own."""
    return {
        "admin": read,
        "owner": read,
        "reader": read,
        "foreign member": foreign,
        "foreign reader": foreign,
        "no role": 403,
    }


def _members(ok: int, foreign: int = 404) -> dict[str, int]:
    """Members change what is their own."""
    return {**_tenants(ok, foreign), "reader": 403, "foreign reader": 403}


def _admins(ok: int) -> dict[str, int]:
    return {**dict.fromkeys(WHO, 403), "admin": ok}


def _everybody_reads(ok: int) -> dict[str, int]:
    return {**_all(ok), "no role": 403}


def cases() -> list[Case]:
    found = []
    for collection, name, changes in (
        ("lb/vips", "vip", {"name": "x"}),
        ("lb/pools", "pool", {"name": "x"}),
        ("lb/members", "member", {"weight": 3}),
        ("lb/health_monitors", "health_monitor", {"delay": 9}),
        ("networks", "network", {"name": "x"}),
        ("subnets", "subnet", {"name": "x"}),
    ):
        path = f"/v2.0/{collection}"
        lists = {**_all(200), "no role": 403}
        found += [
            Case(path, "GET", lists),
            Case(
                path, "POST", {**_members(201, foreign=404), **({"foreign member": 201} if name in FREE else {})}, {name: "new"}
            ),
            Case(f"{path}/{{id}}", "GET", _tenants(200)),
            Case(f"{path}/{{id}}", "PUT", _members(200), {name: changes}),
            Case(f"{path}/{{id}}", "DELETE", _members(204)),
        ]
    return [
        *found,
        *(Case(path, "GET", _all(200)) for path in PUBLIC),
        Case("/v2.0/extensions/{id}", "GET", _all(200)),
        Case("/v2.0/lb/vips/{id}/placement", "GET", _admins(200)),
        Case("/v2.0/lb/pools/{id}/stats", "GET", _tenants(200)),
        Case("/v2.0/lb/pools/{id}/loadbalancer-agent", "GET", _admins(200)),
        Case("/v2.0/lb/pools/{id}/health_monitors", "POST", _members(201), {"health_monitor": "another"}),
        Case("/v2.0/lb/pools/{id}/health_monitors/{monitor_id}", "GET", _tenants(200)),
        Case("/v2.0/lb/pools/{id}/health_monitors/{monitor_id}", "DELETE", _members(204)),
        Case("/v2.0/ports", "GET", {**_all(200), "no role": 403}),
        Case("/v2.0/ports/{id}", "GET", _tenants(200)),
        Case("/v2.0/ports/{id}", "DELETE", _members(409)),
        Case("/v2.0/service-types", "GET", _everybody_reads(200)),
        Case("/v2.0/service-types", "POST", _admins(201), {"service_type": "new"}),
        Case("/v2.0/service-types/{id}", "GET", _everybody_reads(200)),
        Case("/v2.0/service-types/{id}", "PUT", _admins(200), {"service_type": {"description": "x"}}),
        Case("/v2.0/service-types/{id}", "DELETE", _admins(204)),
        Case("/v2.0/service-providers", "GET", _everybody_reads(200)),
        Case("/v2.0/agents", "GET", _admins(200)),
        Case("/v2.0/agents/{id}", "GET", _admins(200)),
        Case("/v2.0/agents/{id}", "PUT", _admins(200), {"agent": {"description": "x"}}),
        Case("/v2.0/agents/{id}", "DELETE", _admins(409)),
        Case("/v2.0/agents/{id}/loadbalancer-pools", "GET", _admins(200)),
        Case("/v2.0/quotas", "GET", _admins(200)),
        Case("/v2.0/quotas/tenant", "GET", _everybody_reads(200)),
        Case("/v2.0/quotas/{id}", "GET", _tenants(200, foreign=403)),
        Case("/v2.0/quotas/{id}", "PUT", _admins(200), {"quota": {"vip": 3}}),
        Case("/v2.0/quotas/{id}", "DELETE", _admins(204)),
        Case("/v2.0/quotas/{id}/default", "GET", _tenants(200, foreign=403)),
        Case("/v2.0/devices", "GET", {**_all(200), "no role": 403}),
        Case("/v2.0/devices", "POST", _members(201, foreign=201), {"device": "new"}),
        Case("/v2.0/devices/{id}", "GET", _tenants(200)),
        Case("/v2.0/devices/{id}", "PUT", _members(200), {"device": {"name": "x"}}),
        Case("/v2.0/devices/{id}", "DELETE", _members(204)),
        Case("/v2.0/devices/{id}/vips", "GET", _tenants(200)),
        Case("/v2.0/devices/{id}/evacuate", "POST", _admins(202)),
        Case("/v2.0/devices/{id}/evacuation", "GET", _admins(404)),
        Case("/v2.0/devices/{id}/evacuation", "DELETE", _admins(404)),
        Case("/v2.0/devices/{id}/health", "GET", _admins(200)),
        Case("/v2.0/devices/{id}/check", "POST", _admins(200)),
        Case("/v2.0/devices/{id}/write-off", "POST", _admins(409), {"write_off": {}}),
        Case("/v2.0/lb/vips/{id}/move", "POST", _admins(202), {"move": "new"}),
        Case("/v2.0/lb/vips/{id}/reset-status", "POST", _admins(409)),
        Case("/v2.0/lb/vips/{id}/explain", "GET", _admins(200)),
        Case("/v2.0/moves", "GET", _admins(200)),
        Case("/v2.0/moves/{id}", "GET", _admins(404)),
        Case("/v2.0/breaker", "GET", _admins(200)),
        Case("/v2.0/breaker/reset", "POST", _admins(200)),
        Case("/v2.0/placement-rules", "GET", _admins(200)),
        Case("/v2.0/placement-rules", "POST", _admins(201), {"placement_rule": "new"}),
        Case("/v2.0/placement-rules/{id}", "GET", _admins(200)),
        Case("/v2.0/placement-rules/{id}", "PUT", _admins(200), {"placement_rule": {"description": "x"}}),
        Case("/v2.0/placement-rules/{id}", "DELETE", _admins(204)),
        Case("/v2.0/placements/simulate", "POST", _admins(200), {"simulation": {"vip": {"protocol": "HTTP"}, "count": 2}}),
        Case("/v2.0/placements/rebalance", "GET", _admins(200)),
        Case("/v2.0/placements/rebalance", "POST", _admins(202), {"rebalance": {}}),
        Case("/v2.0/fleet-overview", "GET", _admins(200)),
        *_resource_cases(),
        Case("/fleet", "GET", _admins(200)),
    ]


def _resource_cases() -> list[Case]:
    pools, owner = "/v2.0/resources", {"type": "network", "id": "n"}
    pool = f"{pools}/{{kind}}/{{name}}"
    many = {"requests": [{"kind": "vlan", "pool": "p", "scope": "tenant:anne", "owner": owner}]}
    return [
        Case(pools, "GET", _everybody_reads(200)),
        Case(pools, "POST", _admins(201), {"resource": "new"}),
        Case(pool, "GET", _tenants(200)),
        Case(pool, "PUT", _admins(200), {"resource": {"config": {"ranges": "1-99"}}}),
        Case(pool, "DELETE", _admins(409)),
        Case(f"{pool}/usage", "GET", _tenants(200)),
        Case(f"{pool}/history", "GET", _admins(200)),
        Case(f"{pool}/release", "POST", _admins(200), {"release": {"value": 7, "owner": owner}}),
        Case(f"{pool}/allocations", "GET", _tenants(200)),
        Case(f"{pool}/allocations", "POST", _admins(201), {"allocation": {"owner": owner, "slot": "more"}}),
        Case(f"{pool}/allocations/{{id}}", "GET", _tenants(200)),
        Case(f"{pool}/allocations/{{id}}", "PUT", _admins(200), {"allocation": {"status": "active"}}),
        Case(f"{pool}/allocations/{{id}}", "DELETE", _admins(200)),
        Case(f"{pools}/allocations", "GET", _admins(200)),
        Case(f"{pools}/allocations", "POST", _admins(201), {"allocations": many}),
        Case(f"{pools}/allocations", "DELETE", _admins(200)),
        Case(f"{pools}/history", "GET", _admins(200)),
        Case(f"{pools}/check", "GET", _admins(200)),
        Case(f"{pools}/keys", "GET", _admins(200)),
        Case(f"{pools}/reconcile", "POST", _admins(200), {"reconcile": {}}),
    ]


RULES = "/v2.0/placement-rules"

FREE = ("pool", "health_monitor", "network")
"""What needs nothing of anybody else's: a foreign member creates his own."""

PUBLIC = ("/", "/v2.0", "/v2.0/extensions", "/openapi.json", "/healthcheck", "/healthcheck/live", "/metrics")


class Site:
    """One object of every kind, all Anne's but what is the operator's."""

    def __init__(self, house: House) -> None:
        self.house = house
        house.conf.set_override("tenant_device_types", ["fake"], "devices")
        house.conf.set_override("tenant_management_networks", ["192.0.2.0/24"], "devices")
        pool = house.pool()
        vip = house.vip(pool)
        monitor = house.monitor()
        house.associate(monitor, pool)
        network = house.create("/v2.0/networks", "network", {"name": "own"})
        house.put("/v2.0/quotas/anne", {"quota": {"vip": -1, "pool": -1}}, ADMIN)
        self.pool, self.monitor, self.network = pool, monitor, network
        self._numbers = iter(range(2, 250))
        self.ids = {
            "/v2.0/lb/vips": vip["id"],
            "/v2.0/lb/pools": pool["id"],
            "/v2.0/lb/members": house.member(pool)["id"],
            "/v2.0/lb/health_monitors": house.monitor()["id"],
            "/v2.0/networks": house.create("/v2.0/networks", "network", {"name": "empty"})["id"],
            "/v2.0/subnets": house.create("/v2.0/subnets", "subnet", self.new("subnet"))["id"],
            "/v2.0/ports": vip["port_id"],
            "/v2.0/service-types": house.create("/v2.0/service-types", "service_type", self.new("service_type"), ADMIN)["id"],
            "/v2.0/placement-rules": house.create(RULES, "placement_rule", self.new("placement_rule"), ADMIN)["id"],
            "/v2.0/moves": vip["id"],
            "/v2.0/agents": house.get("/v2.0/agents", ADMIN).json["agents"][0]["id"],
            "/v2.0/quotas": "anne",
            "/v2.0/devices": house.create("/v2.0/devices", "device", self.new("device"))["id"],
            "/v2.0/extensions": "lbaas",
        }

    def path(self, case: Case) -> str:
        prefix = case.path.partition("/{id}")[0]
        if prefix.startswith("/v2.0/resources/"):
            return self.resource(case.path)
        path = case.path.replace("{id}", self.ids.get(prefix, ""))
        if case.method == "DELETE" and case.path == "/v2.0/lb/pools/{id}":
            path = f"{prefix}/{self.house.pool()['id']}"
        return path.replace("{monitor_id}", self.monitor["id"])

    def resource(self, path: str) -> str:
        """A path of a pool of VLANs that is Anne's, or of its VLAN 7."""
        pool = {"kind": "vlan", "name": "p", "scope": "tenant:anne", "config": {"ranges": "1-99"}}
        self.house.create("/v2.0/resources", "resource", pool, ADMIN)
        body, query = {"owner": {"type": "network", "id": "n"}, "value": 7}, "scope=tenant:anne"
        taken = self.house.create(f"/v2.0/resources/vlan/p/allocations?{query}", "allocation", body, ADMIN)
        path = path.replace("{kind}", "vlan").replace("{name}", "p").replace("{id}", taken["id"])
        if path == "/v2.0/resources/allocations":
            query = "owner_type=network&owner_id=n"
        return f"{path}?{query}" if "/p" in path or "allocations" in path else path

    def body(self, case: Case) -> Any:
        if case.body is None:
            return None
        ((name, value),) = case.body.items()
        if value == "another":
            return {name: {"id": self.house.monitor(type="TCP")["id"]}}
        return {name: self.new(name) if value == "new" else value}

    def new(self, name: str) -> dict[str, Any]:
        """The attributes of one more, as Anne would send them."""
        number, house = next(self._numbers), self.house
        pooled = {"protocol": "HTTP", "lb_method": "ROUND_ROBIN", "subnet_id": house.subnet["id"]}
        return {
            "vip": lambda: house.vip_body(house.pool()),
            "pool": lambda: pooled,
            "member": lambda: {"pool_id": self.pool["id"], "address": f"10.1.0.{number}", "protocol_port": 80},
            "health_monitor": lambda: {"type": "TCP", "delay": 2, "timeout": 1, "max_retries": 1},
            "network": lambda: {"name": "new"},
            "subnet": lambda: {"network_id": self.network["id"], "cidr": f"10.9.{number}.0/24"},
            "service_type": lambda: {"name": f"type-{number}-{self.pool['id']}"},
            "device": lambda: {
                "device_type": "fake",
                "name": f"device-{number}",
                "management": {"address": f"192.0.2.{number}"},
            },
            "resource": lambda: {"kind": "vlan", "name": f"pool-{number}", "config": {"physical_network": f"site-{number}"}},
            "placement_rule": lambda: {"name": f"rule-{number}-{self.pool['id']}", "wishes": {"zone": "a"}, "enabled": False},
            "move": lambda: {"device_id": house.create("/v2.0/devices", "device", self.new("device"), ADMIN)["id"]},
        }[name]()


CASES = cases()

COMMON = {
    "/v2.0/service-types": "what everybody may ask for",
    "/v2.0/service-providers": "what everybody may ask for",
    "/v2.0/quotas/tenant": "the caller's own project",
    "/v2.0/resources": "has no ids; see test_resources",
}
"""What every tenant is answered alike, or nothing foreign could be in."""

OWNED = [
    case.path
    for case in CASES
    if case.method == "GET"
    and case.answers["foreign member"] == 200
    and "{" not in case.path
    and case.path not in (*PUBLIC, *COMMON)
]
"""The lists in which each tenant finds what is its own. A new one is here by itself, and needs an object in :class:`Site`."""


def test_every_route_is_in_the_table_of_this_test() -> None:
    assert {(case.path, case.method) for case in CASES} == {
        (path, method) for path, methods in ROUTES.items() for method in methods
    }


ROLES = ("no role", "foreign reader", "foreign member", "reader", "owner", "admin")
"""Who changes or deletes comes last."""


@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in _resource_cases()], ids=lambda case: f"{case.method} {case.path}"
)
def test_each_role_is_answered_as_the_table_says(house: House, case: Case) -> None:
    site = Site(house)
    for role in ROLES:
        if case.method == "DELETE" and role == "admin" and case.answers["owner"] == 204:
            site = Site(house)  # the owner has deleted his
        answer = house.call(case.method, site.path(case), WHO[role], site.body(case))
        assert answer.status_code == case.answers[role], (role, answer.text)


def test_each_role_is_answered_as_the_table_says_of_resources(house: House) -> None:
    site = Site(house)
    # A pool and its value are made anew for each request, so one site serves them all.
    for case in _resource_cases():
        for role in ROLES:
            answer = house.call(case.method, site.path(case), WHO[role], site.body(case))
            assert answer.status_code == case.answers[role], (case.method, case.path, role, answer.text)


def test_a_caller_without_a_tenant_sees_nothing_and_creates_nothing(house: House) -> None:
    Site(house)
    nobody = {"X-User-Id": "x", "X-Roles": "member"}
    assert house.get("/v2.0/lb/vips", nobody).json == {"vips": []}
    body = {"pool": {"subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}}
    assert house.post("/v2.0/lb/pools", body, nobody).status_code == 400


@pytest.mark.parametrize("who", [BERT, FOREIGN_READER], ids=["member", "reader"])
def test_foreign_objects_are_in_no_list_whatever_the_filter(house: House, who: Mapping[str, str]) -> None:
    site = Site(house)
    for path in OWNED:
        collection = next(name for name in ROUTES[path]["GET"].gives["properties"] if not name.endswith("_links"))
        own = site.ids[path]
        for query in ("", f"?id={own}", "?tenant_id=anne", "?tenant_id=anne&tenant_id=bert"):
            answer = house.get(f"{path}{query}", who)
            assert answer.status_code == 200, (path, query)
            assert own not in [each["id"] for each in answer.json[collection]], (path, query)
        assert own in [each["id"] for each in house.get(path).json[collection]], path
        # Lists by id are read from after any id at all.
        after = house.get(f"{path}?marker={own}", who)
        assert own not in [each["id"] for each in after.json[collection]], path
        assert all(each.get("tenant_id") != "anne" or each.get("shared") for each in after.json[collection]), path
        by_name = house.get(f"{path}?sort_key=tenant_id&marker={own}", who)
        assert by_name.status_code == 404 or by_name.json == {"devices": []}, path


def test_foreign_objects_cannot_be_referred_to(house: House) -> None:
    site = Site(house)
    member = {"pool_id": site.pool["id"], "address": "10.1.0.99", "protocol_port": 80}
    assert house.post("/v2.0/lb/members", {"member": member}, BERT).status_code == 404
    assert house.post("/v2.0/lb/vips", {"vip": house.vip_body(site.pool)}, BERT).status_code == 404
    own = house.pool(BERT)
    for pool, monitor in ((own, site.monitor), (site.pool, house.monitor(BERT))):
        assert house.associate(monitor, pool, BERT).status_code == 404
    vip = house.vip(own, BERT)
    assert house.put(f"/v2.0/lb/vips/{vip['id']}", {"vip": {"pool_id": site.pool["id"]}}, BERT).status_code == 404
    moved = house.member(own, who=BERT)
    assert house.put(f"/v2.0/lb/members/{moved['id']}", {"member": {"pool_id": site.pool["id"]}}, BERT).status_code == 404
    subnet = {"network_id": site.network["id"], "cidr": "10.99.0.0/24"}
    assert house.post("/v2.0/subnets", {"subnet": subnet}, BERT).status_code == 404
    private = house.vip_body(house.pool(BERT), subnet_id=site.ids["/v2.0/subnets"])
    assert house.post("/v2.0/lb/vips", {"vip": private}, BERT).status_code == 404


@pytest.mark.parametrize("collection", ["vips", "pools", "members", "health_monitors"])
def test_a_member_creates_nothing_for_another_tenant(house: House, collection: str) -> None:
    site = Site(house)
    name = collection[:-1]
    body = {name: {**site.new(name), "tenant_id": "bert"}}
    answer = house.post(f"/v2.0/lb/{collection}", body)
    assert (answer.status_code, answer.json["NeutronError"]["type"]) == (400, "HTTPBadRequest")
