"""Whatever a document holds, it is done or refused in words."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lbaas_scheduler.allocator.api import AllocatorAPI
from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from lbaas_scheduler.errors import LBaaSError
from tests.allocator_side import KINDS, new_allocator

WORDS = {
    "vlan": {"ranges": "5-9", "physical_network": "p"},
    "vxlan": {"range": "5-9", "underlay": "u", "local_vlan": "per_host", "local_vlans": "5-9", "local_network": "p",
        "capacity_check": "lazy"},
    "subnet": {"cidr": "10.0.0.0/16", "alloc_len": 24, "address_scope": "a"},
    "address": {"cidr": "10.0.0.0/24", "gateway": "10.0.0.1", "ranges": "10.0.0.1-10.0.0.9", "reserved": ["10.0.0.2"],
        "address_scope": "a", "parent": "q"},
    "slot": {"first": 0, "last": 5, "rack": "r"},
}  # fmt: skip
COMMON = {"pick": "lowest", "quarantine_seconds": 60, "quotas": {"*": 3}}
OWNER = {"type": "network", "id": "n1"}

pieces = st.sampled_from(["", "0", "5-9", "9-5", "10.0.0.0/8", "10.0.0.1", "::/64", "2001:db8::1", "::ffff:10.0.0.1",
    "fe80::1%eth0", "\x00", "\ud800", "a" * 300, "١-٣", "1e5", "#", "tenant:x"])  # fmt: skip
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), pieces, st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(pieces, inner, max_size=3)),
    max_leaves=6,
)


def words_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """A good configuration, of which some words are wild."""
    good = WORDS[kind] | COMMON
    return st.fixed_dictionaries({}, optional={word: st.one_of(st.just(value), values) for word, value in good.items()})


configs = st.one_of([st.tuples(st.just(kind), words_of(kind)) for kind in sorted(WORDS)])
requests = st.fixed_dictionaries(
    {"kind": st.sampled_from(sorted(WORDS)), "owner": st.one_of(st.just(OWNER), values)},
    optional=dict.fromkeys(("pool", "scope", "slot", "tenant_id", "value", "host", "children", "within", "options"), values),
)


def tried(act: Any) -> Any:
    try:
        return act()
    except LBaaSError as error:
        refused = error
    assert 0 < len(refused.message) < 1_000
    return None


@settings(max_examples=60)
@given(configs, values, values)
def test_a_definition_and_what_is_asked_of_it(config: tuple[str, dict[str, Any]], value: Any, name: Any) -> None:
    api = AllocatorAPI(new_allocator(MemoryDriver()))
    kind, words = config
    pool = {"kind": kind, "name": "v"}
    done = tried(lambda: api.define(pool, words))
    if done is None:
        assert api.pools() == []
        return
    json.dumps(done)
    assert api.define(pool, done["config"])["id"] == done["id"], "what it was normalised to is the same definition"
    grants = tried(lambda: api.allocate([{"kind": kind, "pool": "v", "owner": OWNER, "value": value}]))
    json.dumps(grants)
    tried(lambda: api.release_value(pool, value, OWNER))
    tried(lambda: api.resize(pool, value))
    tried(lambda: api.pool({"kind": kind, "name": name}))
    assert api.check() == []


@settings(max_examples=40)
@given(st.one_of(values, st.lists(requests, max_size=2)))
def test_wild_requests(asked: Any) -> None:
    api = AllocatorAPI(new_allocator(MemoryDriver()))
    for kind, words in WORDS.items():
        if kind != "address":
            api.define({"kind": kind, "name": "v"}, words)
    tried(lambda: api.allocate(asked))
    tried(lambda: api.release_owner(asked))
    tried(lambda: api.allocations(owner=asked))
    assert api.check() == []


def test_all_kinds_are_tried() -> None:
    assert WORDS.keys() == KINDS.keys()
