"""Lists: filters, fields, order, pages with links, and a bounded number of statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import models
from lbaas_scheduler.domain.clock import utcnow
from tests.factories import add_devices, new_device
from tests.functional.api.house import ADMIN, House

POOLS = "/v2.0/lb/pools"
MANY = 500
MOST_STATEMENTS = 10


def make_pools(house: House, *names: str) -> list[str]:
    return [house.pool(name=name)["id"] for name in names]


def names(house: House, query: str) -> list[str]:
    answer = house.get(f"{POOLS}?{query}")
    assert answer.status_code == 200, answer.text
    return [pool["name"] for pool in answer.json["pools"]]


def test_values_of_one_filter_are_alternatives_and_several_filters_all_hold(house: House) -> None:
    make_pools(house, "a", "b", "c")
    assert sorted(names(house, "name=a&name=b")) == ["a", "b"]
    assert names(house, "name=a&protocol=HTTP") == ["a"]
    assert names(house, "name=a&protocol=TCP") == []


@pytest.mark.parametrize("spelling", ["true", "True", "TRUE", "1"])
def test_filter_values_go_through_the_attributes_converter(house: House, spelling: str) -> None:
    make_pools(house, "a")
    assert names(house, f"admin_state_up={spelling}") == ["a"]


@pytest.mark.parametrize("query", ["admin_state_up=maybe", "colour=red", "id=not-a-uuid", "protocol=UDP", "members=x"])
def test_a_filter_that_cannot_be_is_refused(house: House, query: str) -> None:
    assert house.get(f"{POOLS}?{query}").status_code == 400


def test_fields_project_and_unknown_ones_are_left_out(house: House) -> None:
    make_pools(house, "a")
    answer = house.get(f"{POOLS}?fields=name&fields=protocol&fields=colour")
    assert answer.json == {"pools": [{"name": "a", "protocol": "HTTP"}]}
    pool_id = house.get(f"{POOLS}?fields=id").json["pools"][0]["id"]
    assert house.get(f"{POOLS}/{pool_id}?fields=name").json == {"pool": {"name": "a"}}


def test_a_list_is_sorted_by_several_keys(house: House) -> None:
    for name, protocol in (("b", "HTTP"), ("a", "TCP"), ("a", "HTTP")):
        house.pool(name=name, protocol=protocol)
    query = "sort_key=name&sort_dir=desc&sort_key=protocol&sort_dir=asc"
    found = [(pool["name"], pool["protocol"]) for pool in house.get(f"{POOLS}?{query}").json["pools"]]
    assert found == [("b", "HTTP"), ("a", "HTTP"), ("a", "TCP")]
    assert names(house, "sort_key=name") == ["a", "a", "b"]


@pytest.mark.parametrize(
    "query",
    [
        "sort_key=colour",
        "sort_key=members",
        "sort_key=name&sort_dir=up",
        "sort_key=name&sort_key=id&sort_dir=asc",
        "limit=-1",
        "limit=x",
        "limit=1&limit=2",
        "marker=%00",
        "page_reverse=maybe",
    ],
)
def test_an_order_or_page_that_cannot_be_is_refused(house: House, query: str) -> None:
    answer = house.get(f"{POOLS}?{query}")
    assert answer.status_code == 400
    assert answer.json["NeutronError"]["type"] == "HTTPBadRequest"


@pytest.mark.parametrize("path", ["lb/pools", "networks", "service-types", "ports"])
def test_a_marker_that_is_not_in_the_list_is_not_found(house: House, path: str) -> None:
    assert house.get(f"/v2.0/{path}?marker=11111111-2222-3333-4444-555555555555").status_code == 404


def links(answer: Any) -> dict[str, str]:
    found = {link["rel"]: link["href"] for link in answer.json.get("pools_links", [])}
    return {rel: f"{urlsplit(href).path}?{urlsplit(href).query}" for rel, href in found.items()}


def test_links_lead_through_all_pages_and_back(any_house: House) -> None:
    any_house.put(f"/v2.0/quotas/{any_house.tenant}", {"quota": {"pool": -1}}, ADMIN)
    make_pools(any_house, "e", "d", "c", "b", "a")
    answer = any_house.get(f"{POOLS}?limit=2&sort_key=name&sort_dir=asc&fields=name")
    forwards = [[pool["name"] for pool in answer.json["pools"]]]
    assert links(answer).keys() == {"next"}
    while "next" in links(answer):
        answer = any_house.get(links(answer)["next"])
        forwards.append([pool["name"] for pool in answer.json["pools"]])
    assert forwards == [["a", "b"], ["c", "d"], ["e"]]

    backwards = []
    while "previous" in links(answer):
        answer = any_house.get(links(answer)["previous"])
        backwards.append([pool["name"] for pool in answer.json["pools"]])
    assert backwards == [["c", "d"], ["a", "b"]]
    assert links(answer).keys() == {"next"}


def test_a_page_that_holds_all_has_no_links(house: House) -> None:
    make_pools(house, "a", "b")
    assert "pools_links" not in house.get(f"{POOLS}?limit=2").json
    assert "pools_links" not in house.get(POOLS).json


def test_a_links_query_keeps_what_was_asked(house: House) -> None:
    make_pools(house, "a", "a b&c")
    answer = house.get(f"{POOLS}?limit=1&name=a&name=a%20b%26c&sort_key=name")
    query = parse_qs(urlsplit(answer.json["pools_links"][0]["href"]).query)
    assert (query["name"], query["limit"], query["sort_key"]) == (["a", "a b&c"], ["1"], ["name"])


def test_a_list_without_a_limit_is_cut_at_the_largest_page_and_links_lead_on(house: House) -> None:
    house.conf.set_override("max_page_size", 2, "api")
    make_pools(house, "a", "b", "c")
    for query in ("sort_key=name", "sort_key=name&limit=0", "sort_key=name&limit=100"):
        answer = house.get(f"{POOLS}?{query}")
        assert [pool["name"] for pool in answer.json["pools"]] == ["a", "b"], query
        assert [pool["name"] for pool in house.get(links(answer)["next"]).json["pools"]] == ["c"], query


PAGED = {
    "/v2.0/lb/vips": "vips",
    "/v2.0/lb/pools": "pools",
    "/v2.0/lb/members": "members",
    "/v2.0/lb/health_monitors": "health_monitors",
    "/v2.0/networks": "networks",
    "/v2.0/subnets": "subnets",
    "/v2.0/ports": "ports",
    "/v2.0/devices": "devices",
    "/v2.0/service-types": "service_types",
}


def furnish_thrice(house: House) -> None:
    for number in range(1, 4):
        pool = house.pool(name=f"pool-{number}")
        house.vip(pool, name=f"vip-{number}")
        house.member(pool, f"10.1.0.{number}")
        house.monitor(type="TCP")
        network = house.create("/v2.0/networks", "network", {"name": f"network-{number}"})
        house.create("/v2.0/subnets", "subnet", {"network_id": network["id"], "cidr": "10.9.0.0/24", "name": f"subnet-{number}"})
        house.create("/v2.0/devices", "device", {"name": f"device-{number}", "device_type": "fake"}, ADMIN)
        house.create("/v2.0/service-types", "service_type", {"name": f"type-{number}"}, ADMIN)


def test_every_list_goes_by_pages_in_both_directions(house: House) -> None:
    furnish_thrice(house)
    for path, collection in PAGED.items():
        for order in (
            "",
            "&sort_key=id&sort_dir=desc",
            "&sort_key=name" if "member" not in path and "monitor" not in path else "",
        ):
            whole = [each["id"] for each in house.get(f"{path}?{order[1:]}", ADMIN).json[collection]]
            assert len(whole) >= 3, path
            if not order:
                whole = [each["id"] for each in house.get(f"{path}?sort_key=id", ADMIN).json[collection]]
            there = walk(house, f"{path}?limit=2{order}", collection, "next")
            assert there == whole, (path, order)
            last = house.get(f"{path}?limit=1&page_reverse=True{order}", ADMIN).json[collection]
            assert [each["id"] for each in last] == whole[-1:], (path, order)
            before_last = house.get(f"{path}?limit=1&page_reverse=True&marker={whole[-1]}{order}", ADMIN).json[collection]
            assert [each["id"] for each in before_last] == whole[-2:-1], (path, order)


def walk(house: House, url: str, collection: str, direction: str) -> list[str]:
    found = []
    while url:
        answer = house.get(url, ADMIN).json
        found += [each["id"] for each in answer[collection]]
        hrefs = {link["rel"]: link["href"] for link in answer.get(f"{collection}_links", [])}
        url = hrefs.get(direction, "").partition("//")[2].partition("/")[2]
        url = f"/{url}" if url else ""
    return found


@contextmanager
def counted(house: House) -> Iterator[list[str]]:
    statements: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        statements.append(statement)

    sa.event.listen(house.database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(house.database.engine, "before_cursor_execute", note)


def fill(house: House, count: int) -> None:
    """Rows of load balancers as they are left behind when all is well, ``count`` of each noun; on three devices."""
    now, subnet_id, default = utcnow(), house.subnet["id"], house.vip()["service_type_id"]
    device_id = house.device["id"]
    common = {"tenant_id": "anne", "admin_state_up": True, "status": "ACTIVE", "created_at": now}
    ids = [[f"{kind}0000000-0000-4000-8000-{number:012}" for number in range(count)] for kind in "abcd"]
    rows: dict[sa.Table, list[dict[str, Any]]] = {
        table: []
        for table in (models.pools, models.vips, models.members, models.health_monitors, models.pool_monitors, models.deployments)
    }
    for number, (pool, vip, member, monitor) in enumerate(zip(*ids, strict=True)):
        protocol = {"protocol": "HTTP", "subnet_id": subnet_id}
        rows[models.pools].append({**common, **protocol, "id": pool, "lb_method": "ROUND_ROBIN", "vip_id": vip})
        placed = {"address": f"10.0.9.{number % 250}", "port_id": vip, "protocol_port": 80, "pool_id": pool}
        rows[models.vips].append({**common, **protocol, **placed, "id": vip, "service_type_id": default})
        rows[models.members].append({**common, "id": member, "pool_id": pool, "address": "10.1.0.1", "protocol_port": 80})
        checked = {"type": "TCP", "delay": 2, "timeout": 1, "max_retries": 1}
        rows[models.health_monitors].append(
            {**{name: common[name] for name in ("tenant_id", "admin_state_up", "created_at")}, **checked, "id": monitor}
        )
        rows[models.pool_monitors].append({"pool_id": pool, "monitor_id": monitor, "status": "ACTIVE"})
        deployed = {"resource_id": vip, "device_id": device_id, "operation": "apply", "epoch": 1, "desired_revision": 1}
        rows[models.deployments].append({**deployed, "applied_revision": 1})
    house.database.write(lambda conn: [conn.execute(sa.insert(table), many) for table, many in rows.items()])


def test_lists_of_500_take_as_many_statements_as_lists_of_one(own_any_house: House) -> None:
    own_any_house.pool()
    lists = [
        *PAGED,
        f"/v2.0/devices/{own_any_house.device['id']}/vips",
        "/v2.0/agents",
        "/v2.0/service-providers",
        "/v2.0/quotas",
    ]
    own_any_house.vip()
    own_any_house.associate(own_any_house.monitor(), own_any_house.pool())
    few = {path: statements_of(own_any_house, path) for path in lists}
    fill(own_any_house, MANY)
    add_devices(own_any_house.database, *(new_device(f"device-{number:03}") for number in range(MANY // 2)), agent=None)
    many = {path: statements_of(own_any_house, path) for path in lists}
    assert len(own_any_house.get("/v2.0/lb/vips").json["vips"]) > MANY
    assert many == few
    assert max(many.values()) <= MOST_STATEMENTS


def statements_of(house: House, path: str) -> int:
    with counted(house) as statements:
        assert house.get(path, ADMIN).status_code == 200
    return len([statement for statement in statements if not statement.startswith(("BEGIN", "PRAGMA"))])
