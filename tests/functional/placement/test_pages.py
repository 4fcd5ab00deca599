"""What a page of candidates holds, on every database."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db.candidates import SqlCandidates
from lbaas_scheduler.db.models import device_load, devices
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.capacity import Usage
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.fleet import Page, PageQuery, Source
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from lbaas_scheduler.scheduler.classes import resolve
from tests.factories import add_agent, add_devices, new_device, new_request
from tests.functional.placement.conftest import AGENT_DOWN_SECONDS


def page(
    database: Database,
    source: Source = Source.BY_AGE,
    *,
    size: int = 32,
    seen: Collection[str] = (),
    pivot: float = 0.0,
    **fields: Any,
) -> Page:
    reader = SqlCandidates(database, AGENT_DOWN_SECONDS)
    request = new_request(**fields)
    [class_ids] = resolve(reader.classes(), request).tiers
    return reader.page(PageQuery(request, class_ids, source, size, frozenset(seen), pivot))


def ids(page: Page) -> list[str]:
    return [candidate.device.id for candidate in page.candidates]


def fill(placer: Placer, device_id: str, count: int) -> None:
    for _ in range(count):
        placer.place(new_request(device_hint=device_id))


def test_pages_come_in_the_order_of_their_source_across_classes(database: Database, placer: Placer) -> None:
    add_devices(database, *(new_device(name, zone=name) for name in "abcd"))
    for device_id, count in {"a": 3, "b": 1, "c": 2}.items():
        fill(placer, device_id, count)
    assert ids(page(database, Source.BY_AGE)) == ["a", "b", "c", "d"]
    assert ids(page(database, Source.BY_LOAD)) == ["d", "b", "c", "a"]
    assert ids(page(database, Source.BY_FILL)) == ["a", "c", "b", "d"]


def test_a_page_has_at_most_the_size_that_was_asked_for(database: Database) -> None:
    add_devices(database, *(new_device(name, zone=name) for name in "abcd"))
    first = page(database, size=3)
    assert (ids(first), first.last) == (["a", "b", "c"], False)
    rest = page(database, size=3, seen=["a", "b", "c"])
    assert (ids(rest), rest.last) == (["d"], True)


@pytest.mark.parametrize("pivot", [0.0, 0.3, 0.6, 0.99])
def test_a_random_page_goes_round_at_the_end(database: Database, pivot: float) -> None:
    names = [f"d{number}" for number in range(10)]
    add_devices(database, *(new_device(name) for name in names))
    highest = database.read(lambda conn: conn.scalar(sa.select(sa.func.max(device_load.c.seq))))
    # Numbers go on where an earlier test left off, and the pivot is a share of the highest.
    share = (highest - len(names) * (1 - pivot)) / highest
    found = ids(page(database, Source.RANDOM, size=6, pivot=share))
    start = names.index(found[0])
    assert found == (names + names)[start : start + 6]
    assert abs(start - 10 * pivot) <= 1
    rest = page(database, Source.RANDOM, size=6, pivot=pivot, seen=found)
    assert sorted(found + ids(rest)) == names


def test_only_enabled_online_devices_with_an_agent_are_read(database: Database) -> None:
    add_devices(
        database,
        new_device("good"),
        new_device("draining", admin_state=AdminState.DRAINING),
        new_device("disabled", admin_state=AdminState.DISABLED),
        new_device("offline", status=DeviceStatus.OFFLINE),
        # A10 STACK-2941: one that is being built, or is coming back, was given VIPs.
        new_device("building", status=DeviceStatus.UNKNOWN),
        new_device("returning", status=DeviceStatus.SYNCING),
    )
    add_devices(database, new_device("orphan"), agent=None)
    assert ids(page(database)) == ["good"]


def test_a_device_of_a_silent_agent_is_not_offered_even_before_the_registry_noticed(database: Database) -> None:
    add_agent(database, "dead", heartbeat_at=utcnow() - timedelta(seconds=AGENT_DOWN_SECONDS + 1))
    add_agent(database, "resting", up=False)
    add_devices(database, new_device("a"))
    add_devices(database, new_device("b"), agent="dead")
    add_devices(database, new_device("c"), agent="resting")
    found = page(database)
    assert ids(found) == ["a"]
    assert [(it.device_id, it.code) for it in found.rejections] == [("b", "agent.down"), ("c", "agent.disabled")]


@pytest.mark.parametrize(("demand", "expected"), [(10, ["small", "big", "any"]), (11, ["big", "any"]), (500, ["any"])])
def test_only_devices_with_room_for_the_whole_demand_are_read(database: Database, demand: int, expected: list[str]) -> None:
    for limited in ("CONNECTIONS", "CUSTOM_SSL_TPS"):
        totals = {"small": 10, "big": 100, "any": -1}
        add_devices(
            database,
            *(new_device(f"{limited}-{name}", zone=limited, capacities={limited: total}) for name, total in totals.items()),
        )
        found = page(database, zone=limited, demand={"VIPS": 1, limited: demand})
        assert ids(found) == [f"{limited}-{name}" for name in expected]


def test_a_device_without_a_vendors_own_class_cannot_give_any_of_it(database: Database) -> None:
    add_devices(database, new_device("a"), new_device("b", capacities={"CUSTOM_SSL_TPS": 5}))
    assert ids(page(database, demand={"VIPS": 1, "CUSTOM_SSL_TPS": 1})) == ["b"]


def test_a_candidate_says_how_full_it_is_whom_it_hosts_and_what_it_is_wired_to(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", vips=4), new_device("b"))
    placer.place(new_request(device_hint="a", tenant_id="other", networks=("net-1",)))
    full, empty = page(database, tenant_id="other", networks=("net-1", "net-2")).candidates
    assert full.usage["VIPS"] == Usage(1, 4)
    assert (full.load, full.hosts_tenant, full.networks, full.agent_host) == (2500, True, {"net-1"}, "agent-1")
    assert (empty.load, empty.hosts_tenant, empty.networks) == (0, False, frozenset())


def test_a_changed_device_is_read_again(database: Database) -> None:
    reader = SqlCandidates(database, AGENT_DOWN_SECONDS)
    add_devices(database, new_device("a", description="old"))
    request = new_request()
    query = PageQuery(request, resolve(reader.classes(), request).tiers[0], Source.BY_AGE, 32)
    assert reader.page(query).candidates[0].device.description == "old"
    change(database, "a", description="new")
    assert reader.page(query).candidates[0].device.description == "new"


def change(database: Database, device_id: str, **values: Any) -> None:
    changed = sa.update(devices).where(devices.c.id == device_id).values(generation=devices.c.generation + 1, **values)
    database.write(lambda conn: conn.execute(changed))
