"""Cases 36-46 and 60-61: what any store does with any state. No pool, no kind."""

from __future__ import annotations

import threading
from dataclasses import replace
from queue import SimpleQueue

import pytest

from lbaas_scheduler.allocator.core.drivers import Clash, Collision, Query
from lbaas_scheduler.allocator.core.states import Allocation, Note, Pool


def write(driver, note):
    txn = driver.begin()
    txn.insert(note)
    driver.apply(txn.changes)


def test_cases_36_37_what_is_written_is_read(driver):
    data = bytes(range(256))
    write(driver, Note("raw", "a", data))
    assert driver.get(Note, "raw", "a").state.data == data


def test_cases_38_39_42_written_twice_read_as_written_last(driver):
    write(driver, Note("t", "a", b"one"))
    stored = driver.get(Note, "t", "a")
    txn = driver.begin()
    txn.replace(stored, replace(stored.state, data=b"two", version=2))
    driver.apply(txn.changes)
    again = driver.get(Note, "t", "a")
    assert (again.state.data, again.state.version) == (b"two", 2)
    assert again.rev != stored.rev


def test_cases_40_43_written_and_removed_is_not_there(driver):
    write(driver, Note("t", "a"))
    txn = driver.begin()
    txn.delete(driver.get(Note, "t", "a"))
    driver.apply(txn.changes)
    assert driver.get(Note, "t", "a") is None
    assert driver.read(Query(Note)) == []


def test_case_41_a_nested_name_keeps_its_pieces(driver):
    for name in ("a", "a/b", "a/b/c", "ab", ""):
        write(driver, Note("t", name, name.encode()))
    assert driver.get(Note, "t", "a/b").state.data == b"a/b"
    assert driver.count(Query(Note, prefix=("t",))) == 5
    assert driver.count(Query(Note, prefix=("t", "a"))) == 1, "a prefix is whole fields, never a part of one"


@pytest.mark.parametrize("wanted", [{"among": ("b", "x", "a", "é")}, {"runs": (("a", "b"), ("da", "x"), ("é", "é"))}])
def test_values_and_runs_that_lie_apart_are_read_at_once(driver, wanted):
    for name in ("a", "b", "ba", "c", "é"):
        write(driver, Note("t", name, name.encode()))
    write(driver, Note("u", "a"))
    query = Query(Note, prefix=("t",), **wanted)
    assert {stored.state.data.decode() for stored in driver.read(query)} == {"a", "b", "é"}
    assert sorted(driver.keys(query)) == [("t", "a"), ("t", "b"), ("t", "é")]


@pytest.mark.parametrize("neighbour", ["tt", "T", "t/", "t\N{COMBINING ACUTE ACCENT}"])
def test_a_prefix_does_not_see_its_neighbours(driver, neighbour):
    """A predecessor matched keys that contained the prefix anywhere."""
    write(driver, Note("t", "a"))
    write(driver, Note(neighbour, "a"))
    assert [stored.state.topic for stored in driver.read(Query(Note, prefix=("t",)))] == ["t"]


def test_nothing_is_found_where_nothing_is(driver):
    assert driver.get(Note, "t", "a") is None
    assert driver.read(Query(Note, prefix=("t",))) == []
    assert driver.count(Query(Note)) == 0


def test_what_is_there_is_not_written_over(driver):
    write(driver, Note("t", "a", b"first"))
    with pytest.raises(Collision) as caught:
        write(driver, Note("t", "a", b"second"))
    assert caught.value.clashes == (Clash(Note("t", "a", b"second"), ""),)
    assert driver.get(Note, "t", "a").state.data == b"first"


@pytest.mark.parametrize("how", ["replace", "delete", "require"])
def test_what_changed_since_it_was_read_stops_everything(driver, how):
    write(driver, Note("t", "a"))
    stale = driver.get(Note, "t", "a")
    txn = driver.begin()
    txn.replace(stale, replace(stale.state, data=b"newer"))
    driver.apply(txn.changes)
    txn = driver.begin()
    txn.insert(Note("t", "b"))
    if how == "replace":
        txn.replace(stale, replace(stale.state, data=b"mine"))
    else:
        getattr(txn, how)(stale)
    with pytest.raises(Collision) as caught:
        driver.apply(txn.changes)
    assert caught.value.clashes == (Clash(stale.state, "changed"),)
    assert [stored.state.data for stored in driver.read(Query(Note))] == [b"newer"]


