"""Lists: filters, fields, order, pages, and what they cost."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler import errors
from lbaas_scheduler.db import models
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.plugins.loadbalancer.schemas.health_monitors import HEALTH_MONITOR
from lbaas_scheduler.plugins.loadbalancer.schemas.members import MEMBER
from lbaas_scheduler.plugins.loadbalancer.schemas.pools import POOL
from lbaas_scheduler.plugins.loadbalancer.schemas.vips import VIP
from tests.database import counted
from tests.functional.loadbalancer.lab import Lab, admin

NOUNS = {"vip": VIP, "pool": POOL, "member": MEMBER, "health_monitor": HEALTH_MONITOR}


def _fill(lab: Lab, count: int) -> None:
    for number in range(count):
        pool = lab.pool(name=f"pool {number:03}")
        lab.vip(pool, name=f"vip {number:03}")
        lab.member(pool, weight=number % 256)
        lab.monitor(pool, delay=number + 2)


def _copy(lab: Lab, count: int) -> None:
    """More rows like those that are there."""

    def work(conn: Connection) -> None:
        for table in (models.pools, models.vips, models.members, models.health_monitors):
            row = dict(conn.execute(sa.select(table)).one()._mapping)
            for number in range(count):
                own = {"id": uuidutils.generate_uuid()} | ({"vip_id": None} if table is models.pools else {})
                own |= {"protocol_port": number + 1} if table is models.members else {}
                conn.execute(sa.insert(table), {**row, **own})

    lab.database.write(work)


def _list(lab: Lab, noun: str, **asked: Any) -> list[dict[str, Any]]:
    return getattr(lab.plugin, f"get_{noun}s")(lab.me, **asked)


def test_every_attribute_that_has_a_column_filters(lab: Lab) -> None:
    _fill(lab, 1)
    wanted = lab.pool(name="wanted", protocol="HTTPS", lb_method="SOURCE_IP", admin_state_up=False)
    lab.vip(wanted, protocol_port=81, admin_state_up=False, name="wanted", description="d", connection_limit=3)
    lab.member(wanted, "2015::beef", protocol_port=85, weight=7, admin_state_up=False)
    lab.monitor(wanted, type="HTTPS", delay=50, timeout=40, max_retries=9, http_method="PUT", url_path="/x", expected_codes="201")
    for noun, attributes in NOUNS.items():
        found = _list(lab, noun)
        for name in (name for name, attribute in attributes.attributes.items() if attribute.filtered):
            for value in {each[name] for each in found if name in each}:
                expected = [each["id"] for each in found if each.get(name) == value]
                assert [each["id"] for each in _list(lab, noun, filters={name: [value]})] == expected, (noun, name, value)


def test_several_values_of_a_filter_mean_or(lab: Lab) -> None:
    names = [lab.pool(name=f"p{number}")["name"] for number in range(4)]
    assert {each["name"] for each in _list(lab, "pool", filters={"name": names[1:3]})} == set(names[1:3])
    assert {each["name"] for each in _list(lab, "pool", filters={"name": "p3"})} == {"p3"}
    assert _list(lab, "pool", filters={"name": "p3", "protocol": "TCP"}) == []


def test_filter_values_are_converted_like_attributes(lab: Lab) -> None:
    pool = lab.pool()
    lab.member(pool, "2001:db8::1", weight=7)
    asked = {"weight": ["7"], "admin_state_up": ["TRUE"], "address": ["2001:DB8:0::1"], "protocol_port": "8080"}
    assert len(_list(lab, "member", filters=asked)) == 1
    for wrong in ({"weight": "x"}, {"admin_state_up": "perhaps"}, {"address": "10.0.0"}, {"status": "FINE"}, {"foo": "1"}):
        with pytest.raises(errors.InvalidRequest):
            _list(lab, "member", filters=wrong)


def test_a_filter_for_null_finds_what_has_none(lab: Lab) -> None:
    bare, used = lab.pool(), lab.pool()
    vip = lab.vip(used)
    assert [each["id"] for each in _list(lab, "pool", filters={"vip_id": [None]})] == [bare["id"]]
    assert {each["id"] for each in _list(lab, "pool", filters={"vip_id": [None, vip["id"]]})} == {bare["id"], used["id"]}


def test_fields_project(lab: Lab) -> None:
    pool = lab.pool()
    lab.vip(pool)
    assert _list(lab, "pool", fields=["id", "members", "foo"]) == [{"id": pool["id"], "members": []}]
    assert lab.plugin.get_pool(lab.me, pool["id"], fields=["name"]) == {"name": ""}
    assert lab.plugin.get_pool(lab.me, pool["id"], fields="members") == {"members": []}
    assert set(_list(lab, "vip", fields=["id", "address"])[0]) == {"id", "address"}


def test_pages_in_both_directions_make_up_the_whole(any_lab: Lab) -> None:
    lab = any_lab
    _fill(lab, 5)
    for noun, key in {"vip": "name", "pool": "name", "member": "weight", "health_monitor": "delay"}.items():
        for ascending in (True, False):
            sorts = [("admin_state_up", True), (key, ascending)]
            whole = _list(lab, noun, sorts=sorts)
            values = [each[key] for each in whole]
            assert values == sorted(values, reverse=not ascending)
            for reverse in (False, True):
                assert _paged(lab, noun, sorts, reverse) == [each["id"] for each in whole], (noun, ascending, reverse)


def _paged(lab: Lab, noun: str, sorts: list[tuple[str, bool]], reverse: bool) -> list[str]:
    seen: list[str] = []
    while True:
        marker = (seen[0] if reverse else seen[-1]) if seen else None
        page = _list(lab, noun, sorts=sorts, limit=2, marker=marker, page_reverse=reverse)
        if not page:
            return seen
        ids = [each["id"] for each in page]
        seen = ids + seen if reverse else seen + ids


def test_sorting_by_what_may_be_null_is_the_same_everywhere(any_lab: Lab) -> None:
    lab = any_lab
    pools = [lab.pool(name=str(number)) for number in range(3)]
    lab.vip(pools[1])
    by_vip = [each["name"] for each in _list(lab, "pool", sorts=[("vip_id", True), ("name", True)])]
    assert by_vip == ["0", "2", "1"]
    rest = _list(lab, "pool", sorts=[("vip_id", True), ("name", True)], marker=pools[0]["id"])
    assert [each["name"] for each in rest] == ["2", "1"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sorts": [("foo", True)]},
        {"sorts": [("members", True)]},
        {"sorts": ["name"]},
        {"sorts": [("name", "asc")]},
        {"sorts": [("name",)]},
        {"filters": ["name"]},
        {"filters": {"name": ["x"] * 10_001}},
        {"limit": -1},
        {"limit": "2"},
        {"limit": True},
        {"marker": "gone", "sorts": [("name", True)]},
        {"marker": "no id"},
        {"marker": 5},
    ],
)
def test_wrong_pages_are_refused(lab: Lab, wrong: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidRequest):
        _list(lab, "pool", **wrong)


def test_a_list_of_many_costs_as_many_statements_as_one_of_one(lab: Lab) -> None:
    _fill(lab, 1)
    costs = {}
    for noun in NOUNS:
        with counted(lab.database) as few:
            assert len(_list(lab, noun)) == 1
        costs[noun] = len(few)
    assert max(costs.values()) <= 5
    _copy(lab, 199)
    for noun in NOUNS:
        with counted(lab.database) as many:
            assert len(_list(lab, noun)) == 200
        with counted(lab.database) as page:
            assert len(_list(lab, noun, limit=50)) == 50
        assert (len(many), len(page)) == (costs[noun], costs[noun])


def test_documents_of_many_cost_as_many_statements_as_that_of_one(lab: Lab) -> None:
    _fill(lab, 20)
    ids = [each["id"] for each in _list(lab, "vip")]
    with counted(lab.database) as few:
        lab.document(ids[0])
    with counted(lab.database) as many:
        assert set(lab.database.read(lambda conn: documents.load(conn, ids))) == set(ids)
    assert len(many) == len(few)


@pytest.mark.parametrize("noun", NOUNS)
def test_a_page_by_id_reads_no_more_than_the_page(lab: Lab, noun: str) -> None:
    _fill(lab, 3)
    search = getattr(lab.plugin, f"get_{NOUNS[noun].collection}")
    first = search(admin(), limit=1, fields=["id"])[0]["id"]
    with counted(lab.database) as sent:
        search(admin(), limit=1, marker=first)
    collection = NOUNS[noun].collection
    pages = [statement for statement in sent if f"FROM {collection}" in statement and "LIMIT" in statement]
    assert pages
    for statement in pages:
        explain, values = f"EXPLAIN QUERY PLAN {statement}", ("1",) * statement.count("?")
        plan = lab.database.read(lambda conn, it=explain, of=values: conn.exec_driver_sql(it, of).all())  # type: ignore[misc]
        steps = [row[-1] for row in plan]
        assert any(step.startswith(f"SEARCH {collection} ") and step.endswith("(id>?)") for step in steps), steps
