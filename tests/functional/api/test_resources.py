"""Pools of resources and their values, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from lbaas_scheduler.errors import StoreUnavailable
from tests.functional.api.house import ADMIN, ANNE, BERT, READER, House, error_of

POOLS = "/v2.0/resources"
VLAN = f"{POOLS}/vlan/v"
BLUE = {"type": "network", "id": "blue"}
RED = {"type": "network", "id": "red"}
LONG = "x" * 10_000

Body = dict[str, Any]


def define(house: House, kind: str = "vlan", name: str = "v", scope: str = "cluster", **config: Any) -> Body:
    return house.create(POOLS, "resource", {"kind": kind, "name": name, "scope": scope, "config": config}, ADMIN)


def take(house: House, pool: str = VLAN, owner: Body = BLUE, **asked: Any) -> Body:
    return house.create(f"{pool}/allocations", "allocation", {"owner": owner, **asked}, ADMIN)


def everything(house: House) -> Any:
    """All pools and all values, to tell that nothing changed."""
    return [
        house.get(path, ADMIN).json for path in (POOLS, f"{POOLS}/allocations?resting=true", f"{POOLS}/history", f"{POOLS}/check")
    ]


def test_a_pool_lives_its_life(own_any_house: House) -> None:
    house = own_any_house
    pool = define(house, ranges="100-199", pick="lowest", quarantine_seconds=600)
    assert (pool["state"], pool["generation"], pool["domain"]) == ("active", 1, "physnet:default/vlan")
    assert define(house, ranges="100-199", pick="lowest", quarantine_seconds=600)["id"] == pool["id"], "the same again is fine"
    assert house.get(VLAN, ADMIN).json["resource"] == pool

    first, zero = take(house, slot="a"), take(house, owner=RED, value=150)
    assert (first["value"], zero["value"], first["status"]) == (100, 150, "active")
    held = take(house, slot="b", ttl_seconds=60)
    assert take(house, slot="a") == {**first, "created": False}
    path = f"{VLAN}/allocations/{held['id']}"
    assert (held["status"], house.get(path, ADMIN).json["allocation"]["value"]) == ("held", 101)
    final = house.put(path, {"allocation": {"status": "active", "generation": held["generation"]}}, ADMIN).json["allocation"]
    assert (final["status"], final["generation"]) == ("active", 2)

    usage = house.get(f"{VLAN}/usage", ADMIN).json["usage"]
    assert (usage["total"], usage["used"], usage["held"], usage["allocated"]) == (100, 3, 0, "100-101, 150")
    assert house.delete(f"{path}?generation=2", ADMIN).json == {"released": 1}
    assert error_of(house.get(path, ADMIN)) == (404, "NotAllocated")
    assert house.get(f"{VLAN}/usage", ADMIN).json["usage"]["quarantined"] == 1
    body = {"release": {"value": 150, "owner": RED}}
    assert house.post(f"{VLAN}/release", body, ADMIN).json == {"released": 1}
    assert house.delete(f"{POOLS}/allocations?owner_type=network&owner_id=blue", ADMIN).json == {"released": 1}

    config = {"ranges": "100-300", "pick": "lowest"}
    assert house.put(VLAN, {"resource": {"config": config}}, ADMIN).json["resource"]["generation"] == 2
    assert house.get(f"{POOLS}/check", ADMIN).json == {"findings": []}
    assert house.delete(VLAN, ADMIN).json == {"removed": True}
    assert error_of(house.get(VLAN, ADMIN)) == (404, "NotDefined")
    events = house.get(f"{VLAN}/history?limit=1000", ADMIN).json["events"]
    assert [event["op"] for event in events][-2:] == ["allocate", "define"]
    assert {event["actor"] for event in events} == {"root"}
    assert [event["value"] for event in events if event["op"] == "commit"] == [101]


def test_a_tenant_is_named_here_as_everywhere(house: House) -> None:
    define(house, ranges="1-9")
    for wrong in ("a b", "a\n", "\x1b"):
        asked = {"owner": BLUE, "tenant_id": wrong}
        assert house.post(f"{VLAN}/allocations", {"allocation": asked}, ADMIN).status_code == 400
        many = [{"kind": "vlan", "pool": "v", **asked}]
        assert house.post(f"{POOLS}/allocations", {"allocations": {"requests": many}}, ADMIN).status_code == 400
    assert len({take(house, slot=it, tenant_id=it)["value"] for it in ("", "blue")}) == 2


def test_a_pool_in_use_is_drained_or_forced_or_stays(house: House) -> None:
    define(house, ranges="1-9")
    taken = take(house)
    assert error_of(house.delete(VLAN, ADMIN)) == (409, "PoolBusy")
    assert house.delete(f"{VLAN}?drain=true", ADMIN).json == {"removed": False}
    assert error_of(house.post(f"{VLAN}/allocations", {"allocation": {"owner": RED}}, ADMIN)) == (409, "PoolDraining")
    assert house.delete(f"{VLAN}/allocations/{taken['id']}", ADMIN).json == {"released": 1}
    report = house.post(f"{POOLS}/reconcile", {"reconcile": {}}, ADMIN).json["report"]
    assert (report["dry_run"], report["undefined"]) == (True, ["vlan v"])
    assert house.get(VLAN, ADMIN).status_code == 200
    assert house.post(f"{POOLS}/reconcile", {"reconcile": {"dry_run": False}}, ADMIN).json["report"]["undefined"] == ["vlan v"]
    assert house.get(VLAN, ADMIN).status_code == 404
    define(house, ranges="1-9")
    take(house)
    assert house.delete(f"{VLAN}?force=1", ADMIN).json == {"removed": True}


def test_a_load_balancer_gets_all_that_it_asks_for_at_once_or_nothing(own_any_house: House) -> None:
    house = own_any_house
    define(house, "vlan", "uplink", ranges="100-100")
    define(house, "subnet", "front", cidr="10.0.0.0/16", alloc_len=24)
    owner = {"type": "load_balancer", "id": "lb-1"}

    def wanted(of: Body) -> Body:
        slot = {"kind": "vlan", "pool": "uplink", "owner": of, "slot": "eth1"}
        net = {"kind": "subnet", "pool": "front", "owner": of}
        return {"requests": [{"kind": "address", "owner": of, "within": net, "children": [slot]}], "request_id": f"r-{of['id']}"}

    answer = house.post(f"{POOLS}/allocations", {"allocations": wanted(owner)}, ADMIN)
    assert answer.status_code == 201, answer.text
    (address,) = answer.json["allocations"]
    assert address["within"]["kind"] == "subnet"
    assert address["children"][0]["value"] == 100
    again = house.post(f"{POOLS}/allocations", {"allocations": wanted(owner)}, ADMIN).json["allocations"]
    assert [it["id"] for it in again] == [address["id"]]
    before = everything(house)
    second = house.post(f"{POOLS}/allocations", {"allocations": wanted({"type": "load_balancer", "id": "lb-2"})}, ADMIN)
    assert error_of(second) == (409, "PoolExhausted")
    assert everything(house) == before
    assert house.delete(f"{POOLS}/allocations?owner_type=load_balancer&owner_id=lb-1&force=true", ADMIN).status_code == 200
    # The subnet of the house has its gateway still.
    assert {it["owner"]["type"] for it in house.get(f"{POOLS}/allocations", ADMIN).json["allocations"]} <= {"pool"}


def test_what_a_living_vip_uses_is_given_back_by_force_only(house: House) -> None:
    vip = house.vip()
    owner = f"owner_type=vip&owner_id={vip['id']}"
    (address,) = house.get(f"{POOLS}/allocations?{owner}", ADMIN).json["allocations"]
    pool = next(it for it in house.get(POOLS, ADMIN).json["resources"] if it["id"] == address["pool_id"])
    path = f"{POOLS}/address/{pool['name']}"
    by_value = {"release": {"value": address["value"], "owner": address["owner"]}}
    for refused in (
        house.delete(f"{POOLS}/allocations?{owner}", ADMIN),
        house.delete(f"{path}/allocations/{address['id']}?scope={pool['scope']}", ADMIN),
        house.post(f"{path}/release?scope={pool['scope']}", by_value, ADMIN),
    ):
        assert error_of(refused) == (409, "OwnerLives"), refused.text
        assert vip["id"] in refused.text
    assert house.get(f"{POOLS}/allocations?{owner}", ADMIN).json["allocations"] == [address]
    assert house.delete(f"{POOLS}/allocations?{owner}&force=true", ADMIN).json == {"released": 1}


def test_a_fifth_of_all_networks_has_more_vnis_than_vlans(house: House) -> None:
    define(house, "vxlan", "wide", range="5000-16777215", local_vlan="none")
    assert take(house, f"{POOLS}/vxlan/wide", value=16_777_215)["value"] == 16_777_215


@pytest.fixture
def used(house: House) -> House:
    """A pool of each kind; VLAN 6 is blue's."""
    define(house, ranges="5-100", pick="lowest")
    define(house, "vlan", "full", ranges="1000-1000")
    take(house, f"{POOLS}/vlan/full")
    house.taken = take(house, value=6)  # type: ignore[attr-defined]
    return house


