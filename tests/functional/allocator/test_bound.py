"""The allocator inside of somebody's transaction, as a placement uses it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from lbaas_scheduler.allocator import context
from lbaas_scheduler.allocator.core.drivers import Changes, Collision, Query
from lbaas_scheduler.allocator.core.requests import Owner
from lbaas_scheduler.allocator.core.states import Event, hexed
from lbaas_scheduler.allocator.drivers.sql import SqlDriver
from lbaas_scheduler.db.allocator_models import allocator_domains
from lbaas_scheduler.errors import PoolExhausted, ValueInUse
from tests.allocator_side import A, V, X, address, lowest, new_allocator, vlan, vxlan


class Broken(Exception):
    """What fails later in the same transaction."""


def mark(conn, name):
    """Somebody's own row."""
    conn.execute(sa.insert(allocator_domains).values(name=name, version=1, rev=1))


def marks(database):
    return set(database.read(lambda conn: conn.execute(sa.select(allocator_domains.c.name)).scalars().all()))


@pytest.fixture
def driver(database):
    return SqlDriver(database)


def test_what_is_taken_is_there_with_the_callers_rows(database, driver):
    allocator = new_allocator(driver)
    allocator.define(A, lowest(cidr="10.1.0.0/24"))

    def work(conn):
        mark(conn, "caller")
        inside = allocator.within(driver.bound(conn))
        grant = inside.allocate(address("p1"))
        assert inside.get(grant.id).value == grant.value
        return grant

    grant = database.write(work)
    assert allocator.get(grant.id).value == "10.1.0.1"
    assert "caller" in marks(database)


def test_what_fails_later_leaves_nothing(database, driver):
    allocator = new_allocator(driver)
    allocator.define(A, lowest(cidr="10.1.0.0/24"))
    allocator.define(X, {"range": "1-10"})

    def work(conn):
        allocator.within(driver.bound(conn)).allocate_many([address("p1"), vxlan("p1")])
        raise Broken

    before = len(allocator.history())
    with pytest.raises(Broken):
        database.write(work)
    assert allocator.list(A) == allocator.list(X) == []
    assert len(allocator.history()) == before


def test_a_refusal_leaves_the_callers_transaction_usable(database, driver):
    """PostgreSQL gives a transaction up with its first error; an allocation that loses a race must not be one."""
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": "5-6"})
    allocator.allocate(vlan("n1", 5))

    def work(conn):
        mark(conn, "before")
        inside = allocator.within(driver.bound(conn))
        with pytest.raises(ValueInUse):
            inside.allocate(vlan("n2", 5))
        assert inside.allocate(vlan("n1")).value == 5
        assert inside.allocate(vlan("n2")).value == 6
        with pytest.raises(PoolExhausted):
            inside.allocate(vlan("n3"))
        mark(conn, "after")

    database.write(work)
    assert {"before", "after"} <= marks(database)


def test_giving_back_is_undone_with_the_transaction(database, driver):
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": "1-10"})
    grant = allocator.allocate(vlan("n1"))

    def work(conn):
        inside = allocator.within(driver.bound(conn))
        assert inside.release_owner(Owner("network", "n1")) == 1
        raise Broken

    with pytest.raises(Broken):
        database.write(work)
    assert allocator.get(grant.id).id == grant.id


def test_many_placements_at_once_never_share_a_value(database, driver):
    allocator = new_allocator(driver)
    allocator.define(A, {"cidr": "10.1.0.0/25"})

    def place(number):
        def work(conn):
            mark(conn, f"placement-{number}")
            return allocator.within(driver.bound(conn)).allocate(address(f"p{number}")).value

        return database.write(work)

    with ThreadPoolExecutor(6) as threads:
        values = list(threads.map(place, range(60)))
    assert len(set(values)) == 60
    assert allocator.check() == []


def statements_of(database, work):
    """What is sent to the database."""
    sent = []

    def note(_conn, _cursor, statement, *_rest):
        sent.append(statement.split()[0])

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    return sent


