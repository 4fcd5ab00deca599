"""The lists of LBaaS v1's four nouns over HTTP, each by order and by pages, as its own suites ask them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.functional.api.house import House

KEYS: Mapping[str, str] = {"vips": "name", "pools": "name", "members": "weight", "health_monitors": "delay"}
"""By what each noun is ordered here."""

pytestmark = pytest.mark.parametrize("collection", KEYS)


def three(house: House, collection: str) -> list[str]:
    """Ids of three objects, in the order of their key, which is not that of their making."""
    pool = house.pool() if collection == "members" else {}
    make = {
        "vips": lambda number: house.vip(name=f"vip-{number}"),
        "pools": lambda number: house.pool(name=f"pool-{number}"),
        "members": lambda number: house.member(pool, f"10.1.0.{number}", weight=number),
        "health_monitors": lambda number: house.monitor(type="TCP", delay=number, timeout=1),
    }[collection]
    made = {number: make(number)["id"] for number in (2, 3, 1)}
    return [made[number] for number in (1, 2, 3)]


def listed(house: House, collection: str, query: str = "") -> tuple[list[str], dict[str, str]]:
    """Ids, and queries of the links by where they lead."""
    answer = house.get(f"/v2.0/lb/{collection}?{query}")
    assert answer.status_code == 200, answer.text
    hrefs: list[dict[str, Any]] = answer.json.get(f"{collection}_links", [])
    return [each["id"] for each in answer.json[collection]], {link["rel"]: urlsplit(link["href"]).query for link in hrefs}


def test_a_list_has_all_that_was_created(any_house: House, collection: str) -> None:
    ids = three(any_house, collection)
    assert sorted(listed(any_house, collection)[0]) == sorted(ids)


def test_a_list_is_sorted_in_both_directions(any_house: House, collection: str) -> None:
    ids = three(any_house, collection)
    order = f"sort_key={KEYS[collection]}&sort_dir"
    assert listed(any_house, collection, f"{order}=asc")[0] == ids
    assert listed(any_house, collection, f"{order}=desc")[0] == ids[::-1]


def test_a_list_goes_by_pages_to_its_end_and_back_from_there(any_house: House, collection: str) -> None:
    ids = three(any_house, collection)
    order = f"sort_key={KEYS[collection]}&sort_dir=asc&limit=2"
    first, links = listed(any_house, collection, order)
    second, back = listed(any_house, collection, links["next"])
    assert (first, second) == (ids[:2], ids[2:])
    assert "next" not in back
    assert listed(any_house, collection, back["previous"])[0] == first
    last, before = listed(any_house, collection, f"{order}&page_reverse=True")
    assert last == ids[1:]
    assert listed(any_house, collection, before["previous"])[0] == ids[:1]
