"""Query strings, as LBaaS v1 clients spell them."""

from __future__ import annotations

import pytest

from lbaas_scheduler.api.queries import parse
from lbaas_scheduler.errors import InvalidRequest


def test_what_is_no_control_is_a_filter_and_may_be_repeated() -> None:
    query = parse({"name": ["a", "b"], "id": "x", "fields": ["id", "name"], "limit": "5", "marker": "m"})
    assert query.filters == {"name": ["a", "b"], "id": ["x"]}
    assert query.fields == ("id", "name")
    assert (query.limit, query.marker, query.page_reverse) == (5, "m", False)


def test_directions_belong_to_keys_by_their_order_and_are_ascending_unless_said() -> None:
    assert parse({"sort_key": ["name", "id"], "sort_dir": ["desc", "asc"]}).sorts == (("name", False), ("id", True))
    assert parse({"sort_key": "name"}).sorts == (("name", True),)


@pytest.mark.parametrize("text", ["True", "true", "1"])
def test_a_flag_may_be_spelt_in_every_way(text: str) -> None:
    assert parse({"page_reverse": text}).page_reverse is True


@pytest.mark.parametrize(
    "params",
    [
        {"limit": "-1"},
        {"limit": "many"},
        {"limit": ""},
        {"limit": ["1", "2"]},
        {"limit": "9" * 30},
        {"page_reverse": "perhaps"},
        {"sort_key": ["name", "id"], "sort_dir": "asc"},
        {"sort_dir": "asc"},
        {"sort_key": "name", "sort_dir": "up"},
        {"name": "a\x00b"},
        {"\x00": "a"},
    ],
)
def test_what_makes_no_sense_is_refused(params: dict[str, str | list[str]]) -> None:
    with pytest.raises(InvalidRequest):
        parse(params)