def config_of(kind: str, **config: Any) -> tuple[str, str, Body]:
    return "POST", POOLS, {"resource": {"kind": kind, "name": "new", "config": config}}


def asked_of(**asked: Any) -> tuple[str, str, Body]:
    return "POST", f"{VLAN}/allocations", {"allocation": {"owner": RED, **asked}}


WRONG: tuple[tuple[tuple[str, str, Any], int, str], ...] = (
    # --- definitions
    (config_of("vlan", ranges="100"), 400, "'100' is no range; write FIRST-LAST"),
    (config_of("vlan", ranges="5--100"), 400, "'5--100' is no range"),
    (config_of("vlan", ranges="200-101"), 400, "200-101 is reversed; write 101-200"),
    (config_of("vlan", ranges="1-5000"), 400, "1-5000 leaves 1-4094"),
    (config_of("vlan", ranges="0-4094"), 400, "0-4094 leaves 1-4094"),
    (config_of("vlan", ranges="abcd"), 400, "'abcd' is no range"),
    (config_of("vlan", ranges="5-100,,101-200"), 400, "'' is no range"),
    (config_of("vlan", ranges="200-300,250-400"), 400, "200-300 and 250-400 overlap"),
    (config_of("vlan", ranges=7), 400, "ranges is 7; give text such as '1-4094'"),
    (config_of("vlan", ranges=0), 400, "ranges is 0; give text such as '1-4094'"),
    (config_of("vlan", ranges=False), 400, "ranges is False; give text"),
    (config_of("vlan", range="1-2"), 400, "'range' is unknown; known are ranges"),
    (config_of("vlan", ranges="50-60"), 409, "overlaps vlan pool 'v'"),
    (config_of("vlan", ranges="2000-2001", pick="best"), 400, "pick is 'best'; give one of random"),
    (config_of("vxlan", range="1-20000"), 400, "20000 wide; 16001 is the most"),
    (config_of("vxlan", range="1-10,20-30"), 400, "more than one; define a pool for each"),
    (config_of("subnet", cidr="10.0.0.1/16", alloc_len=24), 400, "has host bits set"),
    (config_of("subnet", cidr="10.0.0.0/33"), 400, "10.0.0.0/33"),
    (config_of("subnet", cidr="10.0.0.0/22", alloc_len=20), 400, "greater than or equal to SubnetPoolLen"),
    (config_of("subnet", cidr="11..5.0.0/16"), 400, "cidr: "),
    (config_of("address", cidr="10.1.1.5/24"), 400, "has host bits set"),
    (config_of("address", cidr="10.1.1.0/33"), 400, "10.1.1.0/33"),
    (config_of("address", cidr="10.1.1.1/32"), 400, "is a single address; give at most /31"),
    (config_of("address", cidr="10.1.1.0/24", gateway="10.1.2.1"), 400, "gateway 10.1.2.1 is no host of 10.1.1.0/24"),
    (config_of("address", cidr="10.1.1.0/24", ranges="10.1.1.20-10.1.1.10"), 400, "is reversed"),
    (config_of("address", cidr="10.1.1.0/24", ranges="10.1.1.10-10.1.1.45, 10.1.1.45-10.1.1.50"), 400, "overlap at 10.1.1.45"),
    (config_of("warp"), 404, 'No resource found for description: "warp"'),
    (("POST", POOLS, {"resource": {"kind": "vlan"}}), 400, "'resource' needs name"),
    (("POST", POOLS, {"resource": {"kind": "vlan", "name": LONG}}), 400, "a name of at most 128"),
    (("POST", POOLS, {"resource": {"kind": "vlan", "name": "a/b"}}), 400, "a name of at most 128"),
    (("POST", POOLS, {"resource": {"kind": "vlan", "name": "new", "scope": "planet:x"}}), 400, "cluster, tenant:ID or host:NAME"),
    (("POST", POOLS, {"resource": {"kind": "vlan", "name": "new", "config": "1-9"}}), 400, "not of type object"),
    (("POST", POOLS, {"resource": {"kind": "vlan", "name": "v", "config": {"ranges": "5-9"}}}), 409, "already exists"),
    (("PUT", VLAN, {"resource": {"config": {"ranges": "10-100"}}}), 409, "6"),
    (("PUT", VLAN, {"resource": {}}), 400, "'resource' needs config"),
    (("PUT", f"{POOLS}/vlan/none", {"resource": {"config": {}}}), 404, 'and id: "none"'),
    # --- values
    (asked_of(value=101), 400, "requested vlan not available - vlan:101"),
    (asked_of(value=0), 400, "requested vlan not available - vlan:0"),
    (asked_of(value=-1), 400, "give a whole number"),
    (asked_of(value="any"), 400, "give a whole number, or None for any"),
    (asked_of(value="2001-2005"), 400, "give a whole number, or None for any"),
    (asked_of(value=6.5), 400, "is not of type integer"),
    (asked_of(value=6), 409, "requested vlan not available - vlan:6"),
    (asked_of(owner={"type": "network", "id": LONG}), 400, "is longer than 255 characters (in 'id')"),
    (asked_of(owner={"type": "network", "id": "a\n"}), 400, "begins or ends with a blank"),
    (asked_of(owner={"type": "network", "id": "a\u0000b"}), 400, "cannot be printed"),
    (asked_of(owner={"type": "network"}), 400, "'owner'"),
    (asked_of(owner="red"), 400, "not of type object"),
    (asked_of(slot="a#b"), 400, "holds a '#'"),
    (asked_of(children=[{"kind": "vlan"}]), 400, "needs kind and owner"),
    (asked_of(children=[{"kind": "warp", "pool": "x", "owner": RED}]), 404, '"warp"'),
    (asked_of(ttl_seconds=0), 400, "'ttl_seconds': 0 is not more than 0"),
    (asked_of(colour=1), 400, "'allocation' has no 'colour'"),
    (("POST", f"{POOLS}/vlan/full/allocations", {"allocation": {"owner": RED}}), 409, "no vlans available"),
    (("POST", f"{POOLS}/vlan/none/allocations", {"allocation": {"owner": RED}}), 404, 'and id: "none"'),
    (("POST", f"{POOLS}/warp/v/allocations", {"allocation": {"owner": RED}}), 404, '"warp"'),
    (("POST", f"{POOLS}/allocations", {"allocations": {"requests": []}}), 400, "requests"),
    (("POST", f"{POOLS}/allocations", {"allocations": {"requests": [{"kind": "vlan"}] * 1001}}), 400, "at most 1000"),
    # --- giving back
    (("POST", f"{VLAN}/release", {"release": {"value": 6, "owner": RED}}), 403, "6 of vlan pool 'v' is not network red's"),
    (("POST", f"{VLAN}/release", {"release": {"value": 101, "owner": BLUE}}), 400, "101 is not in vlan pool 'v'"),
    (("POST", f"{VLAN}/release", {"release": {"value": 7, "owner": BLUE}}), 404, "7 of vlan pool 'v' is not allocated"),
    (("POST", f"{VLAN}/release", {"release": {"owner": BLUE}}), 400, "'release' needs value"),
    (("DELETE", f"{VLAN}/allocations/{{id}}?generation=7", None), 409, "changed by somebody else"),
    (("DELETE", f"{VLAN}/allocations/{{id}}?generation=x", None), 400, "generation"),
    (("DELETE", f"{POOLS}/vlan/full/allocations/{{id}}", None), 404, "is not allocated"),
    (("DELETE", f"{VLAN}/allocations/nothing", None), 404, "nothing is not allocated"),
    (
        ("PUT", f"{VLAN}/allocations/{{id}}", {"allocation": {"status": "active", "generation": 7}}),
        409,
        "changed by somebody else",
    ),
    (("PUT", f"{VLAN}/allocations/{{id}}", {"allocation": {"status": "held"}}), 400, "is not one of active"),
    (("DELETE", f"{POOLS}/allocations", None), 400, "owner_type"),
    (("DELETE", f"{POOLS}/allocations?owner_type=network", None), 400, "go together"),
    (("DELETE", VLAN, None), 409, "still has 1 allocation(s)"),
    (("DELETE", f"{VLAN}?drain=perhaps", None), 400, "drain"),
    (("DELETE", f"{VLAN}?colour=red", None), 400, "unknown parameter 'colour'"),
    (("DELETE", f"{VLAN}?scope=host:h", None), 404, 'and id: "host:h/v"'),
    # --- looking
    (("GET", f"{VLAN}/history?since=yesterday", None), 400, "'since' is 'yesterday'; give a time"),
    (("GET", f"{VLAN}/history?limit=0", None), 400, "limit"),
    (("GET", f"{VLAN}/allocations?status=lost", None), 400, "status"),
    (("GET", f"{VLAN}/allocations?resting=perhaps", None), 400, "'resting' must be true or false"),
    (("DELETE", f"{VLAN}?force=perhaps", None), 400, "'force' must be true or false, not 'perhaps'"),
    (("GET", f"{POOLS}?colour=red", None), 400, "cannot filter by 'colour'"),
    (("POST", f"{POOLS}/reconcile", {"reconcile": {"grace_seconds": -1}}), 400, "grace_seconds"),
)


