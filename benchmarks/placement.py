"""How fast resources are placed, beside the floor: a bare SQLAlchemy Core transaction with the same statements.

``python -m benchmarks.placement --db postgresql --devices 100,10000 --clients 1,4 --json``

A client is a process with a database pool of its own. Engine and floor are measured in turns on the same fleet; a point's figures
are the medians of its rounds. ``floor_ratio`` = the engine's rate / the floor's. The whole placement is measured: candidates,
claim, placement with its trail, VIP row, address, deployment.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from benchmarks import fleet
from lbaas_scheduler.db import candidate_sql, placements
from lbaas_scheduler.db import engine as engines
from lbaas_scheduler.db.candidates import SqlCandidates
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.fleet import PageQuery, Source
from lbaas_scheduler.domain.trail import Decision
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from lbaas_scheduler.scheduler.algorithms.least_loaded import LeastLoaded
from lbaas_scheduler.scheduler.classes import resolve
from lbaas_scheduler.scheduler.framework import Scheduler
from lbaas_scheduler.scheduler.gate import HandlerGate
from lbaas_scheduler.sdk.handlers import DeviceHandler

WARM_UP = 30
PAGE_SIZE = 32
AGENT_DOWN_SECONDS = 75


class Indifferent(DeviceHandler):
    """A handler that accepts everything."""

    def validate_device(self, device: Any) -> None:
        """Everything is valid."""


@dataclass(frozen=True)
class Run:
    """What one client did: seconds per placement, claims lost to others, statements per placement."""

    seconds: list[float]
    elapsed: float
    conflicts: int
    statements: float


def engine_client(database: Database) -> Callable[[str], int]:
    """Places one VIP; returns how many claims were lost on the way."""
    gate = HandlerGate({"fake": Indifferent(), "other": Indifferent()}, 1.0)
    scheduler = Scheduler(gate, {"least_loaded": LeastLoaded()}, "least_loaded", page_size=PAGE_SIZE)
    placer = Placer(database, SqlCandidates(database, AGENT_DOWN_SECONDS), {fleet.SERVICE: scheduler})
    connector = fleet.connector(database)

    def place(tenant: str) -> int:
        request = fleet.new_request(tenant)
        reservation = fleet.reservation(request.resource_id)

        def within(conn: sa.Connection, decision: Decision) -> None:
            fleet.write_vip(conn, request.resource_id, decision.device_id, tenant, connector.bind(conn, reservation))

        decision = placer.place(request, within)
        return int(decision.trail.dropped.get("claim.lost", 0))

    return place


def floor_client(database: Database) -> Callable[[str], int]:
    """The same statements in one transaction, and nothing else."""
    reader = SqlCandidates(database, AGENT_DOWN_SECONDS)
    engine = engines.writer(database.engine)
    [class_ids] = resolve(reader.classes(), fleet.new_request("tenant")).tiers
    claim = placements.claim_statement(("VIPS",))
    insert = sa.insert(fleet.placements)
    trail = {"algorithm": "least_loaded", "tenancy": "private_first", "rounds": 1, "examined": PAGE_SIZE, "dropped": {}}
    fixed = {"role": "current", "service": fleet.SERVICE, "amounts": {"VIPS": 1}, "networks": [], "score": 50.0, "trail": trail}

    def place(tenant: str) -> int:
        request = fleet.new_request(tenant)
        page = candidate_sql.page(PageQuery(request, class_ids, Source.BY_LOAD, PAGE_SIZE), utcnow())

        with engine.begin() as conn:
            device_id = random.choice(conn.execute(*page).all()).device_id  # noqa: S311
            lost = conn.execute(claim, {"device": device_id, "amount_0": 1, "tenant": tenant}).rowcount == 0
            values = {"resource_id": request.resource_id, "device_id": device_id, "tenant_id": tenant, "created_at": utcnow()}
            conn.execute(insert, fixed | values)
            with conn.begin_nested():
                address = fleet.write_address(conn, request.resource_id)
            fleet.write_vip(conn, request.resource_id, device_id, tenant, address)
            return int(lost)

    return place


CLIENTS = {"engine": engine_client, "floor": floor_client}


def client(kind: str, url: str, seconds: float, together: Any, results: Any) -> None:
    database = fleet.open_database(url)
    place = CLIENTS[kind](database)
    for _ in range(WARM_UP):
        place(_tenant())
    statements = _count_statements(database, place)
    together.wait()
    taken: list[float] = []
    conflicts = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        start = time.perf_counter()
        conflicts += place(_tenant())
        taken.append(time.perf_counter() - start)
    results.put(Run(taken, time.monotonic() - began, conflicts, statements))
    database.dispose()


def _tenant() -> str:
    return f"tenant-{random.randrange(fleet.TENANTS)}"  # noqa: S311


def _count_statements(database: Database, place: Callable[[str], int], placements: int = 10) -> float:
    sent: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            sent.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    for _ in range(placements):
        place(_tenant())
    sa.event.remove(database.engine, "before_cursor_execute", note)
    return len(sent) / placements


def measure(kind: str, url: str, clients: int, seconds: float) -> list[Run]:
    spawn = multiprocessing.get_context("spawn")
    results, together = spawn.Queue(), spawn.Barrier(clients)
    started = [spawn.Process(target=client, args=(kind, url, seconds, together, results)) for _ in range(clients)]
    for process in started:
        process.start()
    runs = [results.get(timeout=seconds + 120) for _ in started]
    for process in started:
        process.join()
    return runs


def point(url: str, db: str, devices: int, clients: int, seconds: float, rounds: int) -> dict[str, Any]:
    turns = [{kind: measure(kind, url, clients, seconds) for kind in CLIENTS} for _ in range(rounds)]
    rates = [{kind: sum(len(run.seconds) / run.elapsed for run in turn[kind]) for kind in CLIENTS} for turn in turns]
    taken = sorted(each for turn in turns for run in turn["engine"] for each in run.seconds)
    database = fleet.open_database(url)
    found = {
        "db": db,
        "devices": devices,
        "clients": clients,
        "rate": round(statistics.median(rate["engine"] for rate in rates), 1),
        "p50_ms": round(taken[len(taken) // 2] * 1000, 3),
        "p99_ms": round(taken[int(len(taken) * 0.99)] * 1000, 3),
        "statements": turns[0]["engine"][0].statements,
        "conflicts": sum(run.conflicts for turn in turns for run in turn["engine"]),
        "overcommitted": fleet.overcommitted(database),
        "drift": fleet.drift(database),
        "floor_rate": round(statistics.median(rate["floor"] for rate in rates), 1),
        "floor_ratio": round(statistics.median(rate["engine"] / rate["floor"] for rate in rates), 3),
    }
    database.dispose()
    return found


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    points = []
    with fleet.server(options.db) if options.url is None else nullcontext(options.url) as url:
        for devices in options.devices:
            database = fleet.open_database(url)
            fleet.create(database, devices)
            try:
                for clients in options.clients:
                    points.append(point(url, options.db, devices, clients, options.seconds, options.rounds))
                    if not options.json:
                        print(points[-1], flush=True)
            finally:
                fleet.drop(database)
                database.dispose()
    return points


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement", description=__doc__.splitlines()[0])
    parser.add_argument("--db", choices=["sqlite", "postgresql", "mysql"], default="sqlite")
    parser.add_argument("--url", help="an empty database to use; default: a private instance that is started for the purpose")
    parser.add_argument("--devices", type=numbers, default=[100, 1000, 10000], help="sizes of the fleet, comma-separated")
    parser.add_argument("--clients", type=numbers, default=[1, 4], help="numbers of processes, comma-separated")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each measurement of a round takes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    options = parser.parse_args(arguments)
    points = run(options)
    if options.json:
        print(json.dumps({"points": points}))


def numbers(text: str) -> list[int]:
    """Of an option: comma-separated."""
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main(sys.argv[1:])