@pytest.mark.parametrize("fill", [0, 90])
@pytest.mark.parametrize("ranges", ["1-100", "1-4000"])
def test_an_allocation_is_one_statement_whatever_the_pool(database, driver, fill, ranges, monkeypatch):
    # Or a slow machine reads the pool anew before it releases.
    monkeypatch.setattr(context, "FRESH_SECONDS", 600.0)
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": ranges})
    count = int(ranges.split("-")[1]) * fill // 100
    for start in range(0, count, 500):
        allocator.allocate_many([vlan(f"f{number}") for number in range(start, min(count, start + 500))])
    allocator.allocate(vlan("warm"))
    # And a transaction by itself where BEGIN and COMMIT would be round trips; SQLite's BEGIN is not sent this way.
    sent = statements_of(database, lambda: [allocator.allocate(vlan(f"n{number}")) for number in range(4)])
    assert sent.count("INSERT") == 4
    # Free values are looked up for many allocations at once; where one in ten is free, chance may find but a single one.
    assert sent.count("SELECT") == len(sent) - 4 <= (4 if fill else 0)
    ids = [grant.id for grant in allocator.allocate_many([vlan(f"many{number}") for number in range(5)])]
    sent = statements_of(database, lambda: allocator.release_many(ids))
    # The values, what hangs on them; their births, they themselves, the events that tell of it.
    assert [word for word in sent if word != "BEGIN"] == ["SELECT", "SELECT", "INSERT", "DELETE", "INSERT"]


def test_a_birth_is_told_once_wherever_its_event_is(driver):
    """An allocation carries the event of its birth until it first changes; whoever asks sees no difference."""
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": "1-10"})
    (held,) = allocator.hold([vlan("n1")], 600, actor="ann")
    born = allocator.history(V, limit=1)
    assert [(event.op, event.actor, event.pool, event.allocation_id) for event in born] == [("hold", "ann", "v", held.id)]
    allocator.commit(held.id, actor="bob")
    allocator.release(held.id)
    told = allocator.history(allocation_id=held.id)
    assert [event.op for event in told] == ["release", "commit", "hold"]
    assert told[-1] == born[0]
    assert [event.op for event in allocator.history(owner=Owner("network", "n1"), limit=2)] == ["release", "commit"]


def test_old_births_are_forgotten_as_old_events_are(driver):
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": "1-10"})
    grant = allocator.allocate(vlan("n1"))
    txn = driver.begin()
    for stored in driver.read(Query(Event)):
        txn.delete(stored)
    txn.commit()
    assert allocator.history() == []
    assert allocator.get(grant.id).value == grant.value


def test_a_commit_whose_answer_was_lost_is_recognised_and_a_half_done_one_is_not(driver):
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": "1-10"})
    changes = []
    apply = driver.apply
    driver.apply = lambda these: (changes.append(these), apply(these))
    for requests in ([vlan("n1")], [vlan("n2"), vlan("n3")]):
        allocator.allocate_many(requests)
        apply(changes[-1])
    assert len(allocator.list(V)) == 3
    # Of two values one is somebody's already: nothing may stay, although the other's row, with its event, was written by then.
    (first,), (event,) = changes[0].inserts, changes[0].events
    half = [replace(first, id="new", value=hexed(11), owner_id="n4"), replace(first, id="other", owner_id="n5")]
    with pytest.raises(Collision):
        apply(Changes(inserts=half, events=[replace(event, stamp="1", allocation_id="new")]))
    assert len(allocator.list(V)) == 3


def test_transactions_that_all_want_the_lowest_value_do_not_chase_each_other(database):
    """Each of them is another server's, with a window of its own; none sees what the others have not committed."""
    new_allocator(SqlDriver(database)).define(A, lowest(cidr="10.0.0.0/8"))

    def serve(server: int) -> list[str]:
        allocator = new_allocator(SqlDriver(database))

        def work(conn, number):
            granted = allocator.within(allocator.driver.bound(conn)).allocate(address(f"p{server}-{number}"))
            mark(conn, f"{server}-{number}")  # the transaction has more to do
            return granted.value

        return [database.write(lambda conn, it=number: work(conn, it)) for number in range(40)]

    with ThreadPoolExecutor(6) as pool:
        taken = [value for values in pool.map(serve, range(6)) for value in values]
    assert len(set(taken)) == 240