def test_bad_input_is_refused_in_words_and_changes_nothing(used: House) -> None:
    before = everything(used)
    for (method, path, body), status, words in WRONG:
        answer = used.call(method, path.replace("{id}", used.taken["id"]), ADMIN, body)  # type: ignore[attr-defined]
        assert answer.status_code == status, (method, path, body, answer.text[:300])
        message = answer.json["NeutronError"]["message"]
        assert words in message, (words, message)
        assert len(message) < 600
    assert everything(used) == before


def test_tenants_see_the_pools_that_are_theirs(house: House) -> None:
    define(house, ranges="1-9")
    own = define(house, "vlan", "v", "tenant:anne", ranges="20-29")
    body = {"allocation": {"owner": BLUE}}
    taken = house.post(f"{VLAN}/allocations?scope=tenant:anne", body, ADMIN).json["allocation"]
    for who in (ANNE, READER):
        assert [pool["id"] for pool in house.get(POOLS, who).json["resources"]] == [own["id"]]
        assert house.get(VLAN, who).json["resource"]["id"] == own["id"], "without a scope it is one's own"
        assert house.get(f"{VLAN}/usage?scope=tenant:anne", who).json["usage"]["used"] == 1
        assert [it["id"] for it in house.get(f"{VLAN}/allocations", who).json["allocations"]] == [taken["id"]]
        assert house.get(f"{VLAN}/allocations/{taken['id']}", who).json["allocation"]["value"] == taken["value"]
        for path in (VLAN, f"{VLAN}/usage", f"{VLAN}/allocations", f"{VLAN}/allocations/{taken['id']}"):
            assert error_of(house.get(f"{path}?scope=cluster", who)) == (404, "NotDefined"), path
    for path in (VLAN, f"{VLAN}/usage", f"{VLAN}/allocations", f"{VLAN}/allocations/{taken['id']}"):
        assert house.get(f"{path}?scope=tenant:anne", BERT).status_code == 404, path
        assert house.get(path, BERT).status_code == 404, path
    assert house.get(POOLS, BERT).json == {"resources": []}


