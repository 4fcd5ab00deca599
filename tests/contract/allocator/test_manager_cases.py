"""Cases 4-14, 35 and the errors of the manager; the numbers are those of the acceptance list in doc/source/allocator.rst."""

from __future__ import annotations

import pytest

from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.errors import AlreadyDefined, InvalidConfig, NotAllocated, NotDefined, PoolBusy
from tests.allocator_side import S, V, X, lowest, vlan

UNKNOWN = Selector("unknown", "v")


def of_unknown_kind() -> Request:
    return Request("unknown", Owner("network", "n1"), "v")


def test_case_4_and_6_a_pool_is_defined_and_undefined(allocator):
    allocator.define(V, {"ranges": "1-10"})
    assert allocator.pool(V).state == "active"
    assert allocator.undefine(V) is True
    with pytest.raises(NotDefined):
        allocator.pool(V)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda it: it.define(UNKNOWN, {}), id="case-5-define"),
        pytest.param(lambda it: it.undefine(UNKNOWN), id="case-7-undefine"),
        pytest.param(lambda it: it.allocate(of_unknown_kind()), id="case-10-allocate"),
        pytest.param(lambda it: it.release_value(UNKNOWN, 1, Owner("network", "n1")), id="case-13-release"),
        pytest.param(lambda it: it.redefine(UNKNOWN, {}), id="redefine"),
        pytest.param(lambda it: it.usage(UNKNOWN), id="usage"),
        pytest.param(lambda it: it.list(UNKNOWN), id="list"),
    ],
)
def test_cases_5_7_10_13_an_unknown_kind_is_named(allocator, act):
    with pytest.raises(NotDefined) as caught:
        act(allocator)
    assert caught.value.message == 'No resource found for description: "unknown"'
    assert allocator.pools() == []


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda it: it.undefine(V), id="case-8-undefine"),
        pytest.param(lambda it: it.allocate(vlan()), id="case-11-allocate"),
        pytest.param(lambda it: it.release_value(V, 1, Owner("network", "n1")), id="case-14-release"),
        pytest.param(lambda it: it.redefine(V, {}), id="redefine"),
        pytest.param(lambda it: it.usage(V), id="usage"),
        pytest.param(lambda it: it.list(V), id="list"),
    ],
)
def test_cases_8_11_14_an_unknown_pool_is_named(allocator, act):
    with pytest.raises(NotDefined) as caught:
        act(allocator)
    assert caught.value.message == 'No resource found for description: "vlan" and id: "v"'


def test_case_9_and_12_a_value_is_allocated_and_given_back(allocator):
    allocator.define(V, {"ranges": "1-10"})
    grant = allocator.allocate(vlan())
    assert 1 <= grant.value <= 10
    assert allocator.release_value(V, grant.value, Owner("network", "n1")) == 1
    assert allocator.list() == []


def test_giving_back_twice_is_told_unless_the_caller_does_not_mind(allocator):
    allocator.define(V, {"ranges": "1-10"})
    grant = allocator.allocate(vlan())
    allocator.release(grant.id)
    with pytest.raises(NotAllocated):
        allocator.release(grant.id)
    assert allocator.release(grant.id, missing_ok=True) == 0
    with pytest.raises(NotAllocated):
        allocator.release_value(V, grant.value, Owner("network", "n1"))
    assert allocator.release_value(V, grant.value, Owner("network", "n1"), missing_ok=True) == 0


def test_the_same_definition_again_is_fine_and_another_one_is_not(allocator):
    first = allocator.define(V, {"ranges": "1-10"})
    assert allocator.define(V, {"ranges": "1-10", "quarantine_seconds": 0}) == first
    with pytest.raises(AlreadyDefined) as caught:
        allocator.define(V, {"ranges": "1-11"})
    assert caught.value.message == 'Resource with id: "v" already exists'
    assert allocator.usage(V).total == 10


def test_a_pool_in_use_is_not_undefined(allocator):
    allocator.define(V, {"ranges": "1-10"})
    grant = allocator.allocate(vlan())
    with pytest.raises(PoolBusy, match="still has 1 allocation"):
        allocator.undefine(V)
    allocator.release(grant.id)
    assert allocator.undefine(V)


def test_a_drained_pool_takes_back_until_it_is_empty(allocator):
    allocator.define(V, {"ranges": "1-10"})
    grant = allocator.allocate(vlan())
    assert allocator.undefine(V, drain=True) is False
    with pytest.raises(Exception, match="draining"):
        allocator.allocate(vlan("n2"))
    assert allocator.allocate(vlan()).id == grant.id, "who has one already gets it again"
    allocator.release(grant.id)
    assert allocator.undefine(V) is True


def test_a_forced_removal_gives_everything_back_and_says_so_in_the_history(allocator):
    allocator.define(V, {"ranges": "1-10"})
    allocator.allocate_many([vlan("n1"), vlan("n2")])
    assert allocator.undefine(V, force=True, actor="root")
    assert allocator.list() == []
    done = [(event.op, event.owner_id, event.actor) for event in allocator.history(V) if event.op in ("release", "undefine")]
    assert done[0] == ("undefine", "", "root")
    assert sorted(done[1:]) == [("release", "n1", "root"), ("release", "n2", "root")]


@pytest.mark.parametrize("config", [None, "1-10", 5, ["1-10"]])
def test_a_configuration_of_the_wrong_type_is_refused_in_its_kinds_words(allocator, config):
    for selector, text in (
        (V, "Invalid type for vlan resource config"),
        (X, "Invalid vxlan resource config."),
        (S, "Invalid type for subnet resource config"),
    ):
        with pytest.raises(InvalidConfig) as caught:
            allocator.define(selector, config)
        assert caught.value.message == text


def test_a_word_that_the_kind_does_not_know_is_named(allocator):
    with pytest.raises(InvalidConfig, match="'range' is unknown; known are ranges, physical_network, pick"):
        allocator.define(V, {"range": "1-10"})


def test_a_definition_that_fails_leaves_nothing_behind(allocator):
    allocator.define(V, {"ranges": "1-100"})
    before = len(allocator.history())
    with pytest.raises(Exception, match="overlap"):
        allocator.define(Selector("vlan", "w"), {"ranges": "50-60, 200-300"})
    assert [pool.name for pool in allocator.pools()] == ["v"]
    assert len(allocator.history()) == before
    assert allocator.check() == []
    allocator.define(Selector("vlan", "w"), {"ranges": "200-300"})


def test_case_35_no_definition_at_all_is_an_error(allocator):
    with pytest.raises(InvalidConfig):
        allocator.define(V, None)


def test_pools_are_listed_by_kind(allocator):
    allocator.define(V, lowest(ranges="1-10"))
    allocator.define(X, lowest(range="1-10"))
    assert [pool.kind for pool in allocator.pools()] == ["vlan", "vxlan"]
    assert [pool.kind for pool in allocator.pools("vxlan")] == ["vxlan"]