@pytest.mark.parametrize("how", ["replace", "delete", "require"])
@pytest.mark.parametrize(
    "states",
    [
        (Note("t", "a"), Note("t", "a")),
        (Pool("p1", "vlan", "cluster", "v", "d", {}), Pool("p2", "vlan", "cluster", "v", "d", {})),
        (Allocation("a1", "vlan", "d", "5", -1, "p", "n", "1"), Allocation("a2", "vlan", "d", "5", -1, "p", "n", "2")),
    ],
    ids=["note", "pool", "allocation"],
)
def test_what_was_removed_and_written_anew_is_not_what_was_read(driver, how, states):
    first, second = states
    write(driver, first)
    stale = driver.get(type(first), *first.key())
    txn = driver.begin()
    txn.delete(stale)
    driver.apply(txn.changes)
    write(driver, second)
    txn = driver.begin()
    txn.insert(Note("t", "b"))
    if how == "replace":
        txn.replace(stale, first)
    else:
        getattr(txn, how)(stale)
    with pytest.raises(Collision) as caught:
        driver.apply(txn.changes)
    assert caught.value.clashes == (Clash(first, "changed"),)
    assert driver.get(type(first), *first.key()).state == second


def test_what_is_gone_since_it_was_read_stops_everything(driver):
    write(driver, Note("t", "a"))
    stale = driver.get(Note, "t", "a")
    txn = driver.begin()
    txn.delete(stale)
    driver.apply(txn.changes)
    txn = driver.begin()
    txn.require(stale)
    txn.insert(Note("t", "b"))
    with pytest.raises(Collision):
        driver.apply(txn.changes)
    assert driver.read(Query(Note)) == []


def test_a_place_that_must_be_empty_is_judged_at_the_commit(driver):
    txn = driver.begin()
    txn.insert(Note("t", "b"))
    txn.require_none(Query(Note, prefix=("t",)))
    driver.apply(txn.changes)
    with pytest.raises(Collision) as caught:
        driver.apply(txn.changes)
    assert Clash(None, "present") in caught.value.clashes


def test_a_range_has_both_its_ends(driver):
    for name in "abcde":
        write(driver, Note("t", name))

    def names(**terms):
        return "".join(stored.state.name for stored in driver.read(Query(Note, prefix=("t",), **terms)))

    assert names(lo="b", hi="d") == "bcd"
    assert names(lo="b", hi="d", limit=2) == "bc"
    assert names(hi="b") == "ab"
    assert names(reverse=True, limit=2) == "ed"
    assert names(where=(("name", "c"),)) == "c"
    assert driver.keys(Query(Note, prefix=("t",), lo="d")) == [("t", "d"), ("t", "e")]
    assert driver.count(Query(Note, prefix=("t",), lo="b", hi="d")) == 3


def test_many_states_are_read_in_order(driver):
    names = [f"{number:05d}" for number in range(2_100)]
    for start in range(0, len(names), 100):
        txn = driver.begin()
        for name in names[start : start + 100]:
            txn.insert(Note("t", name))
        driver.apply(txn.changes)
    assert [key[1] for key in driver.keys(Query(Note, prefix=("t",)))] == names
    found = driver.read(Query(Note, prefix=("t",), reverse=True, limit=1_500))
    assert [stored.state.name for stored in found] == names[:599:-1]


def test_cases_60_61_a_single_place_is_assigned_and_kept(driver):
    write(driver, Note("default-network", "", b"orange"))
    with pytest.raises(Collision):
        write(driver, Note("default-network", "", b"apple"))
    assert driver.get(Note, "default-network", "").state.data == b"orange"


@pytest.fixture
def changes(driver):
    stop, ready, seen = threading.Event(), threading.Event(), SimpleQueue()

    def follow():
        for change in driver.watch(Query(Note, prefix=("t",)), stop, ready):
            seen.put(change)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert ready.wait(20)
    yield seen
    stop.set()
    thread.join(20)
    assert not thread.is_alive()


def test_cases_44_45_46_a_watcher_is_told_what_was_and_what_is(driver, changes):
    write(driver, Note("other", "a"))
    write(driver, Note("t", "a", b"one"))
    made = changes.get(timeout=20)
    assert (made.current.data, made.previous) == (b"one", None)
    stored = driver.get(Note, "t", "a")
    txn = driver.begin()
    txn.replace(stored, replace(stored.state, data=b"two"))
    driver.apply(txn.changes)
    changed = changes.get(timeout=20)
    assert (changed.current.data, changed.previous.data) == (b"two", b"one")
    txn = driver.begin()
    txn.delete(driver.get(Note, "t", "a"))
    driver.apply(txn.changes)
    gone = changes.get(timeout=20)
    assert (gone.current, gone.previous.data) == (None, b"two")
    assert changes.empty()