def test_lists_are_filtered_sorted_and_paged(house: House) -> None:
    for number, name in enumerate("abc"):
        define(house, "vlan", name, ranges=f"{number}01-{number}99" if number else "1-99", pick="lowest")
    names = [
        pool["name"] for pool in house.get(f"{POOLS}?kind=vlan&sort_key=name&sort_dir=desc&fields=name", ADMIN).json["resources"]
    ]
    assert names == ["c", "b", "a"]
    page = house.get(f"{POOLS}?kind=vlan&limit=2&sort_key=name", ADMIN).json
    assert [pool["name"] for pool in page["resources"]] == ["a", "b"]
    (link,) = page["resources_links"]
    rest = house.get(link["href"][link["href"].index("/v2.0") :], ADMIN).json
    assert [pool["name"] for pool in rest["resources"]] == ["c"]
    assert [pool["name"] for pool in house.get(f"{POOLS}?kind=vlan&name=b", ADMIN).json["resources"]] == ["b"]
    path = f"{POOLS}/vlan/a"
    for number in range(12):
        take(house, path, {"type": "network", "id": f"n{number % 2}"}, slot=str(number))
    found = house.get(f"{path}/allocations?owner_id=n1&sort_key=value&fields=value", ADMIN).json["allocations"]
    assert [it["value"] for it in found] == [2, 4, 6, 8, 10, 12]
    assert len(house.get(f"{POOLS}/allocations?owner_type=network&owner_id=n0", ADMIN).json["allocations"]) == 6
    assert [it["value"] for it in house.get(f"{path}/allocations?value=7", ADMIN).json["allocations"]] == [7]


