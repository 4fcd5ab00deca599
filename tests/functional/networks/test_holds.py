"""Allocations in etcd, rows in SQL: what a server that died in between leaves is given back, or made final."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from oslo_config import cfg

from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.allocator.drivers.etcd import BRIEF_SECONDS, EtcdDriver
from lbaas_scheduler.allocator.drivers.etcd_client import Access
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.conf import allocator as options
from lbaas_scheduler.db import owed_releases, restores, schedulable
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.domain.devices import VLAN, Interface
from lbaas_scheduler.errors import StoreUnavailable
from lbaas_scheduler.networks import segments
from lbaas_scheduler.networks.comparison import compare
from lbaas_scheduler.networks.upkeep import Census, OwnerProbe, Upkeep
from tests.allocator_side import KINDS, Clock, wipe
from tests.database import open_database
from tests.functional.loadbalancer.lab import Body, Lab


class Shop:
    """A lab whose clock is set by hand, and the address of what it is made of."""

    def __init__(self, url: str, etcd: Any) -> None:
        self.words = [url, etcd.url, etcd.new_namespace()]
        self.driver = EtcdDriver(Access((etcd.url,)), self.words[2])
        self.clock = Clock()
        self.clock.at = utcnow()
        self.lab = Lab(open_database(url), ResourceAllocator(self.driver, KINDS, self.clock))
        self.lab.furnish()
        self.lab.only("nobody")
        self.lab.add_device("wired", interfaces=(Interface("eth1", 10, kind=VLAN, vlans="100-109"),))
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        options.register_opts(conf)
        connector, database = self.lab.connector, self.lab.database
        self.upkeep = Upkeep(self.lab.allocator, connector.segments, database, conf, self.seconds)

    def close(self) -> None:
        self.driver.close()
        self.lab.database.dispose()

    def seconds(self) -> float:
        return self.clock.at.timestamp()

    def die_at(self, step: str) -> Body:
        """A server begins to place a VIP and is killed. :returns: the pool."""
        pool = self.lab.pool()
        words = [*self.words, pool["id"], self.lab.subnet["id"], step]
        done = subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.functional.networks.mortal", *words], check=False)
        assert done.returncode == -signal.SIGKILL
        return pool

    def taken(self) -> dict[str, str]:
        """Kind → status, of what VIPs and their wiring have."""
        return {grant.kind: grant.status for grant in self.lab.allocator.list() if grant.owner.type != "pool"}

    def tend(self, seconds: float) -> None:
        self.clock.forward(seconds)
        for step in self.upkeep.steps():
            step()


@pytest.fixture
def shop(sqlite_tables_url: str, etcd_server: Any) -> Iterator[Shop]:
    shop = Shop(sqlite_tables_url, etcd_server)
    yield shop
    shop.close()


def test_what_a_dead_server_held_for_nothing_is_given_back_when_its_time_is_over(shop: Shop) -> None:
    pool, kinds = shop.die_at("commit"), {"address", "vlan"}
    assert shop.taken() == dict.fromkeys(kinds, "held")
    shop.tend(200)
    assert shop.taken() == dict.fromkeys(kinds, "held"), "others may be slow only"
    shop.tend(200)
    assert shop.taken() == {}
    assert shop.lab.plugin.get_vips(shop.lab.me) == []
    vip = shop.lab.vip(pool)
    assert (vip["address"], shop.taken()) == ("10.0.0.2", {"address": "active", "vlan": "active"})


def test_what_a_dead_server_held_for_a_vip_that_is_placed_is_the_vips(shop: Shop) -> None:
    shop.die_at("settle")
    [vip] = shop.lab.plugin.get_vips(shop.lab.me)
    assert shop.taken()["address"] == "held"
    shop.tend(400)
    assert shop.taken() == {"address": "active", "vlan": "active"}
    assert shop.lab.allocator.holder(*_address(shop, vip)).owner.id == vip["id"]  # type: ignore[union-attr]
    owners = {grant.owner for grant in shop.lab.allocator.list() if grant.owner.type != "pool"}
    for probe in (OwnerProbe(shop.lab.database), Census(shop.lab.database)):
        assert [probe(owner) for owner in owners] == [True, True]
        assert [probe(owner._replace(id="gone/gone")) for owner in owners] == [False, False]
        assert probe(Owner("router", "r1")) is None
    shop.lab.plugin.delete_vip(shop.lab.me, vip["id"])
    shop.lab.report(Result(vip["id"], shop.lab.version(vip["id"]), removed=True), device_id="wired")
    assert shop.taken() == {}


def test_a_server_that_dies_after_a_vip_is_gone_leaves_what_is_found_missing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = shop.lab
    vip = lab.vip()
    with monkeypatch.context() as patch:
        patch.setattr(lab.connector, "dispose", lambda _vip_id: None)
        patch.setattr(lab.connector, "unwire", lambda *_: None)
        lab.plugin.delete_vip(lab.me, vip["id"])
        lab.report(Result(vip["id"], lab.version(vip["id"]), removed=True), device_id="wired")
    assert shop.taken() == {"address": "active", "vlan": "active"}
    shop.tend(400)
    assert shop.taken() == {"vlan": "active"}, "suspected, and not for long enough; of the address the row says that it is over"
    shop.tend(4000)
    assert shop.taken() == {}


def test_while_etcd_is_away_a_vip_is_refused_and_one_that_goes_gives_back_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = shop.lab
    vip = lab.vip()

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable(dependency="etcd", reason="it is away")

    with monkeypatch.context() as patch:
        for name in ("apply", "read"):
            patch.setattr(type(shop.driver), name, away)
        with pytest.raises(StoreUnavailable):
            lab.vip()
        lab.plugin.delete_vip(lab.me, vip["id"])
        lab.report(Result(vip["id"], lab.version(vip["id"]), removed=True), device_id="wired")
    assert lab.plugin.get_vips(lab.me) == []
    shop.tend(1)
    assert shop.taken() == {}, "both are given back with the next cycle"


def test_a_store_that_was_exchanged_learns_of_the_vips_that_are_there(shop: Shop) -> None:
    vip = shop.lab.vip()
    wipe(shop.driver)
    other = shop.lab.vip()
    for one in (vip, other):
        assert [it.value for it in shop.lab.allocator.list(owner=Owner("vip", one["id"]))] == [one["address"]]


def test_nobody_waits_for_a_lock_while_etcd_does_not_answer(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = shop.lab
    vip = lab.vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    gone = Result(vip["id"], lab.version(vip["id"]), removed=True)
    asked: list[bool] = []

    def away(*_: object, **__: object) -> None:
        tried = helper.submit(lab.database.write, lambda conn: schedulable.lock(conn, ["wired"]))
        futures.wait([tried], timeout=2)
        asked.append(tried.done())
        raise StoreUnavailable(dependency="etcd", reason="it is away")

    with ThreadPoolExecutor(1) as helper, monkeypatch.context() as patch:
        for name in ("apply", "read"):
            patch.setattr(type(shop.driver), name, away)
        lab.report(gone, device_id="wired")
        assert asked == [True], "once, and with nothing locked"
    shop.tend(1)
    assert shop.taken() == {}


def test_a_placement_gives_up_early_where_etcd_falls_silent_while_its_device_is_locked(
    sqlite_tables_url: str, own_etcd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(sqlite_tables_url, own_etcd)
    begun: list[float] = []

    def fall_silent(*arguments: Any) -> None:
        own_etcd.daemon.signal(signal.SIGSTOP)
        begun.append(time.monotonic())
        define(*arguments)

    define = segments._define
    monkeypatch.setattr(segments, "_define", fall_silent)
    try:
        with pytest.raises(StoreUnavailable):
            shop.lab.vip()
        shop.lab.database.write(lambda conn: schedulable.lock(conn, ["wired"]))
        # Once for the segment, once for giving the address back.
        assert time.monotonic() - begun[0] < 3 * BRIEF_SECONDS
    finally:
        own_etcd.daemon.signal(signal.SIGCONT)
        shop.close()


def test_what_goes_while_etcd_is_away_is_given_back_as_soon_as_it_answers_even_by_another_server(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = shop.lab
    vip = lab.vip()

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable(dependency="etcd", reason="it is away")

    lab.plugin.delete_vip(lab.me, vip["id"])
    with monkeypatch.context() as patch:
        for name in ("apply", "read"):
            patch.setattr(type(shop.driver), name, away)
        lab.report(Result(vip["id"], lab.version(vip["id"]), removed=True), device_id="wired")
        # What that server remembers dies with it.
        lab.connector.segments._unsettled.clear()
        with pytest.raises(StoreUnavailable):
            shop.upkeep.settle()
    assert shop.taken() == {"address": "active", "vlan": "active"}
    shop.tend(1)
    assert shop.taken() == {}
    assert lab.database.read(lambda conn: owed_releases.oldest(conn, 10)) == []


def test_an_address_that_a_restored_vip_uses_is_taken_for_it(shop: Shop) -> None:
    """etcd has a younger state than the database: the VIP is gone there."""
    lab = shop.lab
    vip = lab.vip()
    lab.allocator.release_owner(Owner("vip", vip["id"]))

    assert len(compare(lab.database, lab.allocator, repair=False)) == 1
    assert compare(lab.database, lab.allocator, repair=True) == []
    holder = lab.allocator.holder(*_address(shop, vip))
    assert holder is not None
    assert holder.owner == Owner("vip", vip["id"])
    assert lab.vip()["address"] != vip["address"]


def test_one_address_for_two_is_told_and_left_alone(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    lab = shop.lab
    vip = lab.vip()
    lab.allocator.release_owner(Owner("vip", vip["id"]))
    selector, address = _address(shop, vip)
    lab.allocator.allocate(Request("address", Owner("vip", "new"), selector.name, value=address))

    shop.tend(7200)
    assert (
        f"Address {address} of subnet {selector.name} is VIP {vip['id']}'s, and the allocator gave it to vip new" in caplog.text
    )


def test_nothing_is_given_back_while_a_restore_is_under_way(shop: Shop) -> None:
    """VIPs made since the backup serve, with addresses that only etcd knows."""
    lab = shop.lab
    lab.database.write(restores.begin)
    lab.allocator.allocate(Request("address", Owner("vip", "new"), lab.subnet["id"]))
    for _ in range(3):
        shop.tend(7200)
    assert shop.taken() == {"address": "active"}

    lab.database.write(restores.end)
    for _ in range(2):
        shop.tend(7200)
    assert shop.taken() == {}


def _address(shop: Shop, vip: Body) -> tuple[Selector, str]:
    return Selector("address", shop.lab.subnet["id"]), vip["address"]
