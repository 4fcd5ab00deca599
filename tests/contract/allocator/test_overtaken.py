"""Somebody else is faster: between what one has read and what one writes, and between a write and its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lbaas_scheduler.allocator.core.drivers import Changes, StateDriver, Txn
from lbaas_scheduler.allocator.core.requests import Owner, Selector
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.errors import (
    AlreadyDefined,
    DependencyInUse,
    InvalidConfig,
    NotDefined,
    OutOfRange,
    Overlap,
    PoolBusy,
    PoolDraining,
    PoolExhausted,
    QuotaExceeded,
    StaleGeneration,
    StoreUnavailable,
    ValueInUse,
)
from tests.allocator_side import A, S, V, X, address, lowest, new_allocator, subnet, vlan, vxlan

W = Selector("vlan", "w")


class Between(StateDriver):
    """A store on which something happens right before, or after, the ``turn``-th transaction that is committed through it."""

    name = "between"

    def __init__(
        self, driver: StateDriver, before: Callable[[], Any] | None = None, after: Callable[[], Any] | None = None, turn: int = 1
    ) -> None:
        self._driver = driver
        self._before, self._after, self._turn = before, after, turn
        self.max_operations = driver.max_operations

    def apply(self, changes: Changes) -> None:
        self._turn -= 1
        before, after = (self._before, self._after) if self._turn == 0 else (None, None)
        if before:
            before()
        self._driver.apply(changes)
        if after:
            after()

    def begin(self) -> Txn:
        return Txn(self)

    def read(self, query: Any) -> Any:
        return self._driver.read(query)

    def keys(self, query: Any) -> Any:
        return self._driver.keys(query)

    def count(self, query: Any) -> int:
        return self._driver.count(query)

    def watch(self, query: Any, stop: Any, ready: Any) -> Any:
        return self._driver.watch(query, stop, ready)


@pytest.fixture
def slow(driver, clock) -> Callable[..., ResourceAllocator]:
    """Makes an allocator that is overtaken once, by what it is given."""
    return lambda before=None, after=None, turn=1: new_allocator(Between(driver, before, after, turn), clock)


def away():
    raise StoreUnavailable(dependency="the store", reason="nobody there")


def test_two_overlapping_definitions_at_the_same_moment_do_not_both_commit(allocator, slow):
    one = slow(lambda: allocator.define(W, {"ranges": "50-60"}))
    with pytest.raises(Overlap, match="overlaps vlan pool 'w' at 50"):
        one.define(V, {"ranges": "1-100"})
    assert [pool.name for pool in allocator.pools()] == ["w"]
    assert allocator.check() == []


def test_a_pool_is_defined_twice_at_the_same_moment(allocator, slow):
    same = slow(lambda: allocator.define(V, {"ranges": "1-100"})).define(V, {"ranges": "1-100"})
    assert same.id == allocator.pool(V).id, "the same definition is fine"
    allocator.undefine(V)
    with pytest.raises(AlreadyDefined):
        slow(lambda: allocator.define(V, {"ranges": "1-99"})).define(V, {"ranges": "1-100"})
    assert allocator.pool(V).config["ranges"] == "1-99"


def test_local_vlans_are_not_promised_twice_at_the_same_moment(allocator, slow):
    other = Selector("vxlan", "other")
    words = {"local_vlans": "1-100"}
    with pytest.raises(InvalidConfig, match=r"Available free local vlans \(40\) is less than possible vxlans \(50\)"):
        slow(lambda: allocator.define(other, {"range": "1001-1060", **words})).define(X, {"range": "1-50", **words})
    assert [pool.name for pool in allocator.pools()] == ["other"]


def test_a_subnet_is_not_in_two_pools_at_the_same_moment(allocator, slow):
    big = {"cidr": "10.0.0.0/8", "address_scope": "a"}
    with pytest.raises(Overlap):
        slow(lambda: allocator.define(Selector("subnet", "big"), big)).define(S, {"cidr": "10.5.0.0/16", "address_scope": "a"})
    assert [pool.name for pool in allocator.pools()] == ["big"]


@pytest.mark.parametrize("drain", [False, True])
def test_a_pool_is_not_undefined_under_a_new_value(allocator, slow, drain):
    allocator.define(V, {"ranges": "1-100"})
    one = slow(lambda: allocator.allocate(vlan()))
    if drain:
        assert one.undefine(V, drain=True) is False
        assert allocator.pool(V).state == "draining"
    else:
        with pytest.raises(PoolBusy, match=r"still has 1 allocation"):
            one.undefine(V)
    assert len(allocator.list(V)) == 1


def test_a_pool_is_not_resized_under_a_new_value(allocator, slow):
    allocator.define(V, {"ranges": "1-100"})
    with pytest.raises(ValueInUse, match="99"):
        slow(lambda: allocator.allocate(vlan(value=99))).redefine(V, {"ranges": "1-50"})
    assert allocator.pool(V).config["ranges"] == "1-100"
    assert allocator.check() == []


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda it: it.undefine(V), NotDefined),
        (lambda it: it.undefine(V, force=True), NotDefined),
        (lambda it: (it.allocate(vlan("other")), it.undefine(V, drain=True)), PoolDraining),
        (lambda it: it.redefine(V, {"ranges": "2-100"}), OutOfRange),
        (lambda it: it.redefine(V, {"ranges": "1-100", "quotas": {"*": 0}}), QuotaExceeded),
    ],
)
def test_no_value_is_taken_from_a_pool_that_has_changed(allocator, slow, act, error):
    allocator.define(V, {"ranges": "1-100"})
    one = slow(lambda: act(allocator))
    with pytest.raises(error):
        one.allocate(vlan("late", 1 if error is OutOfRange else None, tenant_id="anne"))
    assert allocator.list(owner=Owner("network", "late")) == []
    assert allocator.check() == []


def test_the_last_value_is_given_once(allocator, slow):
    allocator.define(V, {"ranges": "1-1"})
    with pytest.raises(PoolExhausted):
        slow(lambda: allocator.allocate(vlan("fast"))).allocate(vlan("slow"))
    assert [grant.owner.id for grant in allocator.list(V)] == ["fast"]


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_quota_is_not_overdrawn_at_the_same_moment(allocator, slow, before):
    allocator.define(V, {"ranges": "1-100", "quotas": {"anne": before + 1}})
    for number in range(before):
        allocator.allocate(vlan(f"n{number}", tenant_id="anne"))
    with pytest.raises(QuotaExceeded):
        slow(lambda: allocator.allocate(vlan("fast", tenant_id="anne"))).allocate(vlan("slow", tenant_id="anne"))
    assert len(allocator.list(V)) == before + 1


def test_an_owner_asks_twice_at_the_same_moment(allocator, slow):
    allocator.define(V, {"ranges": "1-100"})
    fast = []
    late = slow(lambda: fast.append(allocator.allocate(vlan()))).allocate(vlan())
    assert (late.id, late.created) == (fast[0].id, False)
    assert len(allocator.list(V)) == 1


def test_a_subnet_is_not_pulled_away_under_a_new_address(allocator, slow):
    allocator.define(S, {"cidr": "10.0.0.0/16", "alloc_len": 24})
    first = allocator.allocate(address("p1", pool="", within=subnet("n1")))
    allocator.release(first.id)
    with pytest.raises(DependencyInUse):
        slow(lambda: allocator.allocate(address("p2", pool="", within=subnet("n1")))).release(first.within.id)
    assert allocator.check() == []


def test_a_new_address_is_not_left_in_a_subnet_that_has_gone(allocator, slow):
    allocator.define(S, {"cidr": "10.0.0.0/16", "alloc_len": 24})
    there = allocator.allocate(subnet("n1"))
    grant = slow(lambda: allocator.release(there.id)).allocate(address("p1", pool="", within=subnet("n1")))
    assert (grant.within.created, [pool.parent_allocation_id for pool in allocator.pools("address")]) == (True, [grant.within.id])
    assert allocator.check() == []


def test_a_child_is_not_hung_on_a_parent_that_has_gone(allocator, slow):
    allocator.define(V, {"ranges": "1-100"})
    allocator.define(X, {"range": "1-10"})
    there = allocator.allocate(vxlan())
    # The first try finds out that the parent is there already.
    grant = slow(lambda: allocator.release(there.id), turn=2).allocate(vxlan(children=(vlan(),)))
    assert (grant.created, [child.kind for child in grant.children]) == (True, ["vxlan", "vlan"])
    assert (len(allocator.list()), allocator.check()) == (3, [])


def test_what_is_being_given_out_is_not_carved_out(allocator, slow):
    allocator.define(A, {"cidr": "10.1.1.0/24"})
    web = {"cidr": "10.1.1.0/24", "ranges": "10.1.1.50-10.1.1.60", "parent": "a"}
    with pytest.raises(ValueInUse, match=r"10\.1\.1\.50 of address pool 'a' is in use"):
        slow(lambda: allocator.allocate(address("p1", "10.1.1.50"))).define(Selector("address", "web"), web)
    assert (len(allocator.pools()), allocator.check()) == (1, [])


def test_a_pool_does_not_move_away_under_a_new_value(allocator, slow):
    allocator.define(V, {"ranges": "1-100"})
    with pytest.raises(PoolBusy, match="due to existing 1 vlans"):
        slow(lambda: allocator.allocate(vlan())).redefine(V, {"ranges": "1-100", "physical_network": "other"})
    assert allocator.check() == []


def test_local_vlans_are_not_narrowed_under_a_new_one(allocator, slow):
    lazy = lowest(range="1-10", local_vlans="1-18", capacity_check="lazy")
    allocator.define(X, lazy)
    allocator.define(Selector("vxlan", "y"), {**lazy, "range": "11-20"})
    allocator.allocate(vxlan("mine"))
    theirs = allocator.allocate(vxlan("theirs", pool="y"))
    one = slow(lambda: (allocator.release(theirs.id), allocator.allocate(vxlan("late"))))
    with pytest.raises(ValueInUse, match="2 of vxlan pool 'x' would be outside but is in use"):
        one.redefine(X, {**lazy, "local_vlans": "1-1"})
    assert allocator.check() == []


def test_local_vlans_of_hosts_are_not_narrowed_under_a_new_one(allocator, slow):
    per_host = lowest(range="1-10", local_vlan="per_host", local_vlans="1-9")
    allocator.define(X, per_host)
    with pytest.raises(ValueInUse, match="would be outside but is in use"):
        slow(lambda: allocator.allocate(vxlan(host="h1"))).redefine(X, {**per_host, "local_vlans": "5-9"})
    assert allocator.check() == []


def test_a_hold_that_is_confirmed_in_the_last_moment_is_not_taken_back(allocator, slow, clock):
    allocator.define(V, {"ranges": "1-100"})
    (held,) = allocator.hold([vlan()], 60)
    clock.forward(61)
    report = slow(lambda: allocator.commit(held.id)).reconcile(dry_run=False)
    assert (len(report.expired), len(report.failed)) == (1, 1)
    assert allocator.get(held.id).status == "active"


def test_what_was_changed_since_is_not_given_back(allocator, slow):
    allocator.define(V, {"ranges": "1-100"})
    (held,) = allocator.hold([vlan()], 60)
    with pytest.raises(StaleGeneration):
        slow(lambda: allocator.commit(held.id)).release(held.id, held.generation)
    assert allocator.get(held.id).status == "active"


def test_a_write_that_fails_changes_nothing(allocator, slow):
    allocator.define(V, lowest(ranges="1-2"))
    for act in (
        lambda it: it.define(A, {"cidr": "10.0.0.0/24"}),
        lambda it: it.redefine(V, {"ranges": "1-3"}),
        lambda it: it.undefine(V),
        lambda it: it.allocate(vlan()),
    ):
        before = allocator.pools(), allocator.list(), allocator.history()
        with pytest.raises(StoreUnavailable):
            act(slow(away))
        assert (allocator.pools(), allocator.list(), allocator.history()) == before
    assert allocator.allocate(vlan()).value == 1


def test_an_answer_that_is_lost_can_be_asked_for_again(allocator, slow):
    allocator.define(V, lowest(ranges="1-10"))
    with pytest.raises(StoreUnavailable):
        slow(after=away).allocate(vlan(), request_id="r-1")
    again = allocator.allocate(vlan(), request_id="r-1")
    assert (again.value, again.created) == (1, False)
    assert len(allocator.list(V)) == 1
