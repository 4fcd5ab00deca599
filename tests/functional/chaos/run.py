"""One run: work under faults, healing, and judgement."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from tests.allocator_side import new_allocator, open_store
from tests.functional.chaos import faults, invariants
from tests.functional.chaos.faults import Nemesis
from tests.functional.chaos.site import AGENTS, Site
from tests.functional.chaos.workload import Operator, Tenant
from tests.rig.waiting import wait_for

TENANTS = 3
QUOTAS = {"vip": 12, "pool": 30, "member": 60}

HEALED_SECONDS = 120.0
"""Until every process answers after the last fault."""

QUIET_SECONDS = 240.0
"""Until nothing is to be done any more: well above every time-out that a single step has."""


@dataclass
class Outcome:
    """:ivar violations: what must not be; empty = all is well."""

    violations: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)


def run(site: Site, seed: str, seconds: float) -> Outcome:
    """Work for so many seconds while what the seed says breaks; then heal, wait and judge."""
    subnets = site.furnish(TENANTS)
    drawn = faults.draw(seed, seconds, faults.targets(site), site.stores.services())
    nemesis = Nemesis(site, drawn)
    tenants = [Tenant(site.http, seed, f"tenant-{number}", subnet_id) for number, subnet_id in enumerate(subnets)]
    operator = Operator(site.http, seed, "operator")
    workers = [*tenants, operator]
    nemesis.start(time.monotonic())
    for worker in workers:
        worker.start()
    outcome = Outcome(log=nemesis.log)
    try:
        nemesis.finish(seconds + 300)
        for worker in workers:
            worker.finish()
        _heal(site, operator, nemesis)
        _judge(site, tenants, outcome, nemesis)
    except AssertionError as error:  # so that what broke before is told, too
        outcome.violations.append(f"the run broke off: {error}")
    outcome.facts = _facts(site, workers, drawn)
    return outcome


def _heal(site: Site, operator: Operator, nemesis: Nemesis) -> None:
    nemesis.note("everything is whole")
    wait_for(lambda: _is_well(site), HEALED_SECONDS, "all servers to be healthy", interval=0.5, ignore=(_Ill,))
    wait_for(lambda: site.alive_agents() >= set(AGENTS), HEALED_SECONDS, "all agents to report", interval=0.5)
    operator.tidy_up(HEALED_SECONDS)
    nemesis.note("all servers are healthy, all agents report, all devices are enabled")


def _judge(site: Site, tenants: list[Tenant], outcome: Outcome, nemesis: Nemesis) -> None:
    read = site.database.read
    with closing(open_store(_store_url(site))) as driver:
        allocator = new_allocator(driver)
        settling: list[Callable[[], list[str]]] = [
            lambda: read(invariants.unsettled),
            lambda: read(lambda conn: invariants.devices_as_the_database(conn, site.rack)),
            lambda: read(lambda conn: invariants.addresses_held_once(conn, allocator, driver)),
            lambda: read(lambda conn: invariants.segments_held_once(conn, driver)),
        ]
        outcome.violations += _when_quiet(settling)
        nemesis.note("nothing is to be done any more" if not outcome.violations else "it does not settle")
        outcome.violations += read(invariants.placed_once)
        outcome.violations += invariants.counted(site.database)
        outcome.violations += read(lambda conn: invariants.quotas(conn, QUOTAS))
        entries = [entry for tenant in tenants for entry in tenant.ledger.entries.values()]
        outcome.violations += read(lambda conn: invariants.as_clients_were_told(conn, entries))
    outcome.violations += site.http.wrong
    outcome.violations += [end for process in site.processes.values() for end in process.ends]
    outcome.violations += _ill(site)


def _when_quiet(checks: list[Callable[[], list[str]]]) -> list[str]:
    """What is still wrong when the time for it is over."""
    deadline = time.monotonic() + QUIET_SECONDS
    while True:
        found = [text for check in checks for text in check()]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(1)


class _Ill(Exception):
    """What is wrong with processes."""


def _is_well(site: Site) -> bool:
    if found := _ill(site):
        raise _Ill("; ".join(found))
    return True


def _ill(site: Site) -> list[str]:
    answers = {port: site.http.once(port, "GET", "/healthcheck") for port in site.http.ports}
    ill = [f"the API on port {port} is ill: {answer}" for port, answer in answers.items() if not answer.ok]
    return ill + faults.ended_by_itself(site)


def _store_url(site: Site) -> str:
    etcd = site.stores.etcd
    return f"{etcd.url}{site.namespace}" if etcd else site.stores.database_url


def _facts(site: Site, workers: list[Tenant | Operator], drawn: list[faults.Fault]) -> list[str]:
    done = sum((worker.done for worker in workers), Counter[str]())
    broken = {name: link.broken for name, link in sorted(site.links().items()) if link.broken}
    return [
        f"faults: {dict(Counter(fault.kind for fault in drawn))}",
        f"done: {dict(done)}",
        f"answers: {dict(sorted(site.http.counts.items()))}, the slowest after {site.http.slowest:.1f} s",
        f"connections broken: {broken}",
    ]