def test_the_keys_of_the_store_are_shown(house: House) -> None:
    keys = house.get(f"{POOLS}/keys", ADMIN).json["keys"]
    assert any(key.startswith("/lbaas_scheduler/1/val/<domain>/<value>") for key in keys)


def test_history_is_narrowed(house: House) -> None:
    define(house, ranges="1-9")
    taken = take(house)
    take(house, owner=RED)
    events = house.get(f"{POOLS}/history?owner_type=network&owner_id=red", ADMIN).json["events"]
    assert [(event["op"], event["owner_id"]) for event in events] == [("allocate", "red")]
    events = house.get(f"{VLAN}/history?allocation_id={taken['id']}&since=2020-01-01T00:00:00Z", ADMIN).json["events"]
    assert [event["value"] for event in events] == [taken["value"]]
    assert house.get(f"{POOLS}/history?since=2999-01-01T00:00:00%2B01:00", ADMIN).json == {"events": []}
    assert len(house.get(f"{POOLS}/history?limit=2&since=0001-01-01T00:00:00", ADMIN).json["events"]) == 2


def test_metrics_say_how_full_the_pools_are(house: House) -> None:
    define(house, ranges="1-10", pick="lowest", quarantine_seconds=600)
    define(house, "vxlan", "x", range="5000-5009")
    take(house)
    take(house, slot="b", ttl_seconds=60)
    gone = take(house, slot="c")
    house.delete(f"{VLAN}/allocations/{gone['id']}", ADMIN)
    take(house, f"{POOLS}/vxlan/x")
    lines = house.client.simulate_get("/metrics").text.splitlines()
    assert "lbaas_scheduler_allocator_up 1.0" in lines

    def value(kind: str, pool: str, state: str) -> float:
        start = f'lbaas_scheduler_resource_values{{kind="{kind}",pool="{pool}",scope="cluster",state="{state}"}} '
        (found,) = [line.removeprefix(start) for line in lines if line.startswith(start)]
        return float(found)

    assert [value("vlan", "v", state) for state in ("total", "used", "held", "quarantined")] == [10, 2, 1, 1]
    assert [value("vxlan", "x", state) for state in ("total", "used")] == [10, 1], "its local VLAN counts not"


