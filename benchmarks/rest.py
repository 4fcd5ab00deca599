"""How fast VIPs are created over REST, and how soon they are ACTIVE, beside a route that does nothing.

``python -m benchmarks.rest --db mysql --clients 16 --json``

The application runs under gunicorn, beside a server and an agent with the fake driver that are processes of their own, on a
private RabbitMQ and a private database. Each client has one connection and one request under way. The route that does nothing is
the version document, which passes the same layers of the same application and asks neither policy nor database.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from oslo_utils import uuidutils

from benchmarks import site as sites
from benchmarks.placement import numbers
from benchmarks.site import Site
from lbaas_scheduler.db.models import deployments, pools, vips
from lbaas_scheduler.db.session import Database
from tests.rig.waiting import wait_for

CLIENTS_PER_PROCESS = 8
LOOK_EVERY_SECONDS = 0.02
MOST_CREATES_PER_SECOND = 1000
SETTLE_SECONDS = 120


@dataclass
class Requests:
    """When requests began and ended, by CLOCK_MONOTONIC, which all processes share; ids of what was created."""

    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Requests) -> None:
        self.begun += other.begun
        self.ended += other.ended
        self.ids += other.ids
        self.failures += other.failures

    @property
    def taken(self) -> list[float]:
        return [ended - begun for begun, ended in zip(self.begun, self.ended, strict=True)]


def client(url: str, bodies: Sequence[bytes], until: float) -> Requests:
    """One request after the other until the time comes. Without bodies: reads that do nothing."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    made, turn = Requests(), iter(bodies)
    while time.monotonic() < until:
        body = next(turn, None)
        if bodies and body is None:
            raise RuntimeError("The pools are used up: raise MOST_CREATES_PER_SECOND")
        begun = time.monotonic()
        if body is None:
            connection.request("GET", "/")
        else:
            connection.request("POST", "/v2.0/lb/vips", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        made.ended.append(time.monotonic())
        made.begun.append(begun)
        if answer.status not in (200, 201):
            made.failures.append(f"{answer.status} {text[:500]!r}")
        elif body is not None:
            made.ids.append(json.loads(text)["vip"]["id"])
    connection.close()
    return made


def clients(url: str, bodies: Sequence[Sequence[bytes]], seconds: float, together: Any, results: Any) -> None:
    """A process with one client for each sequence of bodies."""
    together.wait()
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(len(bodies)) as threads:
        made = Requests()
        for each in threads.map(lambda theirs: client(url, theirs, until), bodies):
            made.add(each)
    results.put(made)


def load(url: str, bodies: Sequence[Sequence[bytes]], seconds: float) -> Requests:
    spawn = multiprocessing.get_context("spawn")
    parts = [bodies[start : start + CLIENTS_PER_PROCESS] for start in range(0, len(bodies), CLIENTS_PER_PROCESS)]
    results, together = spawn.Queue(), spawn.Barrier(len(parts))
    started = [spawn.Process(target=clients, args=(url, part, seconds, together, results)) for part in parts]
    for process in started:
        process.start()
    made = Requests()
    for _ in started:
        made.add(results.get(timeout=seconds + 120))
    for process in started:
        process.join()
    if made.failures:
        raise RuntimeError(f"{len(made.failures)} requests failed; the first: {made.failures[0]}")
    return made


class Watch:
    """Looks again and again which VIPs wait for their agent. A look costs the database a short scan of an index."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looks: list[float] = []
        self._last_seen: dict[str, int] = {}
        self._over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def active_after(self, vip_id: str, begun: float, answered: float) -> float:
        """Seconds from a request to the first look that found its VIP settled."""
        if vip_id in self._last_seen:
            return self._looks[self._last_seen[vip_id] + 1] - begun
        return next(at for at in self._looks if at >= answered) - begun

    def _run(self) -> None:
        waiting = sa.select(deployments.c.resource_id).where(deployments.c.due_at.is_not(None))
        while not self._over.wait(LOOK_EVERY_SECONDS):
            found = self._database.read(lambda conn: conn.execute(waiting).scalars().all())
            self._last_seen |= dict.fromkeys(found, len(self._looks))
            self._looks.append(time.monotonic())


def bodies_of(site: Site, clients_: int, each: int) -> list[list[bytes]]:
    """What each client will send: VIPs, each for a pool of its own that is there already."""
    pool = {"subnet_id": site.subnet_id, "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}
    made = sites.ask(site.url, "POST", "/v2.0/lb/pools", {"pool": pool})["pool"]
    ids = [[uuidutils.generate_uuid() for _ in range(each)] for _ in range(clients_)]

    def multiply(conn: sa.Connection) -> None:
        row = dict(conn.execute(sa.select(pools).where(pools.c.id == made["id"])).mappings().one())
        for theirs in ids:
            conn.execute(sa.insert(pools), [{**row, "id": id_} for id_ in theirs])

    site.database.write(multiply)
    vip = {"subnet_id": site.subnet_id, "protocol": "HTTP", "protocol_port": 80}
    return [[json.dumps({"vip": {**vip, "pool_id": id_}}).encode() for id_ in theirs] for theirs in ids]


def settled(database: Database) -> bool:
    waiting = sa.select(sa.func.count()).select_from(deployments).where(deployments.c.due_at.is_not(None))
    return database.read(lambda conn: conn.scalar(waiting)) == 0


def point(site: Site, db: str, clients_: int, seconds: float, pause: Callable[[], None]) -> dict[str, Any]:
    load(site.url, bodies_of(site, clients_, 10), 0.5)  # so that every worker has its connections
    wait_for(lambda: settled(site.database), SETTLE_SECONDS, "what warmed up to settle", interval=0.2)
    before = site.cpu_seconds()["gunicorn"]
    idle = load(site.url, [()] * clients_, seconds / 2)
    idle_cpu = site.cpu_seconds()["gunicorn"] - before
    bodies = bodies_of(site, clients_, int(seconds * MOST_CREATES_PER_SECOND / clients_))
    watch = Watch(site.database)
    pause()
    cpu_before = site.cpu_seconds()
    with watch.watching():
        made = load(site.url, bodies, seconds)
        wait_for(lambda: settled(site.database), SETTLE_SECONDS, "all VIPs to settle", interval=0.2)
        time.sleep(2 * LOOK_EVERY_SECONDS)
    used = {name: seconds - cpu_before[name] for name, seconds in site.cpu_seconds().items()}
    active = [watch.active_after(*it) for it in zip(made.ids, made.begun, made.ended, strict=True)]
    other = sa.select(sa.func.count()).select_from(vips).where(vips.c.status != "ACTIVE")
    return {
        "db": db,
        "clients": clients_,
        "creates_per_second": round(rate(made), 1),
        "create_p50_ms": milliseconds(made.taken, 0.5),
        "create_p95_ms": milliseconds(made.taken, 0.95),
        "active_p50_ms": milliseconds(active, 0.5),
        "active_p95_ms": milliseconds(active, 0.95),
        "not_active": site.database.read(lambda conn: conn.scalar(other)),
        "noop_rate": round(rate(idle), 1),
        "noop_p50_ms": milliseconds(idle.taken, 0.5),
        "cpu_ms_per_noop": round(idle_cpu / len(idle.ended) * 1000, 2),
        "cpu_ms_per_create": {name: round(seconds / len(made.ids) * 1000, 1) for name, seconds in used.items()},
    }


def rate(made: Requests) -> float:
    return len(made.begun) / (max(made.ended) - min(made.begun))


def milliseconds(seconds: Sequence[float], share: float) -> float:
    """The shortest time within which so large a share was done."""
    return round(statistics.quantiles(seconds, n=100, method="inclusive")[int(share * 100) - 1] * 1000, 1)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rest", description=__doc__.splitlines()[0])
    parser.add_argument("--db", choices=["sqlite", "postgresql", "mysql"], default="mysql")
    parser.add_argument("--clients", type=numbers, default=[16], help="numbers of clients, comma-separated")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long VIPs are created")
    parser.add_argument("--devices", type=int, default=100, help="size of the fleet")
    parser.add_argument("--workers", type=int, default=2, help="processes of gunicorn")
    parser.add_argument("--threads", type=int, default=8, help="threads of each")
    parser.add_argument("--pause", action="store_true", help="wait for Enter before creating, to attach a profiler")
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    options = parser.parse_args(arguments)
    pause: Callable[[], Any] = (lambda: input("Enter begins: ")) if options.pause else (lambda: None)
    points = []
    with sites.site(options.db, options.workers, options.threads, options.devices) as site:
        for clients_ in options.clients:
            points.append(point(site, options.db, clients_, options.seconds, pause))
            if not options.json:
                print(points[-1], flush=True)
    if options.json:
        print(json.dumps({"points": points}))


if __name__ == "__main__":
    main(sys.argv[1:])
