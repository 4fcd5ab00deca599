"""The allocator inside of somebody's transaction, as a placement uses it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from lbaas_scheduler.allocator.core.requests import Owner
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
def test_an_allocation_is_one_statement_or_two_whatever_the_pool(database, driver, fill, ranges):
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": ranges})
    count = int(ranges.split("-")[1]) * fill // 100
    for start in range(0, count, 500):
        allocator.allocate_many([vlan(f"f{number}") for number in range(start, min(count, start + 500))])
    allocator.allocate(vlan("warm"))
    assert statements_of(database, lambda: allocator.allocate(vlan("n1"))) == (
        ["WITH"] if database.engine.name == "postgresql" else ["INSERT", "INSERT"]
    )
