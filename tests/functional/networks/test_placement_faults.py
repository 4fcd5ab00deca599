"""A placement that fails at any later step leaves no allocation behind; a VIP that goes gives back exactly what it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db.exception import DBError

from lbaas_scheduler.allocator.drivers.etcd import EtcdDriver
from lbaas_scheduler.allocator.drivers.etcd_client import Access
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import models, placements, pools
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.domain.devices import VLAN, Interface
from lbaas_scheduler.errors import IpAddressGenerationFailure, NoValidDevice, OverQuota, PoolNotFound, VipExists
from tests.allocator_side import KINDS
from tests.database import open_database
from tests.functional.loadbalancer.lab import Body, Lab, admin

EVERYTHING = (models.vips, models.placements, models.deployments, models.device_networks)


class Broken(Exception):
    """What fails in the middle of a placement."""


def furnished(database: Database, allocator: ResourceAllocator | None = None) -> Lab:
    lab = Lab(database, allocator)
    lab.furnish()
    interfaces = (Interface("eth1", 10, kind=VLAN, vlans="100-109"),)
    lab.only("nobody")
    lab.add_device("wired", interfaces=interfaces)
    return lab


@pytest.fixture
def any_lab(database_url: str) -> Iterator[Lab]:
    database = open_database(database_url, sqlite_synchronous=False)
    yield furnished(database)
    database.dispose()


@pytest.fixture
def lab(sqlite_tables_url: str) -> Iterator[Lab]:
    database = open_database(sqlite_tables_url, sqlite_synchronous=False)
    yield furnished(database)
    database.dispose()


@pytest.fixture
def etcd_lab(sqlite_tables_url: str, etcd_server: Any) -> Iterator[Lab]:
    """Its allocations are elsewhere than its rows."""
    database = open_database(sqlite_tables_url, sqlite_synchronous=False)
    driver = EtcdDriver(Access((etcd_server.url,)), etcd_server.new_namespace())
    yield furnished(database, ResourceAllocator(driver, KINDS))
    driver.close()
    database.dispose()


def held(lab: Lab) -> dict[str, Any]:
    """All that a placement takes."""
    grants = [(grant.kind, grant.value, grant.owner, grant.status) for grant in lab.allocator.list()]
    return {
        "allocations": sorted(grants, key=str),
        "rows": [lab.count(table) for table in EVERYTHING],
        "used": [lab.used(name, "wired") for name in ("vips", "connections")],
    }


class Fault:
    """Breaks the statement of this number, or the commit after the last one, of the one transaction that is watched."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.seen: list[str] = []
        self.fired = ""

    def step(self, what: str) -> None:
        self.seen.append(what)
        if self.at is not None and len(self.seen) == self.at + 1:
            self.fired = what
            raise Broken(what)


@contextmanager
def faulty(lab: Lab, at: int | None) -> Iterator[Fault]:
    """From the claim on, which is where a placement begins to write."""
    fault, engine = Fault(at), lab.database.engine
    watching, over = [False], [False]

    def statement(_conn: Any, _cursor: Any, text: str, *_rest: Any) -> None:
        watching[0] = watching[0] or text.startswith("UPDATE device_load")
        if watching[0] and not over[0] and not fault.fired:
            fault.step(text)

    def commit(_conn: Any) -> None:
        if watching[0] and not over[0] and not fault.fired:
            over[0] = True
            fault.step("COMMIT")

    sa.event.listen(engine, "before_cursor_execute", statement)
    sa.event.listen(engine, "commit", commit)
    try:
        yield fault
    finally:
        sa.event.remove(engine, "before_cursor_execute", statement)
        sa.event.remove(engine, "commit", commit)


def remove(lab: Lab, vip: Body) -> None:
    lab.plugin.delete_vip(lab.me, vip["id"])
    lab.report(Result(vip["id"], lab.version(vip["id"]), removed=True), device_id="wired")


def started_anew(lab: Lab) -> Lab:
    """A server that remembers nothing, so that each takes the same steps."""
    server = Lab(lab.database, ResourceAllocator(lab.allocator.driver, KINDS))
    server.subnet = lab.subnet
    return server


