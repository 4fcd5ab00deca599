"""How fast values are handed out, beside the floor: one bare insert in a transaction of its own on the same store.

``python -m benchmarks.allocator --driver postgresql --clients 1,16 --fill 0,90 --json``

A client is a process with connections of its own (of the memory driver: a thread). Engine and floor are measured in turns; a
point's figures are medians over the rounds. ``retries`` counts commits that another client was faster with, per allocation.
``floor_ratio`` = the engine's rate / the floor's. ``--sweep`` fills and empties a pool of 4,094, and compares allocations from
pools of 100, 4,094 and 2^24 values, by themselves and among 100 and 1,000 pools.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbaas_scheduler.allocator.core.drivers import Changes, Collision, Query, StateDriver
from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.allocator.core.states import Allocation, Claim, Domain, Note, Pool
from lbaas_scheduler.allocator.drivers.memory import MemoryDriver
from lbaas_scheduler.allocator.kinds.vlan import Vlan
from lbaas_scheduler.allocator.kinds.vxlan import Vxlan
from lbaas_scheduler.allocator.manager import ResourceAllocator
from tests.allocator_side import open_store
from tests.rig.etcd import Etcd
from tests.rig.mariadb import MariaDB
from tests.rig.postgresql import PostgreSQL
from tests.rig.run import Run
from tests.tables import make_tables

DRIVERS = ("memory", "sqlite", "postgresql", "mariadb", "etcd")
SERVERS: dict[str, Any] = {"postgresql": PostgreSQL, "mariadb": MariaDB, "etcd": Etcd}
POOL = Selector("vxlan", "bench")
POOL_SIZE = 20_000
WARM_UP = 30
BATCH = 20
SIZES, POOLS, TURNS = (100, 4_094, 2**24 - 1), (3, 100, 1_000), 5
"""What a sweep compares: values in a pool, pools in the store (the three that are compared are there always)."""


class Counting(StateDriver):
    """Hands everything on, and counts lost races."""

    name = "counting"

    def __init__(self, driver: StateDriver) -> None:
        self._driver = driver
        self.max_operations = driver.max_operations
        self.collisions = 0

    def read(self, query: Any) -> Any:
        return self._driver.read(query)

    def keys(self, query: Any) -> Any:
        return self._driver.keys(query)

    def count(self, query: Any) -> int:
        return self._driver.count(query)

    def apply(self, changes: Changes) -> None:
        try:
            self._driver.apply(changes)
        except Collision:
            self.collisions += 1
            raise

    def watch(self, query: Any, stop: Any, ready: Any) -> Any:
        return self._driver.watch(query, stop, ready)


@dataclass(frozen=True)
class Round:
    """What one client did in one round: seconds per operation, of the whole round, and races lost."""

    seconds: list[float]
    elapsed: float
    collisions: int


def allocator_on(driver: StateDriver) -> ResourceAllocator:
    return ResourceAllocator(driver, {"vxlan": Vxlan(), "vlan": Vlan()})


def request(pool: str = POOL.name) -> Request:
    return Request("vxlan", Owner("bench", uuid.uuid4().hex), pool)


def timed(count: int, work: Callable[[], Any]) -> tuple[list[float], float, list[Any]]:
    seconds, results = [], []
    began = time.perf_counter()
    for _ in range(count):
        start = time.perf_counter()
        results.append(work())
        seconds.append(time.perf_counter() - start)
    return seconds, time.perf_counter() - began, results


def client(driver: StateDriver, barrier: Any, rounds: int, count: int) -> list[tuple[Round, Round]]:
    """Floor and engine in turns, all clients at once."""
    counting = Counting(driver)
    allocator = allocator_on(counting)
    name = uuid.uuid4().hex

    def bare() -> None:
        # To the store in the shortest way that the driver has: a unique row or key, and nothing else.
        driver.apply(Changes(inserts=[Note(name, uuid.uuid4().hex)]))

    timed(WARM_UP, bare)
    allocator.release_many([grant.id for grant in timed(10, lambda: allocator.allocate(request()))[2]])
    outcomes = []
    for _ in range(rounds):
        barrier.wait()
        seconds, elapsed, _none = timed(count, bare)
        floor = Round(seconds, elapsed, 0)
        barrier.wait()
        before = counting.collisions
        seconds, elapsed, grants = timed(count, lambda: allocator.allocate(request()))
        outcomes.append((floor, Round(seconds, elapsed, counting.collisions - before)))
        barrier.wait()
        for start in range(0, len(grants), BATCH):
            allocator.release_many([grant.id for grant in grants[start : start + BATCH]])
    return outcomes


def measure(driver: StateDriver, url: str, name: str, clients: int, fill: int, rounds: int, count: int) -> dict[str, Any]:
    allocator = allocator_on(driver)
    allocator.define(POOL, {"range": f"1-{POOL_SIZE}", "local_vlan": "none"})
    fill_to(allocator, POOL_SIZE * fill // 100)
    outcomes = in_threads(driver, clients, rounds, count) if name == "memory" else in_processes(url, clients, rounds, count)
    rates, floors = [], []
    for turn in range(rounds):
        floors.append(clients * count / max(outcome[turn][0].elapsed for outcome in outcomes))
        rates.append(clients * count / max(outcome[turn][1].elapsed for outcome in outcomes))
    seconds = sorted(second for outcome in outcomes for _, engine in outcome for second in engine.seconds)
    retries = sum(engine.collisions for outcome in outcomes for _, engine in outcome) / len(seconds)
    ratios = [rate / floor for rate, floor in zip(rates, floors, strict=True)]
    return {
        "driver": name,
        "clients": clients,
        "fill": fill,
        "rate": round(statistics.median(rates), 1),
        "p50_ms": round(seconds[len(seconds) // 2] * 1000, 3),
        "p99_ms": round(seconds[min(len(seconds) - 1, len(seconds) * 99 // 100)] * 1000, 3),
        "retries": round(retries, 4),
        "floor_rate": round(statistics.median(floors), 1),
        "floor_ratio": round(statistics.median(ratios), 3),
    }


def fill_to(allocator: ResourceAllocator, wanted: int) -> None:
    present = allocator.driver.count(Query(Allocation))
    while present < wanted:
        size = min(BATCH if allocator.driver.max_operations else 500, wanted - present)
        allocator.allocate_many([request() for _ in range(size)])
        present += size


def in_threads(driver: StateDriver, clients: int, rounds: int, count: int) -> list[list[tuple[Round, Round]]]:
    barrier, outcomes = threading.Barrier(clients), []
    threads = [
        threading.Thread(target=lambda: outcomes.append(client(driver, barrier, rounds, count))) for _ in range(clients)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def in_processes(url: str, clients: int, rounds: int, count: int) -> list[list[tuple[Round, Round]]]:
    context = multiprocessing.get_context("fork")
    barrier, queue = context.Barrier(clients), context.Queue()
    processes = [context.Process(target=_process, args=(url, barrier, queue, rounds, count)) for _ in range(clients)]
    for process in processes:
        process.start()
    outcomes = [queue.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    failed = [outcome for outcome in outcomes if isinstance(outcome, str)]
    if failed:
        raise SystemExit(f"a client failed: {failed[0]}")
    return outcomes


def _process(url: str, barrier: Any, queue: Any, rounds: int, count: int) -> None:
    try:
        queue.put(client(open_store(url), barrier, rounds, count))
    except Exception as error:
        barrier.abort()
        queue.put(f"{type(error).__name__}: {error}")


def sweep(driver: StateDriver, name: str) -> dict[str, Any]:
    """A pool of 4,094 filled and emptied; and whether size and number of pools cost anything."""
    allocator = ResourceAllocator(driver, {"vxlan": Vxlan(), "vlan": Vlan()})
    pool = Selector("vlan", "sweep")
    allocator.define(pool, {"ranges": "1-4094"})
    began = time.perf_counter()
    grants = []
    for start in range(0, 4094, BATCH):
        requests = [
            Request("vlan", Owner("bench", str(number)), "sweep") for number in range(start, min(4094, start + BATCH))
        ]  # fmt: skip
        grants += allocator.allocate_many(requests)
    for start in range(0, len(grants), BATCH):
        allocator.release_many([grant.id for grant in grants[start : start + BATCH]])
    elapsed = time.perf_counter() - began
    return {"driver": name, "fill_and_empty_4094_seconds": round(elapsed, 2), "independence": independence(driver)}


def independence(driver: StateDriver) -> list[dict[str, Any]]:
    """One allocation from pools of each size, by itself and among others. Each point is measured several times, in turns."""
    allocator = allocator_on(driver)
    define_pools(driver, {f"size-{size}": size for size in SIZES})
    figures, present = [], len(SIZES)
    for pools in POOLS:
        define_pools(driver, {f"other-{number}": 100 for number in range(present, pools)})
        present = max(present, pools)
        seconds: dict[int, list[float]] = {size: [] for size in SIZES}
        for _ in range(TURNS):
            for size in SIZES:
                batch, _elapsed, grants = timed(BATCH, lambda size=size: allocator.allocate(request(f"size-{size}")))  # type: ignore[misc]
                seconds[size] += batch
                allocator.release_many([grant.id for grant in grants])
        figures += [
            {"pools": present, "size": size, "p50_ms": round(statistics.median(seconds[size]) * 1000, 3)} for size in SIZES
        ]  # fmt: skip
    return figures


def define_pools(driver: StateDriver, sizes: Mapping[str, int]) -> None:
    """Defined in memory, and copied: a thousand definitions on a server would take longer than all that is measured."""
    memory = MemoryDriver()
    for name, size in sizes.items():
        config = {"range": f"1-{size}", "local_vlan": "none", "underlay": name}
        allocator_on(memory).define(Selector("vxlan", name), config)
    states = [stored.state for cls in (Domain, Pool, Claim) for stored in memory.read(Query(cls))]
    for start in range(0, len(states), BATCH):
        driver.apply(Changes(inserts=states[start : start + BATCH]))


@contextmanager
def store(name: str, run: Run, folder: Path) -> Iterator[tuple[StateDriver, str]]:
    """A driver on an empty store of this run, and the URL by which others open the same."""
    if name == "memory":
        yield MemoryDriver(), ""
        return
    url = f"sqlite:///{folder / uuid.uuid4().hex}.sqlite"
    if name in SERVERS:
        server: Any = run.shared(SERVERS[name])
        url = f"{server.url}{server.new_namespace()}" if name == "etcd" else server.create_database()
    if name != "etcd":
        make_tables(url)
    driver = open_store(url)
    yield driver, url
    driver.close()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocator", description=__doc__.splitlines()[0])
    parser.add_argument("--driver", default="sqlite", help=f"comma-separated, of {', '.join(DRIVERS)}")
    parser.add_argument("--clients", default="1,16")
    parser.add_argument("--fill", default="0,90", help="how full the pool is at the start, in percent")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=0, help="allocations of a client in a round; 0 chooses")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args(argv)
    points: list[dict[str, Any]] = []
    sweeps: list[dict[str, Any]] = []
    run = Run.begin()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name in words.driver.split(","):
                for fill in map(int, words.fill.split(",")):
                    with store(name, run, Path(folder)) as (driver, url):
                        for clients in map(int, words.clients.split(",")):
                            count = words.count or max(20, 100 // clients)
                            points.append(measure(driver, url, name, clients, fill, words.rounds, count))
                            print(points[-1], file=sys.stderr)
                if words.sweep:
                    with store(name, run, Path(folder)) as (driver, _url):
                        sweeps.append(sweep(driver, name))
                        print(sweeps[-1], file=sys.stderr)
    finally:
        run.end()
    if words.json:
        print(json.dumps({"points": points} | ({"sweeps": sweeps} if sweeps else {})))


if __name__ == "__main__":
    main()
