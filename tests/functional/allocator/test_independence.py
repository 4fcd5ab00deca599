"""What an allocation costs does not depend on how large its pool is, nor on how many pools there are."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from sqlalchemy import event

from lbaas_scheduler.allocator.core.drivers import Changes, Query
from lbaas_scheduler.allocator.core.requests import Selector
from lbaas_scheduler.allocator.core.states import Claim, Domain, Pool
from lbaas_scheduler.allocator.drivers.etcd import EtcdDriver
from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from tests.allocator_side import STORES, new_allocator, vxlan

BATCH = 20


@contextmanager
def sent_to(driver):
    """What goes out: statements, or requests to etcd, of which one may look at many places."""
    sent = []
    if isinstance(driver, EtcdDriver):
        post = driver._client.post
        driver._client.post = lambda path, payload: (sent.append("request"), post(path, payload))[1]
        yield sent
        driver._client.post = post
        return
    engine = driver._database.engine

    def note(_conn, _cursor, statement, *_rest):
        sent.append(statement.split()[0])

    event.listen(engine, "before_cursor_execute", note)
    yield sent
    event.remove(engine, "before_cursor_execute", note)


@contextmanager
def read_from(driver):
    """How many states or keys each read brings."""
    found = []
    read, keys = driver.read, driver.keys

    def counted(work):
        def run(query):
            result = work(query)
            found.append(len(result))
            return result

        return run

    driver.read, driver.keys = counted(read), counted(keys)
    yield found
    driver.read, driver.keys = read, keys


def define(driver, sizes):
    """Pools, defined in memory and copied, which takes less time."""
    memory = MemoryDriver()
    for name, size in sizes.items():
        config = {"range": f"1-{size}", "local_vlan": "none", "underlay": name}
        new_allocator(memory).define(Selector("vxlan", name), config)
    states = [stored.state for cls in (Domain, Pool, Claim) for stored in memory.read(Query(cls))]
    for start in range(0, len(states), BATCH):
        driver.apply(Changes(inserts=states[start : start + BATCH]))


def cost_of(driver, name):
    """Of ten allocations by a process that knows nothing yet, and of giving one back."""
    allocator = new_allocator(driver)
    with sent_to(driver) as sent, read_from(driver) as found:
        grants = [allocator.allocate(vxlan(f"n{number}", pool=name)) for number in range(10)]
        allocator.release(grants[0].id, grants[0].generation)
    allocator.release_many([grant.id for grant in grants[1:]])
    return sent, found


@pytest.mark.parametrize("driver", [store for store in STORES if store != "memory"], indirect=True)
def test_neither_size_nor_number_of_pools_costs_anything(driver):
    define(driver, {"small": 100})
    alone = cost_of(driver, "small")
    sent, found = alone
    # Once the pool, once its free values; then one for each allocation; a release reads the value and its children.
    assert len(found) == 4
    assert sum(found) <= 2
    assert len([word for word in sent if word != "BEGIN"]) <= 20

    define(driver, {"huge": 2**24 - 1, **{f"other-{number}": 100 for number in range(200)}})
    assert cost_of(driver, "small") == alone
    assert cost_of(driver, "huge") == alone


@pytest.mark.parametrize("driver", [store for store in STORES if store != "memory"], indirect=True)
def test_a_full_stretch_of_a_huge_pool_costs_no_more_than_a_small_pool(driver):
    define(driver, {"small": 100, "huge": 2**24 - 1})
    allocator = new_allocator(driver)
    for name in ("small", "huge"):
        for start in range(0, 80, BATCH):
            wanted = [vxlan(f"f{value}", value, pool=name) for value in range(start + 1, start + BATCH + 1)]
            allocator.allocate_many(wanted)
    (sent, found), (sent_of_huge, found_of_huge) = (cost_of(driver, name) for name in ("small", "huge"))
    assert sent == sent_of_huge
    assert len(found) == len(found_of_huge)
    assert sum(found_of_huge) <= sum(found) <= 2 + 80
