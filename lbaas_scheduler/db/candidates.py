"""Reads the fleet for the scheduler: pages of candidates off the index of the hot rows, whatever the size of the fleet.

A page costs one statement, and one more for networks where the request has any. What is cold about a device (its traits,
interfaces, vendor's own) is kept in memory by id and generation, and read again only after it changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy.engine import Connection, Row

from lbaas_scheduler.db import candidate_sql, devices
from lbaas_scheduler.db.class_cache import ClassCache
from lbaas_scheduler.db.models import STANDARD_CLASSES
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.capacity import Usage
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.trail import MAX_REJECTIONS, Rejection
from lbaas_scheduler.scheduler.classes import Resolution, resolve
from lbaas_scheduler.scheduler.framework import Page, PageQuery

MAX_KEPT_DEVICES = 10_000
"""Cold rows kept in memory; some kilobytes each."""


class SqlCandidates:
    """The :class:`~lbaas_scheduler.scheduler.framework.CandidateReader` over the database. Shared by all threads of a server.

    :param agent_down_seconds: an agent whose last report is older than this counts as dead.
    """

    def __init__(self, database: Database, agent_down_seconds: float) -> None:
        self._database = database
        self._classes = ClassCache(database)
        self._agent_down = timedelta(seconds=agent_down_seconds)
        self._kept: dict[str, Device] = {}

    def resolve(self, request: ScheduleRequest) -> Resolution:
        return resolve(self._classes.current(), request)

    def page(self, query: PageQuery) -> Page:
        return self._database.read(lambda conn: self._page(conn, query))

    def _page(self, conn: Connection, query: PageQuery) -> Page:
        rows = candidate_sql.in_order(conn.execute(candidate_sql.page(query)).all(), query)
        if not rows:
            return Page(())
        cold = self._cold(conn, {row.device_id: row.generation for row in rows})
        wired = candidate_sql.wired(conn, query.request.networks, list(cold))
        heard_since = utcnow() - self._agent_down
        alive, unreachable = [], []
        for row in rows:
            if row.device_id not in cold:
                continue  # removed since the page was read
            candidate = _candidate(row, cold[row.device_id], wired.get(row.device_id, frozenset()))
            reachable = row.agent_up and row.heartbeat_at >= heard_since
            (alive if reachable else unreachable).append(candidate)
        return Page(tuple(alive), tuple(unreachable), last=len(rows) < query.size)

    def _cold(self, conn: Connection, generations: Mapping[str, int]) -> dict[str, Device]:
        kept = self._kept
        found = {id_: kept[id_] for id_, generation in generations.items() if id_ in kept and kept[id_].generation == generation}
        missing = generations.keys() - found.keys()
        if missing:
            read = devices.by_ids(conn, missing)
            if len(kept) + len(read) > MAX_KEPT_DEVICES:
                kept.clear()
            kept.update(read)
            found.update(read)
        return found

    def diagnose(self, request: ScheduleRequest, resolution: Resolution) -> tuple[Mapping[str, int], Sequence[Rejection]]:
        heard_since = utcnow() - self._agent_down
        totals, sample = self._database.read(
            lambda conn: (
                conn.execute(candidate_sql.census(request, heard_since)).all(),
                conn.execute(candidate_sql.census_sample(request, heard_since, MAX_REJECTIONS)).all(),
            )
        )
        counts: Counter[str] = Counter()
        for row in totals:
            code, _ = _why(row.class_id, row.code, request, resolution)
            if code:
                counts[code] += row.devices
        rejections = []
        for row in sample:
            code, reason = _why(row.class_id, row.code, request, resolution)
            if code:
                rejections.append(Rejection(row.device_id, row.name, code, reason))
        return counts, rejections


def _candidate(row: Row[Any], device: Device, networks: frozenset[str]) -> Candidate:
    usage = {
        name: Usage(used=getattr(row, f"{name.lower()}_used"), limit=getattr(row, f"{name.lower()}_max"))
        for name in STANDARD_CLASSES
    }
    return Candidate(
        device=device,
        usage=usage,
        agent_host=row.agent_host or "",
        networks=networks,
        hosts_tenant=bool(row.hosts_tenant),
        load=row.rank,
    )


_SENTENCES = {
    "device.draining": "is being drained",
    "device.disabled": "is disabled",
    "device.offline": "is not ONLINE",
    "agent.none": "no agent drives it",
    "agent.down": "its agent does not report",
    "agent.disabled": "its agent is disabled",
}


def _why(class_id: int, code: str | None, request: ScheduleRequest, resolution: Resolution) -> tuple[str, str]:
    """The first thing that speaks against a device: its class, else its state; ("", "") = nothing does."""
    if class_id in resolution.dropped:
        return resolution.dropped[class_id]
    if code is None:
        return "", ""
    if code.startswith("capacity."):
        resource_class = code.partition(".")[2]
        return code, f"has no room for {request.demand.get(resource_class, 1)} {resource_class}"
    return code, _SENTENCES.get(code, code)
