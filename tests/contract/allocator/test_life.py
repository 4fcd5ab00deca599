"""Life after allocation: idempotence, holds, generations, quarantine, quotas, dependence, history, reconciling, watching."""

from __future__ import annotations

import threading
from dataclasses import replace
from queue import SimpleQueue

import pytest

from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.allocator.core.states import Allocation, Pool
from lbaas_scheduler.errors import (
    DependencyInUse,
    InvalidRequest,
    NotAllocated,
    NotAuthorized,
    PoolExhausted,
    QuotaExceeded,
    StaleGeneration,
    ValueInUse,
)
from tests.allocator_side import A, R, S, V, X, address, lowest, new_allocator, slot, subnet, vlan, vxlan

VIP = Owner("vip", "vip-1")


class TestIdempotence:
    def test_an_owner_gets_for_a_slot_what_it_has_there(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        first, again = allocator.allocate(vlan("n1")), allocator.allocate(vlan("n1"))
        assert (first.id, first.value) == (again.id, again.value)
        assert (first.created, again.created) == (True, False)
        assert allocator.allocate(vlan("n1", slot="backup")).id != first.id
        assert allocator.usage(V).used == 2

    def test_even_when_the_pool_is_full_or_draining(self, allocator):
        allocator.define(V, {"ranges": "1-1"})
        first = allocator.allocate(vlan("n1"))
        assert allocator.allocate(vlan("n1")).id == first.id
        allocator.undefine(V, drain=True)
        assert allocator.allocate(vlan("n1")).id == first.id

    def test_asking_again_or_in_vain_skips_no_value(self, allocator):
        allocator.define(V, lowest(ranges="100-199"))
        assert [allocator.allocate(vlan(owner)).value for owner in ("n1", "n1", "n2")] == [100, 100, 101]
        allocator.define(X, {"range": "1-1", "local_vlan": "none"})
        allocator.allocate(vxlan("n3"))
        with pytest.raises(PoolExhausted):
            allocator.allocate_many([vlan("n4"), vlan("n5"), vxlan("n4")])
        assert [allocator.allocate(vlan(owner)).value for owner in ("n4", "n5")] == [102, 103]

    def test_another_value_for_the_same_slot_is_refused(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        allocator.allocate(vlan("n1", 5))
        assert allocator.allocate(vlan("n1", 5)).value == 5
        with pytest.raises(ValueInUse, match="network n1 has 5 in slot '' already; release it before asking for 6"):
            allocator.allocate(vlan("n1", 6))

    def test_a_request_id_gets_what_it_got(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        first = allocator.allocate_many([vlan("n1"), vlan("n2")], request_id="r-1")
        again = allocator.allocate_many([vlan("n1"), vlan("n2")], request_id="r-1")
        other_owner = allocator.allocate_many([vlan("n3"), vlan("n4")], request_id="r-1")
        assert [grant.id for grant in first] == [grant.id for grant in again] == [grant.id for grant in other_owner]
        assert allocator.usage(V).used == 2

    def test_a_nested_request_again_changes_nothing(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        allocator.define(X, {"range": "1-100"})
        request = vxlan("n1", children=(vlan("n1", slot="uplink"),))
        first, again = allocator.allocate(request), allocator.allocate(request)
        assert [child.id for child in first.children] == [child.id for child in again.children]
        assert len(allocator.list()) == 3

    def test_what_a_repetition_lacks_is_added(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        allocator.define(X, {"range": "1-100"})
        first = allocator.allocate(vxlan("n1"))
        again = allocator.allocate(vxlan("n1", children=(vlan("n1"),)))
        assert again.id == first.id
        assert len(again.children) == 2
        assert allocator.release(first.id) == 3


class TestAllOrNothing:
    def test_a_load_balancer_takes_address_vlan_and_subnet_at_once(self, allocator):
        allocator.define(S, lowest(cidr="10.0.0.0/16", alloc_len=24))
        allocator.define(V, lowest(ranges="100-199"))
        request = Request(
            "address", VIP,
            within=Request("subnet", Owner("network", "n1"), "s"),
            options={"gateway": "10.0.0.1", "pick": "lowest"},
            children=(Request("vlan", VIP, "v", slot="eth1"),),
        )  # fmt: skip
        grant = allocator.allocate(request)
        assert (grant.value, grant.children[0].value, grant.within.value) == ("10.0.0.2", 100, "10.0.0.0/24")
        second = allocator.allocate(Request("address", Owner("vip", "vip-2"), within=request.within))
        assert (second.value, second.within.id, second.within.created) == ("10.0.0.3", grant.within.id, False)
        assert allocator.release_owner(VIP) == 2
        assert [grant.value for grant in allocator.list(V)] == []
        assert allocator.check() == []

    @pytest.mark.parametrize("full", ["vlan", "subnet", "slot"])
    def test_what_fails_at_any_depth_leaves_nothing(self, allocator, driver, full):
        allocator.define(V, {"ranges": "5-5"})
        allocator.define(S, {"cidr": "10.0.0.0/24"})
        allocator.define(R, {"first": 0, "last": 0})
        taken = {"vlan": vlan("x"), "subnet": subnet("x"), "slot": slot("x")}[full]
        allocator.allocate(taken)
        before = len(driver.read(Query(Allocation))), len(driver.read(Query(Pool))), len(allocator.history())
        request = Request(
            "address", VIP, within=Request("subnet", Owner("network", "n1"), "s"),
            children=(Request("vlan", VIP, "v", children=(Request("slot", VIP, "r"),)),),
        )  # fmt: skip
        with pytest.raises(PoolExhausted):
            allocator.allocate(request)
        assert (len(driver.read(Query(Allocation))), len(driver.read(Query(Pool))), len(allocator.history())) == before

    def test_a_tree_of_any_depth_goes_with_its_root(self, allocator):
        allocator.define(R, {"last": 9})
        request = slot("c0")
        for number in range(1, 6):
            request = slot(f"c{number}", children=(request,))
        grant = allocator.allocate(request)
        assert allocator.usage(R).used == 6
        leaf = grant
        while leaf.children:
            leaf = leaf.children[0]
        assert allocator.release(leaf.id) == 1, "a child alone"
        assert allocator.release(grant.id) == 5
        assert allocator.list() == []

    def test_a_batch_is_one_transaction(self, allocator):
        allocator.define(R, {"last": 19})
        grants = allocator.allocate_many([slot(f"c{number}") for number in range(20)])
        assert sorted(grant.value for grant in grants) == list(range(20))
        allocator.release_many([grant.id for grant in grants[:15]])
        with pytest.raises(PoolExhausted, match="no slots available"):
            allocator.allocate_many([slot(f"d{number}") for number in range(16)])
        assert allocator.usage(R).used == 5
        assert allocator.allocate_many([]) == []


class TestGivingBack:
    def test_a_stale_generation_is_refused(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        (held,) = allocator.hold([vlan("n1")], 60)
        grant = allocator.commit(held.id, held.generation)
        for act in (allocator.release, allocator.commit):
            with pytest.raises(StaleGeneration):
                act(held.id, held.generation)
        assert allocator.release(grant.id, grant.generation) == 1

    def test_somebody_elses_value_is_not_given_back(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        allocator.allocate(vlan("n1", 5))
        with pytest.raises(NotAuthorized, match="5 of vlan pool 'v' is not network n2's"):
            allocator.release_value(V, 5, Owner("network", "n2"))
        assert [grant.owner.id for grant in allocator.list()] == ["n1"]

    def test_a_subnet_waits_for_its_addresses(self, allocator):
        allocator.define(S, lowest(cidr="10.0.0.0/16", alloc_len=24))
        within = Request("subnet", Owner("network", "n1"), "s")
        grant = allocator.allocate(Request("address", VIP, within=within, options={"gateway": "10.0.0.1"}))
        with pytest.raises(DependencyInUse, match=r"10\.0\.0\.0/24 still carries 1 allocation"):
            allocator.release(grant.within.id)
        allocator.release(grant.id)
        allocator.release(grant.within.id)
        assert allocator.list() == []
        assert [pool.kind for pool in allocator.pools()] == ["subnet"]
        again = allocator.allocate(Request("address", VIP, within=within))
        assert allocator.release(again.within.id, force=True) == 1
        with pytest.raises(NotAllocated):
            allocator.get(again.id)
        assert allocator.check() == []

    def test_an_owner_gives_back_all_it_has(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        allocator.define(X, {"range": "1-100"})
        allocator.allocate_many([vlan("n1"), vlan("n1", slot="b"), vxlan("n1"), vlan("n2")])
        assert allocator.release_owner(Owner("network", "n1")) == 4
        assert allocator.release_owner(Owner("network", "n1")) == 0
        assert [grant.owner.id for grant in allocator.list()] == ["n2"]


class TestHolds:
    def test_a_hold_becomes_final(self, allocator, clock):
        allocator.define(X, {"range": "1-100"})
        (held,) = allocator.hold([vxlan("n1")], 60)
        assert (held.status, allocator.usage(X).held) == ("held", 1)
        assert allocator.commit(held.id).status == "active"
        assert {grant.status for grant in allocator.list()} == {"active"}
        assert [event.op for event in allocator.history()] == ["commit", "commit", "hold", "hold", "define"]
        clock.forward(3600)
        assert allocator.reconcile(dry_run=False).expired == []

    def test_asking_for_what_is_held_makes_it_final(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        (held,) = allocator.hold([vlan("n1")], 60)
        grant = allocator.allocate(vlan("n1"))
        assert (grant.id, grant.status) == (held.id, "active")
        assert allocator.get(held.id).status == "active"

    def test_a_hold_that_is_over_is_not_given_away_before_it_is_taken_back(self, allocator, clock):
        allocator.define(V, {"ranges": "5-5"})
        allocator.hold([vlan("n1")], 60)
        clock.forward(60)
        assert allocator.reconcile(lambda _owner: False, dry_run=False, grace_seconds=0).expired == []
        assert (allocator.usage(V).held, allocator.check()) == (1, [])
        clock.forward(1)
        with pytest.raises(PoolExhausted):
            allocator.allocate(vlan("n2"))
        assert [finding.rule for finding in allocator.check()] == ["expired_hold"]
        assert allocator.reconcile().expired == ["vlan 5 of network n1"], "told, and not done"
        assert allocator.usage(V).held == 1
        allocator.reconcile(dry_run=False)
        assert allocator.allocate(vlan("n2")).value == 5

    def test_a_hold_that_is_over_and_whose_owner_lives_is_made_final(self, allocator, clock):
        allocator.define(X, {"range": "1-100"})
        allocator.hold([vxlan("lives"), vxlan("died"), vxlan("unknown"), vxlan("stranger")], 60)
        clock.forward(61)

        def probe(owner):
            if owner.id == "unknown":
                raise ConnectionError
            return {"lives": True, "died": False}.get(owner.id)

        report = allocator.reconcile(probe, dry_run=False)
        assert (len(report.kept), len(report.expired), report.failed) == (1, 4, [])
        assert {(grant.owner.id, grant.status) for grant in allocator.list()} == {("lives", "active"), ("unknown", "held")}

    @pytest.mark.parametrize("ttl", [0, -1, 10**9])
    def test_a_hold_has_an_end(self, allocator, ttl):
        allocator.define(V, {"ranges": "1-5"})
        with pytest.raises(InvalidRequest, match="ttl_seconds"):
            allocator.hold([vlan("n1")], ttl)


class TestQuarantine:
    def test_a_value_rests_before_it_is_given_again(self, allocator, clock):
        allocator.define(V, {"ranges": "5-5", "quarantine_seconds": 60})
        allocator.release(allocator.allocate(vlan("n1")).id)
        assert (allocator.usage(V).quarantined, allocator.usage(V).free) == (1, 0)
        with pytest.raises(PoolExhausted):
            allocator.allocate(vlan("n2"))
        with pytest.raises(ValueInUse):
            allocator.allocate(vlan("n2", 5))
        clock.forward(61)
        assert allocator.allocate(vlan("n2")).value == 5
        assert allocator.usage(V).quarantined == 0

    def test_a_resting_value_tells_who_had_it_last(self, allocator, clock):
        allocator.define(V, {"ranges": "5-5", "quarantine_seconds": 60})
        allocator.release(allocator.allocate(vlan("n1")).id)
        (resting,) = allocator.list(V, resting=True)
        assert (resting.value, resting.status, resting.last_owner) == (5, "quarantined", "network/n1/")
        clock.forward(61)
        assert allocator.allocate(vlan("n2")).last_owner == ""

    def test_what_rests_is_nobodys(self, allocator):
        allocator.define(V, lowest(ranges="5-6", quarantine_seconds=60, quotas={"anne": 1}))
        first = allocator.allocate(vlan("n1", tenant_id="anne"))
        assert allocator.release(first.id) == 1
        assert allocator.release_many([first.id]) == 0
        for act in (allocator.release, allocator.get, allocator.commit):
            with pytest.raises(NotAllocated):
                act(first.id)
        assert allocator.holder(V, 5) is None
        assert allocator.list(owner=Owner("network", "n1")) == []
        second = allocator.allocate(vlan("n1", tenant_id="anne"))
        assert second.value == 6, "it does not count against a quota"
        allocator.release(second.id)
        assert allocator.undefine(V), "nor as use of its pool"
        assert [event.op for event in allocator.history(V, limit=3)] == ["undefine", "purge", "purge"]

    def test_what_lies_outside_by_now_does_not_rest(self, allocator):
        allocator.define(V, lowest(ranges="5-6", quarantine_seconds=60))
        grants = [allocator.allocate(vlan(name)) for name in ("n1", "n2")]
        allocator.redefine(V, lowest(ranges="5-5", quarantine_seconds=60), drain=True)
        allocator.release_many([grant.id for grant in grants])
        assert [grant.value for grant in allocator.list(V, resting=True)] == [5]

    def test_its_owner_may_have_another_one_meanwhile(self, allocator):
        allocator.define(V, lowest(ranges="5-6", quarantine_seconds=60))
        allocator.release(allocator.allocate(vlan("n1")).id)
        assert allocator.allocate(vlan("n1")).value == 6

    def test_a_requested_value_is_given_after_its_rest(self, allocator, clock):
        allocator.define(V, {"ranges": "1-100", "quarantine_seconds": 60})
        allocator.release(allocator.allocate(vlan("n1", 7)).id)
        clock.forward(60)
        assert allocator.allocate(vlan("n2", 7)).value == 7

    def test_first_in_first_out(self, allocator, clock):
        allocator.define(V, {"ranges": "1-3", "quarantine_seconds": 10})
        grants = [allocator.allocate(vlan(f"n{number}", number)) for number in (1, 2, 3)]
        for place in (1, 2, 0):
            allocator.release(grants[place].id)
            clock.forward(1)
        clock.forward(60)
        assert [allocator.allocate(vlan(f"m{number}")).value for number in range(3)] == [2, 3, 1]

    def test_longest_free_takes_what_was_never_used_first(self, allocator, clock):
        allocator.define(V, {"ranges": "1-3", "pick": "longest_free"})
        first = [allocator.allocate(vlan(f"n{number}")) for number in range(2)]
        for grant in first:
            clock.forward(1)
            allocator.release(grant.id)
        order = [allocator.allocate(vlan(f"m{number}")).value for number in range(3)]
        assert order[1:] == [grant.value for grant in first]

    def test_what_has_rested_is_swept(self, allocator, clock):
        allocator.define(V, {"ranges": "1-10", "quarantine_seconds": 10})
        allocator.release_many([grant.id for grant in allocator.allocate_many([vlan("n1"), vlan("n2")])])
        clock.forward(11)
        assert allocator.reconcile(dry_run=False).rested == 2
        assert allocator.usage(V).quarantined == 0

    def test_a_resting_value_counts_as_used_at_a_resize_until_it_has_rested(self, allocator, clock):
        allocator.define(V, {"ranges": "1-10", "quarantine_seconds": 10})
        allocator.release(allocator.allocate(vlan("n1", 9)).id)
        with pytest.raises(ValueInUse):
            allocator.redefine(V, {"ranges": "1-5", "quarantine_seconds": 10})
        clock.forward(11)
        allocator.redefine(V, {"ranges": "1-5", "quarantine_seconds": 10})
        assert allocator.check() == []


class TestQuotas:
    def test_a_tenant_gets_so_many_and_no_more(self, allocator):
        allocator.define(V, {"ranges": "1-100", "quotas": {"blue": 2, "*": 1}})
        blue = [allocator.allocate(vlan(f"n{number}", tenant_id="blue")) for number in range(2)]
        with pytest.raises(QuotaExceeded, match="Tenant 'blue' has 2 of the 2 values"):
            allocator.allocate(vlan("n3", tenant_id="blue"))
        assert allocator.allocate(vlan("n0", tenant_id="blue")).id == blue[0].id
        allocator.allocate(vlan("n4", tenant_id="red"))
        with pytest.raises(QuotaExceeded):
            allocator.allocate(vlan("n5", tenant_id="red"))
        for number in range(6, 10):
            allocator.allocate(vlan(f"n{number}"))
        allocator.release(blue[0].id)
        allocator.allocate(vlan("n3", tenant_id="blue"))

    def test_what_a_kind_adds_does_not_count(self, allocator):
        allocator.define(X, {"range": "1-9", "quotas": {"*": 2}})
        for name in ("n1", "n2"):
            assert allocator.allocate(vxlan(name, tenant_id="anne")).children
        with pytest.raises(QuotaExceeded):
            allocator.allocate(vxlan("n3", tenant_id="anne"))

    def test_a_batch_counts_as_a_whole(self, allocator):
        allocator.define(V, {"ranges": "1-100", "quotas": {"blue": 2}})
        with pytest.raises(QuotaExceeded, match="3 more do not fit"):
            allocator.allocate_many([vlan(f"n{number}", tenant_id="blue") for number in range(3)])
        assert allocator.list() == []

    @pytest.mark.parametrize("quotas", [{"blue": -1}, {"blue": "2"}, [2], {"blue": True}])
    def test_a_wrong_quota_is_refused(self, allocator, quotas):
        with pytest.raises(InvalidRequest, match="quotas"):
            allocator.define(V, {"ranges": "1-100", "quotas": quotas})


class TestHistory:
    def test_it_tells_who_did_what(self, allocator):
        allocator.define(V, {"ranges": "5-5"}, actor="operator")
        grant = allocator.allocate(vlan("n1"), actor="blue", request_id="r-1")
        allocator.release(grant.id, actor="red")
        done = [(event.op, event.actor, event.owner_id, event.request_id) for event in allocator.history(V)]
        assert done == [("release", "red", "n1", "r-1"), ("allocate", "blue", "n1", "r-1"), ("define", "operator", "", "")]

    def test_it_is_found_by_owner_and_by_allocation(self, allocator):
        allocator.define(V, {"ranges": "1-100"})
        first, second = allocator.allocate_many([vlan("n1"), vlan("n2")])
        allocator.release(first.id)
        assert [event.op for event in allocator.history(owner=Owner("network", "n1"))] == ["release", "allocate"]
        assert [event.op for event in allocator.history(allocation_id=second.id)] == ["allocate"]
        assert len(allocator.history(limit=2)) == 2


class TestReconciling:
    def test_only_what_was_missing_for_long_enough_is_taken_back_and_only_when_asked(self, allocator, clock):
        allocator.define(V, lowest(ranges="1-10"))
        allocator.allocate_many([vlan("dead"), vlan("alive")])

        def probe(owner):
            return owner.id == "alive"

        assert allocator.reconcile(probe, dry_run=False).suspects == ["network dead"]
        clock.forward(3601)
        report = allocator.reconcile(probe)
        assert (report.leaked, allocator.usage(V).used) == (["vlan 1 of network dead"], 2)
        allocator.reconcile(probe, dry_run=False)
        assert [grant.owner.id for grant in allocator.list()] == ["alive"]

    def test_who_came_back_starts_anew(self, allocator, clock):
        allocator.define(V, {"ranges": "1-10"})
        allocator.allocate(vlan("n1"))
        allocator.reconcile(lambda _owner: False, dry_run=False)
        clock.forward(3601)
        allocator.reconcile(lambda _owner: True, dry_run=False)
        assert allocator.reconcile(lambda _owner: False, dry_run=False).leaked == []
        assert allocator.usage(V).used == 1

    def test_who_gave_everything_back_is_no_suspect_any_more(self, allocator, clock):
        allocator.define(V, {"ranges": "1-100"})
        for _ in range(2):
            allocator.allocate(vlan("gone"))
            report = allocator.reconcile(lambda _owner: False, dry_run=False, grace_seconds=60)
            assert (report.suspects, report.leaked) == (["network gone"], [])
            allocator.release_owner(Owner("network", "gone"))
            clock.forward(61)
            allocator.reconcile(lambda _owner: False, dry_run=False, grace_seconds=60)

    def test_nothing_is_freed_by_a_probe_that_fails_or_cannot_tell(self, allocator, clock):
        allocator.define(V, {"ranges": "1-10"})
        allocator.allocate(vlan("n1"))
        allocator.reconcile(lambda _owner: False, dry_run=False)
        clock.forward(3601)

        def broken(_owner):
            raise OSError("no route to the owner")

        for probe in (broken, lambda _owner: None):
            report = allocator.reconcile(probe, dry_run=False)
            assert (report.unknown, report.leaked) == (["network n1"], [])
        assert allocator.usage(V).used == 1

    def test_a_drained_pool_goes_with_its_last_value(self, allocator):
        allocator.define(V, {"ranges": "1-10"})
        grant = allocator.allocate(vlan("n1"))
        allocator.undefine(V, drain=True)
        assert allocator.reconcile(dry_run=False).undefined == []
        allocator.release(grant.id)
        assert allocator.reconcile(dry_run=False).undefined == ["vlan v"]
        assert allocator.pools() == []

    def test_what_lost_its_pool_or_parent_is_found_and_taken_back(self, allocator, driver):
        allocator.define(X, {"range": "1-10"})
        grant = allocator.allocate(vxlan("n1"))
        txn = driver.begin()
        txn.delete(driver.first(Allocation, "id", grant.id))
        txn.commit()
        assert [finding.rule for finding in allocator.check()] == ["no_parent", "lost"]
        allocator.reconcile(dry_run=False)
        assert ([finding.rule for finding in allocator.check()], allocator.list()) == (["lost"], [])
        allocator.allocate(vxlan("n1"))
        txn = driver.begin()
        txn.delete(driver.get(Pool, "vxlan", "cluster", "x"))
        txn.commit()
        assert {finding.rule for finding in allocator.check()} == {"no_pool", "lost_claim", "lost"}
        allocator.reconcile(dry_run=False)
        assert allocator.list() == []

    def test_old_answers_and_old_history_are_forgotten(self, allocator, clock):
        allocator.define(V, {"ranges": "1-10"})
        allocator.allocate(vlan("n1"), request_id="r-1")
        clock.forward(8 * 86_400)
        assert allocator.reconcile(dry_run=False).forgotten == 1
        assert allocator.allocate(vlan("n2"), request_id="r-1").created
        assert len(allocator.history()) == 3
        clock.forward(50 * 365 * 86_400)
        assert allocator.reconcile(dry_run=False, history_days=0).forgotten == 1, "0 keeps it for ever"
        assert allocator.reconcile(dry_run=False).forgotten == 3
        assert (allocator.history(), len(allocator.list()), allocator.check()) == ([], 2, [])


class TestBadInput:
    @pytest.mark.parametrize(
        ("request_", "text"),
        [
            (vlan("x" * 10_000), "The owner id has 10000 characters; 255 are the most"),
            (vlan(""), "The owner id is empty"),
            (vlan("a\nb"), "cannot be printed"),
            (vlan("blue "), "ends with a blank"),
            (vlan(5), "The owner id is 5; give a text"),
            (vlan("n1", slot="a#b"), "'#'"),
            (vlan("n1", slot="s" * 200), "The slot has 200 characters"),
            (vlan("n1", tenant_id="t" * 300), "The tenant id has 300"),
            (vlan("n1", pool=""), "The pool name is empty"),
            (vlan("n1", scope="galaxy"), "give cluster, tenant:ID or host:NAME"),
            (vlan("n1", options={}), "options belong to"),
            (Request("vlan", VIP, within=subnet("n1")), "for an address in a subnet"),
            (Request("vlan", Owner("pool", "p1"), "v"), "Owner type 'pool' is a pool's own; give another one"),
            (Request("address", VIP, [], within=subnet("n1")), "leave its pool empty"),
            (Request("address", VIP, scope=[], within=subnet("n1")), r"The scope is \[\]; give a text"),
            (Request("address", VIP, within=subnet("n1"), options={"cidr": "10.0.0.0/8"}), "names cidr, which the subnet says"),
        ],
    )
    def test_a_wrong_request_is_refused_by_name(self, allocator, request_, text):
        allocator.define(V, {"ranges": "1-10"})
        with pytest.raises(InvalidRequest, match=text):
            allocator.allocate(request_)
        assert allocator.list() == []

    def test_texts_of_any_language_are_fine(self, allocator):
        allocator.define(V, {"ranges": "1-10"})
        for name in ("网络/一", 'it\'s "quoted" %2F', "a/b", "%", "\N{PILE OF POO}" * 100, "' OR 1=1 --"):
            grant = allocator.allocate(vlan(name))
            assert [found.id for found in allocator.list(owner=Owner("network", name))] == [grant.id]
            assert allocator.release_owner(Owner("network", name)) == 1

    def test_the_longest_texts_fit_into_the_store(self, allocator):
        allocator.define(X, {"range": "100-100", "local_vlan": "per_host", "quarantine_seconds": 60})
        owner = Owner("t" * 64, "i" * 255)
        request = Request("vxlan", owner, "x", slot="s" * 128, host="h" * 128, tenant_id="a" * 255)
        grant = allocator.allocate(request, request_id="r" * 128, actor="c" * 255)
        assert allocator.allocate(request, request_id="r" * 128) == replace(grant, created=False, children=(
            replace(grant.children[0], created=False),))  # fmt: skip
        assert allocator.release(grant.id) == 2
        assert [event.slot[:3] for event in allocator.history(owner=owner)] == ["sss"] * 4

    def test_upper_and_lower_case_are_different_owners(self, allocator):
        allocator.define(V, {"ranges": "1-10"})
        assert allocator.allocate(vlan("Blue")).id != allocator.allocate(vlan("blue")).id


class TestTwoManagers:
    def test_a_stale_view_of_a_pool_is_found_out(self, allocator, driver, clock):
        other = new_allocator(driver, clock)
        allocator.define(V, {"ranges": "1-100"})
        other.allocate(vlan("n1", 50))
        allocator.redefine(V, {"ranges": "40-60"})
        for number in range(10):
            assert 40 <= other.allocate(vlan(f"m{number}")).value <= 60
        allocator.undefine(V, force=True)
        with pytest.raises(Exception, match="No resource found"):
            other.allocate(vlan("n2"))
        allocator.define(V, {"ranges": "1-5"})
        assert other.allocate(vlan("n2")).value <= 5

    def test_a_stale_view_of_free_values_is_found_out(self, allocator, driver, clock):
        other = new_allocator(driver, clock)
        allocator.define(R, {"last": 29})
        values = {
            it.allocate(slot(f"{name}{number}")).value for number in range(15) for name, it in (("a", allocator), ("b", other))
        }
        assert values == set(range(30))

    def test_scopes_are_data(self, allocator):
        for scope in ("tenant:blue", "host:h1", "cluster"):
            selector = Selector("slot", "r", scope)
            allocator.define(selector, {"last": 0, "rack": scope})
            assert allocator.allocate(slot("c1", scope=scope)).value == 0
        assert len(allocator.pools()) == 3


class TestWatching:
    @pytest.fixture
    def changes(self, allocator):
        """What a watcher has seen; the watch runs when the test begins."""
        stop, ready, seen = threading.Event(), threading.Event(), SimpleQueue()

        def follow():
            for change in allocator.watch(stop, ready):
                seen.put(change)

        thread = threading.Thread(target=follow, daemon=True)
        allocator.define(V, {"ranges": "1-100"})
        thread.start()
        assert ready.wait(20)
        yield seen
        stop.set()
        thread.join(20)
        assert not thread.is_alive()

    def test_cases_44_45_46_made_changed_and_gone(self, allocator, changes):
        (held,) = allocator.hold([vlan("n1")], 60)
        made = changes.get(timeout=20)
        assert (made.previous, made.current.id, made.current.status) == (None, held.id, "held")
        allocator.commit(held.id)
        changed = changes.get(timeout=20)
        assert (changed.previous.status, changed.current.status) == ("held", "active")
        allocator.release(held.id)
        gone = changes.get(timeout=20)
        assert (gone.current, gone.previous.id) == (None, held.id)


def test_addresses_and_slots_are_used(allocator):
    """The fifth kind beside the others."""
    allocator.define(R, {"last": 1})
    allocator.define(A, lowest(cidr="10.1.1.0/24"))
    grant = allocator.allocate(address("p1", children=(slot("c1"),)))
    assert (grant.value, grant.children[0].value) == ("10.1.1.1", 0)