def test_metrics_do_not_wait_for_a_store_that_is_away(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> Any:
        raise StoreUnavailable(dependency="etcd", reason="nobody there")

    monkeypatch.setattr(house.plant.parts.allocator.driver, "read", away)
    for _ in range(2):
        text = house.client.simulate_get("/metrics").text
        assert "lbaas_scheduler_allocator_up 0.0" in text
        assert "lbaas_scheduler_database_up 1.0" in text
        assert "lbaas_scheduler_resource_values{" not in text


def test_the_server_tells_whether_owners_of_its_own_live(house: House) -> None:
    house.conf.set_override("owner_grace_delay_seconds", 0, "allocator")
    vip = house.vip()
    define(house, ranges="1-9")
    lost = {"type": "vip", "id": "00000000-0000-4000-8000-000000000000"}
    take(house, owner=lost)
    take(house, owner=BLUE)
    for _ in range(2):
        report = house.post(f"{POOLS}/reconcile", {"reconcile": {"dry_run": False}}, ADMIN).json["report"]
    assert not house.get(f"{POOLS}/allocations?owner_id={lost['id']}", ADMIN).json["allocations"]
    assert report["unknown"] == ["network blue"], "not one of ours, and kept"
    (address,) = house.get(f"{POOLS}/allocations?owner_id={vip['id']}", ADMIN).json["allocations"]
    assert address["value"] == vip["address"]
