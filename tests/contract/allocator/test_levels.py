"""How full pools are, counted: the same on every store, and the same as what reading them says."""

from __future__ import annotations

from lbaas_scheduler.allocator import levels
from tests.allocator_side import A, V, X, address, lowest, vlan, vxlan


def test_levels_are_what_usage_says(allocator):
    allocator.define(V, lowest(ranges="1-10", quarantine_seconds=60))
    allocator.define(X, lowest(range="5000-5009"))
    allocator.define(A, lowest(cidr="10.0.0.0/28", gateway="10.0.0.1"))
    allocator.allocate_many([vlan("n1"), vlan("n2"), vxlan("n1"), address("p1")])
    allocator.hold([vlan("n3")], 60)
    allocator.release(allocator.allocate(vlan("n4")).id)
    found = {level.kind: level for level in allocator.levels()}
    assert found.keys() == {"vlan", "vxlan", "address"}
    for pool in (V, X, A):
        usage, level = allocator.usage(pool), found[pool.kind]
        words = ("scope", "pool", "state", "total", "used", "held", "quarantined")
        assert [getattr(level, word) for word in words] == [getattr(usage, word) for word in words], pool


def test_no_more_pools_are_shown_than_asked_for(allocator):
    context = allocator._context
    for number in range(1, 6):
        pool = V._replace(name=f"v{number}")
        allocator.define(pool, {"ranges": f"{number}00-{number}09"})
        for slot in range(number):
            allocator.allocate(vlan(slot=str(slot), pool=pool.name))
    ids = {pool.name: pool.id for pool in allocator.pools()}
    allocator.define(X, {"range": "5000-5009"})
    assert [level.pool for level in levels.read(context, most=3)] == ["v1", "x", "v2"], "by kind and name, where counting costs"
    tally = {(ids[f"v{number}"], "active"): number for number in range(1, 6)}
    assert [(level.pool, level.used) for level in levels.read(context, tally, most=2)] == [("v5", 5), ("v4", 4)], "the fullest"
