"""One tree of keys, without two states in one place."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lbaas_scheduler.allocator import keys
from lbaas_scheduler.allocator.core.drivers import Query
from lbaas_scheduler.allocator.core.states import Allocation, Index, Keyspace, Note, Pool, State
from lbaas_scheduler.errors import ConfigurationError


def test_the_tree_names_every_state_and_index():
    tree = keys.tree()
    for line in (
        "/lbaas_scheduler/1/pool/<kind>/<scope>/<name>  Pool",
        "/lbaas_scheduler/1/val/<domain>/<value>/<prefix_len>  Allocation",
        "/lbaas_scheduler/1/val.own/<owner_type>/<owner_id>/<pool_id>/<slot>  unique",
        "/lbaas_scheduler/1/val.kid/<parent_id>/<id>  index",
    ):
        assert line in tree.splitlines()


@pytest.mark.parametrize("name", ["pool", "val", "pool/inner"])
def test_a_place_that_is_taken_is_refused(name):
    @dataclass(frozen=True, slots=True)
    class Intruder(State):
        keyspace = Keyspace(name, ("id",))
        id: str

    with pytest.raises(ConfigurationError, match="overlap"):
        keys.register(Intruder)
    assert Intruder not in keys.registered()


def test_registering_again_is_fine():
    before = keys.registered()
    assert keys.register(Pool) is Pool
    assert keys.registered() == before


def test_a_kind_may_bring_a_state_of_its_own():
    @dataclass(frozen=True, slots=True)
    class Rack(State):
        keyspace = Keyspace("acme-rack", ("id",), (Index("place", ("row", "id")),))
        id: str
        row: str

    try:
        keys.register(Rack)
        assert "/lbaas_scheduler/1/acme-rack/<id>  Rack" in keys.tree()
    finally:
        keys._REGISTRY.pop("acme-rack", None)


@pytest.mark.parametrize("name", ["a", "a/b", "", "网络", "%", "%25", "a b", "'", "\x7f"])
def test_a_key_comes_back_as_it_was(name):
    note = Note(name, f"{name}x")
    branch = "/lbaas_scheduler/1/note/"
    key = keys.primary(note)
    assert key.startswith(branch)
    assert keys.parts(Note, key[len(branch) :]) == note.key()


def test_no_part_of_a_key_can_reach_into_another_ones():
    first, last = keys.bounds(Query(Note, prefix=("a",)))
    assert first <= keys.primary(Note("a", "b")) < last
    for other in (Note("a/b", "c"), Note("ab", "c"), Note("a0", "c"), Note("", "a")):
        assert not first <= keys.primary(other) < last


def test_the_order_of_keys_is_the_order_of_numbers():
    key = keys.primary
    values = [Allocation("1", "vlan", "d", f"{number:032x}", -1, "p", "t", "o") for number in (1, 9, 10, 255, 2**64)]
    assert sorted(values, key=key) == values