def breaks_at_every_step(lab: Lab) -> list[str]:
    """One placement after the other, each a step further, until one goes through. :returns: the steps."""
    pool = lab.pool()
    remove(lab, lab.vip(pool))  # so that pools of allocations are there
    before, steps = held(lab), list[str]()
    assert [it for it in before["allocations"] if it[2].type != "pool"] == []
    while True:
        server = started_anew(lab)
        with faulty(lab, len(steps)) as fault:
            try:
                vip = server.vip(pool)
            except (Broken, DBError):
                assert held(lab) == before, f"after {fault.fired[:60]}"
                steps.append(fault.fired)
                continue
        break
    assert len([it for it in held(lab)["allocations"] if it[2].type != "pool"]) == 2
    remove(lab, vip)
    assert held(lab) == before, "a VIP gives back what it took"
    return steps


def test_a_fault_at_any_statement_or_the_commit_leaves_nothing_behind(any_lab: Lab) -> None:
    steps = breaks_at_every_step(any_lab)
    allocated = [number for number, step in enumerate(steps) if "allocator_allocations" in step.partition("SELECT")[0]]
    assert len(allocated) == 2
    assert len(steps) - allocated[-1] > 3
    assert steps[-1] == "COMMIT"


def test_nor_does_one_where_the_allocations_are_in_etcd(etcd_lab: Lab) -> None:
    assert breaks_at_every_step(etcd_lab)[-1] == "COMMIT"


class NothingLeft:
    """The quota of VIPs is used up."""

    def reserve(self, _conn: Any, _tenant_id: str, resource: str, _count: int = 1) -> None:
        if resource == "vip":
            raise OverQuota(resource=resource, used=1, limit=1)


def lose_the_claim(_lab: Lab, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placements, "claim", lambda *_: "claim.lost")


def take_the_pool(_lab: Lab, patch: pytest.MonkeyPatch) -> None:
    """Another server gives the pool a VIP while this one chooses a device."""
    lose_the_pool(patch, SimpleNamespace(vip_id="another"))


def remove_the_pool(_lab: Lab, patch: pytest.MonkeyPatch) -> None:
    lose_the_pool(patch, None)


def lose_the_pool(patch: pytest.MonkeyPatch, found: object) -> None:
    """:param found: what is there when somebody looks a second time."""
    real, calls = pools.outline, iter(range(100))
    patch.setattr(pools, "take", lambda *_: False)
    patch.setattr(pools, "outline", lambda conn, id_: real(conn, id_) if next(calls) == 0 else found)


def use_up_the_quota(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lab.plugin.vips._placing, "_core", replace(lab.plugin.vips._placing._core, quotas=NothingLeft()))


def use_up_the_addresses(lab: Lab, _patch: pytest.MonkeyPatch) -> None:
    lab.networks.update_subnet(lab.me, lab.subnet["id"], {"allocation_pools": [{"start": "10.0.0.1", "end": "10.0.0.1"}]})


def tag_the_network(lab: Lab, _patch: pytest.MonkeyPatch) -> None:
    """With a VLAN that the device's interface does not carry."""
    network = lab.networks.create_network(admin(), {"network_type": "vlan", "segmentation_id": 7, "shared": True})
    lab.subnet = lab.networks.create_subnet(admin(), {"network_id": network["id"], "cidr": "10.7.0.0/24"})


REFUSALS = {
    "the claim is lost": (lose_the_claim, NoValidDevice),
    "the interface cannot carry the network": (tag_the_network, NoValidDevice),
    "the pool has a VIP by now": (take_the_pool, VipExists),
    "the pool is gone by now": (remove_the_pool, PoolNotFound),
    "the quota is used up": (use_up_the_quota, OverQuota),
    "no address is left": (use_up_the_addresses, IpAddressGenerationFailure),
}


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("store", ["one", "etcd"])
def test_a_refusal_leaves_nothing_behind(
    store: str, refusal: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab: Lab = request.getfixturevalue("etcd_lab" if store == "etcd" else "lab")
    arrange, error = REFUSALS[refusal]
    pool = lab.pool()
    remove(lab, lab.vip(pool))
    with monkeypatch.context() as patch:
        arrange(lab, patch)
        before = held(lab)
        with pytest.raises(error):
            lab.vip(pool)
        assert held(lab) == before


def test_a_cast_that_fails_leaves_a_vip_that_has_what_it_took(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_bus(_vip_ids: object) -> None:
        raise Broken

    pool = lab.pool()
    remove(lab, lab.vip(pool))
    before = held(lab)
    with monkeypatch.context() as patch:
        patch.setattr(lab.caster, "cast", no_bus)
        with pytest.raises(Broken):
            lab.vip(pool)
    [vip] = lab.plugin.get_vips(lab.me)
    assert {it[1] for it in held(lab)["allocations"] if it[2].type != "pool"} == {vip["address"], 100}
    remove(lab, vip)
    assert held(lab) == before
