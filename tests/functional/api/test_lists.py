"""Lists: filters, fields, order, and pages with links."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.functional.api.house import ADMIN, House

POOLS = "/v2.0/lb/pools"


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


GONE = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize("path", ["lb/pools", "networks", "service-types", "ports"])
def test_a_marker_that_says_not_where_it_stands_must_be_in_the_list(house: House, path: str) -> None:
    for query in (f"marker={GONE}", f"marker={GONE}~bm9uZQ"):
        assert house.get(f"/v2.0/{path}?{query}&sort_key=name").status_code == 404, query
    assert house.get(f"/v2.0/{path}?marker={GONE}").status_code == 200


def links(answer: Any, collection: str = "pools") -> dict[str, str]:
    found = {link["rel"]: link["href"] for link in answer.json.get(f"{collection}_links", [])}
    return {rel: f"{urlsplit(href).path}?{urlsplit(href).query}" for rel, href in found.items()}


def following(house: House, answer: Any, direction: str, collection: str = "pools") -> list[str]:
    return [it["name"] for it in house.get(links(answer, collection)[direction], ADMIN).json[collection]]


@pytest.mark.parametrize("order", ["", "&sort_key=name&sort_dir=desc", "&sort_key=admin_state_up&sort_key=name&fields=id"])
def test_a_page_follows_though_its_marker_was_deleted(any_house: House, order: str) -> None:
    house = any_house
    for number in range(5):
        house.pool(name=f"pool-{number}")
    whole = house.get(f"{POOLS}?{order.replace('&fields=id', '')}").json["pools"]
    first = house.get(f"{POOLS}?limit=2{order}")
    assert house.delete(f"{POOLS}/{whole[1]['id']}").status_code == 204
    second = house.get(links(first)["next"])
    assert [it["id"] for it in second.json["pools"]] == [it["id"] for it in whole[2:4]]
    assert house.delete(f"{POOLS}/{whole[2]['id']}").status_code == 204
    assert [it["id"] for it in house.get(links(second)["previous"]).json["pools"]] == [whole[0]["id"]]


def test_a_page_follows_though_its_marker_changed_or_fits_the_filter_no_more(any_house: House) -> None:
    house = any_house
    for number in range(4):
        house.pool(name=f"pool-{number}", description="a")
    query = "description=a&sort_key=name&limit=2"
    first = house.get(f"{POOLS}?{query}")
    last = first.json["pools"][-1]["id"]
    assert house.put(f"{POOLS}/{last}", {"pool": {"description": "b"}}).status_code == 200
    # A client that makes its own link has the id alone.
    by_id = house.get(f"{POOLS}?{query}&marker={last}").json["pools"]
    assert [it["name"] for it in by_id] == ["pool-2", "pool-3"]
    assert house.put(f"{POOLS}/{last}", {"pool": {"name": "zz"}}).status_code == 200
    assert following(house, first, "next") == ["pool-2", "pool-3"]


def test_lists_that_are_ordered_in_memory_go_on_as_well(house: House) -> None:
    rules = "/v2.0/placement-rules"
    made = [
        house.create(rules, "placement_rule", {"name": name, "wishes": {"zone": "a"}}, ADMIN)["id"] for name in ("c", "a", "b")
    ]
    first = house.get(f"{rules}?limit=1", ADMIN)
    by_name = house.get(f"{rules}?limit=2&sort_key=name&sort_dir=desc", ADMIN)
    assert [it["name"] for it in by_name.json["placement_rules"]] == ["c", "b"]
    for gone in (made[0], made[2]):
        assert house.delete(f"{rules}/{gone}", ADMIN).status_code == 204
    assert following(house, first, "next", "placement_rules") == ["a"]
    assert following(house, by_name, "next", "placement_rules") == ["a"]
    assert house.get(f"{rules}?sort_key=name&marker={GONE}", ADMIN).status_code == 404


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


@pytest.mark.parametrize("name", ["web ", " web", "web\t", "web\n", "web\u3000", " "])
def test_a_name_with_blanks_at_an_end_is_refused(house: House, name: str) -> None:
    bodies = {
        "/v2.0/lb/pools": {
            "pool": {"subnet_id": house.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN", "name": name}
        },
        "/v2.0/networks": {"network": {"name": name}},
        "/v2.0/subnets": {"subnet": {"network_id": house.network["id"], "cidr": "10.77.0.0/24", "name": name}},
        "/v2.0/devices": {"device": {"device_type": "fake", "name": name}},
        "/v2.0/service-types": {"service_type": {"name": name}},
        "/v2.0/placement-rules": {"placement_rule": {"name": name, "wishes": {"zone": "a"}}},
    }
    for path, body in bodies.items():
        answer = house.post(path, body, ADMIN)
        assert (answer.status_code, "without blanks at its beginning or end" in answer.text) == (400, True), (path, answer.text)
    vip = house.post("/v2.0/lb/vips", {"vip": house.vip_body(house.pool(), name=name)})
    assert (vip.status_code, "without blanks at its beginning or end" in vip.text) == (400, True)


def test_a_name_is_found_by_itself_alone_on_every_database(any_house: House) -> None:
    for name in ("web", "Web", "wéb", "w b"):
        any_house.pool(name=name)
        assert [it["name"] for it in any_house.get(f"{POOLS}?name={name}").json["pools"]] == [name]
    assert any_house.get(f"{POOLS}?name=web%20").status_code == 400


def test_a_description_is_found_with_its_blanks_on_every_database(any_house: House) -> None:
    for number, description in enumerate(("web", "web ", "Web")):
        any_house.pool(name=str(number), description=description)
        assert [it["name"] for it in any_house.get(f"{POOLS}?description={description}").json["pools"]] == [str(number)]
