"""Ports and moves: lists that grow with all VIPs there are, in pages that the database makes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import fleet_models, models
from lbaas_scheduler.domain import clock
from tests.database import counted
from tests.functional.api.house import ADMIN, ANNE, House

UNKNOWN = "00000000-0000-4000-8000-000000000000"
KEYS = {"ports": "id", "moves": "resource_id"}


@pytest.fixture
def furnished(database_url: str, tmp_path: Path) -> Iterator[House]:
    house = House(database_url, tmp_path)
    house.furnish()
    vary(house)
    yield house
    house.close()


def vary(house: House) -> None:
    """Five VIPs that differ, each with a move; one of them on a network that is not its tenant's."""
    hidden = house.create("/v2.0/networks", "network", {"tenant_id": "bert"}, ADMIN)
    subnet = {"tenant_id": "bert", "network_id": hidden["id"], "cidr": "10.8.0.0/24"}
    elsewhere = house.create("/v2.0/subnets", "subnet", subnet, ADMIN)
    vips = sorted(house.vip()["id"] for _ in range(5))
    states, targets = cycle(["done", "failed", "queued"]), cycle([None, house.device["id"]])

    def work(conn: sa.Connection) -> None:
        table = sa.update(models.vips)
        conn.execute(table.where(models.vips.c.id.in_(vips[1:3])).values(status="ERROR"))
        conn.execute(table.where(models.vips.c.id == vips[4]).values(subnet_id=elsewhere["id"]))
        now = clock.utcnow()
        plain = {"service": "LoadBalancer", "source_id": UNKNOWN, "cause": "operator", "created_at": now, "updated_at": now}
        for number, (vip, state, target) in enumerate(zip(vips, states, targets, strict=False)):
            own = {"resource_id": vip, "id": vip, "state": state, "target_id": target, "attempts": number % 2}
            conn.execute(sa.insert(fleet_models.moves), {**plain, **own})

    house.database.write(work)


def walked(house: House, url: str, noun: str, who: dict[str, str], direction: str) -> list[str]:
    """The keys of all pages; each page in its order, the pages as they were walked through."""
    found: list[str] = []
    while url:
        answer = house.get(url, who).json
        page = [it[KEYS[noun]] for it in answer[noun]]
        found = found + page if direction == "next" else page + found
        hrefs = {link["rel"]: link["href"] for link in answer.get(f"{noun}_links", [])}
        url = "/v2.0/" + hrefs[direction].partition("/v2.0/")[2] if direction in hrefs else ""
    return found


def test_pages_in_every_order_and_both_directions_are_the_whole_list(furnished: House) -> None:
    ports = ("id", "name", "tenant_id", "network_id", "device_id", "device_owner", "status")
    moves = ("resource_id", "service", "source_id", "target_id", "state", "cause", "error", "attempts", "created_at")
    for noun, key, who in (
        *(("ports", key, who) for key in ports for who in (ADMIN, ANNE)),
        *(("moves", key, ADMIN) for key in moves),
    ):
        plain: list[dict[str, Any]] = furnished.get(f"/v2.0/{noun}", who).json[noun]
        assert [it[KEYS[noun]] for it in plain] == sorted(it[KEYS[noun]] for it in plain)
        assert len(plain) == 5
        for direction in ("asc", "desc"):
            order = f"sort_key={key}&sort_dir={direction}"
            right = sorted(plain, key=lambda it, key=key: it[key] if it[key] is not None else "", reverse=direction == "desc")  # type: ignore[misc]
            if direction == "desc" and key != KEYS[noun]:
                # Equals stay in the order of their ids.
                right = sorted(plain, key=lambda it: it[KEYS[noun]])
                right.sort(key=lambda it, key=key: it[key] if it[key] is not None else "", reverse=True)  # type: ignore[misc]
            expected = [it[KEYS[noun]] for it in right]
            assert walked(furnished, f"/v2.0/{noun}?{order}&limit=2", noun, who, "next") == expected, order
            backwards = f"/v2.0/{noun}?{order}&limit=2&page_reverse=True"
            assert walked(furnished, backwards, noun, who, "previous") == expected, order


def test_filters_say_which(furnished: House) -> None:
    def found(noun: str, query: str, who: dict[str, str] = ADMIN) -> int:
        return len(furnished.get(f"/v2.0/{noun}?{query}", who).json[noun])

    port = furnished.get("/v2.0/ports", ANNE).json["ports"][0]
    device, own = furnished.device["id"], furnished.network["id"]
    assert [found("ports", f"network_id={own.upper()}", who) for who in (ADMIN, ANNE)] == [4, 4]
    hidden = [it["network_id"] for it in furnished.get("/v2.0/ports", ADMIN).json["ports"] if it["network_id"] != own]
    assert [found("ports", f"network_id={hidden[0]}", who) for who in (ADMIN, ANNE)] == [1, 0]
    assert [it["network_id"] for it in furnished.get("/v2.0/ports", ANNE).json["ports"]].count(None) == 1
    assert [found("ports", f"status={it}") for it in ("DOWN", "active", "nothing")] == [2, 3, 0]
    assert found("ports", f"name={port['name']}&device_owner=neutron:LOADBALANCER&tenant_id=anne") == 1
    assert [found("ports", f"tenant_id={it}") for it in ("bert", "%C3%A9")] == [0, 0]
    assert [found("moves", f"device_id={it}") for it in (device, UNKNOWN, "none")] == [2, 5, 0]
    assert [found("moves", f"device_id={device}&state={it}") for it in ("failed", "done&state=failed")] == [1, 2]
    assert [found("moves", f"service={it}&cause=OPERATOR") for it in ("LoadBalancer", "other")] == [5, 0]
    for wrong in ("moves?state=lost", "moves?id=x", "moves?sort_key=id", "moves?sort_key=device_id", "ports?fixed_ips=x"):
        assert furnished.get(f"/v2.0/{wrong}", ADMIN).status_code == 400, wrong
    for noun, key, who in (("moves", "state", ADMIN), ("ports", "name", ADMIN), ("ports", "name", ANNE)):
        assert furnished.get(f"/v2.0/{noun}?limit=1&sort_key={key}&marker={UNKNOWN}", who).status_code == 404


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_page_reads_no_more_than_the_page(furnished: House) -> None:
    for noun, table, key in (("ports", "vips", "port_id"), ("moves", "moves", "resource_id")):
        first = furnished.get(f"/v2.0/{noun}?limit=1", ADMIN).json[noun][0][KEYS[noun]]
        with counted(furnished.database) as sent:
            assert len(furnished.get(f"/v2.0/{noun}?limit=2&marker={first}", ADMIN).json[noun]) == 2
        for statement in [statement for statement in sent if f"FROM {table}" in statement]:
            values = ("1",) * statement.count("?")
            explain = f"EXPLAIN QUERY PLAN {statement}"
            plan = furnished.database.read(lambda conn, it=explain, of=values: conn.exec_driver_sql(it, of).all())  # type: ignore[misc]
            steps = [row[-1] for row in plan]
            assert any(step.startswith(f"SEARCH {table} ") and f"({key}" in step for step in steps), steps
            assert not any("TEMP B-TREE" in step or step.startswith("SCAN") for step in steps), steps
