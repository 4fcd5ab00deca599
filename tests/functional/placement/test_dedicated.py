"""Tenancy "dedicated": a device belongs to one tenant for as long as it holds anything of that tenant's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lbaas_scheduler.db import placements
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.requests import Tenancy
from lbaas_scheduler.errors import InvalidRequest, NoValidDevice
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from tests.factories import add_devices, new_device, new_request
from tests.functional.placement.conftest import codes, drift, new_placer, snapshot


def place(placer: Placer, tenant: str, resource_id: str = "", tenancy: Tenancy = Tenancy.DEDICATED, **fields: Any) -> str:
    return placer.place(new_request(resource_id, tenant_id=tenant, tenancy=tenancy, **fields)).device_id


def test_a_tenants_resources_share_its_device_and_nobody_else_gets_on_it(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", vips=3), new_device("b", vips=3), new_device("c", vips=9))
    mine = {place(placer, "tenant") for _ in range(3)}
    theirs = {place(placer, "other") for _ in range(3)}
    assert (len(mine), len(theirs), mine & theirs) == (1, 1, set())
    [rest] = {"a", "b", "c"} - mine - theirs
    assert place(placer, "third", tenancy=Tenancy.PRIVATE_FIRST) == rest
    with pytest.raises(NoValidDevice) as error:
        place(placer, "fourth")
    assert set(codes(error)) <= {"dedicated", "capacity.VIPS"}


def test_the_last_resource_that_leaves_frees_the_device_for_others(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a"))
    before = snapshot(database)
    for name in ("one", "two"):
        place(placer, "tenant", name)
    database.write(lambda conn: placements.release(conn, "one"))
    with pytest.raises(NoValidDevice) as error:
        place(placer, "other", tenancy=Tenancy.PRIVATE_FIRST)
    assert codes(error) == {"dedicated": 1}
    database.write(lambda conn: placements.release(conn, "two"))
    assert snapshot(database) == before
    assert place(placer, "other") == "a"


def test_a_claim_that_fails_half_way_leaves_the_device_to_everybody(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a"))
    before = snapshot(database)

    def fail(*_: Any) -> None:
        raise InvalidRequest(reason="no address is left")

    with pytest.raises(InvalidRequest):
        placer.place(new_request(tenancy=Tenancy.DEDICATED), within=fail)
    assert snapshot(database) == before


def test_what_is_not_counted_in_vips_cannot_have_a_device_of_its_own(placer: Placer) -> None:
    with pytest.raises(InvalidRequest, match="only what demands VIPS"):
        place(placer, "tenant", demand={})


def test_tenants_that_race_for_devices_of_their_own_never_share_one(database: Database) -> None:
    add_devices(database, *(new_device(f"d{number}", vips=4) for number in range(3)))
    placer = new_placer(database)

    def create(turn: int) -> tuple[str, str] | None:
        tenant = f"tenant-{turn % 4}"
        tenancy = Tenancy.DEDICATED if turn % 4 else Tenancy.PRIVATE_FIRST
        try:
            return place(placer, tenant, tenancy=tenancy), tenant
        except NoValidDevice:
            return None

    with ThreadPoolExecutor(4) as pool:
        placed = [it for it in pool.map(create, range(24)) if it]
    on = {device: {tenant for where, tenant in placed if where == device} for device, _ in placed}
    assert all(len(tenants) == 1 for tenants in on.values()), on
    assert drift(database) == {}
