"""Reads the fleet for the scheduler: pages of candidates off the index of the hot rows, whatever the size of the fleet.

A page costs one statement. What is cold about a device (its traits, interfaces, vendor's own) is kept in memory by id and
generation, and read again only after it changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import candidate_sql, device_capacities, device_networks, device_reports, devices
from lbaas_scheduler.db.class_cache import ClassCache
from lbaas_scheduler.db.models import STANDARD_CLASSES
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.capacity import Usage
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.fleet import DeviceClass, Diagnosis, Page, PageQuery, Resolution
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.simulation import Prospect
from lbaas_scheduler.domain.trail import MAX_REJECTIONS, Rejection

MAX_KEPT_DEVICES = 10_000
"""Cold rows kept in memory; some kilobytes each."""

READ_AHEAD = 100
"""So many that were registered after a missing one are read with it: they are the next ones that an even fleet offers."""

_COUNTERS = {name: (f"{name.lower()}_used", f"{name.lower()}_max") for name in STANDARD_CLASSES}


class SqlCandidates:
    """The :class:`~lbaas_scheduler.scheduler.framework.CandidateReader` over the database. Shared by all threads of a server.

    :param agent_down_seconds: an agent whose last report is older than this counts as dead.
    :param load_max_age_seconds: what a device said of its load longer ago counts as nothing said.
    """

    def __init__(self, database: Database, agent_down_seconds: float, load_max_age_seconds: float = 60.0) -> None:
        self._database = database
        self._classes = ClassCache(database)
        self._agent_down = timedelta(seconds=agent_down_seconds)
        self._load_max_age = timedelta(seconds=load_max_age_seconds)
        self._kept: dict[str, Device] = {}

    def classes(self) -> Sequence[DeviceClass]:
        return self._classes.current()

    def refresh(self) -> None:
        self._classes.refresh()

    def page(self, query: PageQuery) -> Page:
        def work(conn: Connection) -> Page:
            found = self._page(conn, query)
            return device_reports.added(conn, found, self._load_max_age) if query.reported else found

        return self._database.read(work)

    def _page(self, conn: Connection, query: PageQuery) -> Page:
        statement, values = candidate_sql.page(query, utcnow() - self._agent_down)
        rows = candidate_sql.in_order(conn.execute(statement, values).all(), query)
        if not rows:
            return Page(())
        cold = self._cold(conn, rows)
        candidates, rejections = [], []
        for row in rows:
            device = cold.get(row.device_id)
            if device is None:
                continue  # removed since the page was read
            code = _agent_fault(row)
            if code is None:
                candidates.append(_candidate(row, device, query.request.networks))
            else:
                rejections.append(Rejection(device.id, device.name, code, _SENTENCES[code]))
        return Page(tuple(candidates), tuple(rejections), last=len(rows) < query.size, version=rows[0].version)

    def _cold(self, conn: Connection, rows: Sequence[AnyRow]) -> dict[str, Device]:
        kept = self._kept
        found, missing = {}, {}
        for row in rows:
            device = kept.get(row.device_id)
            if device is not None and device.generation == row.generation:
                found[row.device_id] = device
            else:
                missing[row.device_id] = row.seq
        if missing:
            wanted = set(missing)
            if len(kept) < MAX_KEPT_DEVICES - READ_AHEAD:
                ahead = {"seq": max(missing.values()), "size": READ_AHEAD}
                wanted.update(conn.scalars(candidate_sql.FOLLOWING, ahead))
            read = devices.by_ids(conn, wanted)
            if len(kept) + len(read) > MAX_KEPT_DEVICES:
                # A new one, since other threads may be reading the old one.
                kept = self._kept = {}
            kept.update(read)
            found.update(read)
        return found

    def prospect(self, candidate: Candidate, request: ScheduleRequest) -> Prospect:
        """What a claim would meet on the candidate's device, beyond what its page said."""
        device = candidate.device

        def work(conn: Connection) -> Prospect:
            own = device_capacities.usage(conn, [device.id]).get(device.id, {})
            return Prospect(own, device_networks.fits(conn, device, request.networks))

        return self._database.read(work)

    def diagnose(self, request: ScheduleRequest, resolution: Resolution, known: Collection[str]) -> Diagnosis:
        heard_since = utcnow() - self._agent_down
        census = candidate_sql.census(request, heard_since, known)
        sample = candidate_sql.census_sample(request, heard_since, known, MAX_REJECTIONS)
        totals, named, version = self._database.read(
            lambda conn: (
                conn.execute(*census).all(),
                conn.execute(*sample).all(),
                conn.execute(sa.select(candidate_sql.VERSION)).scalar_one(),
            )
        )
        counts: Counter[str] = Counter()
        for row in totals:
            counts[_why(row, request, resolution)[0]] += row.devices
        rejections = tuple(Rejection(row.device_id, row.name, *_why(row, request, resolution)) for row in named)
        return Diagnosis(counts, rejections, version)


def _agent_fault(row: AnyRow) -> str | None:
    """What the registry has not noticed yet: a device is closed once its agent is known to be dead."""
    if row.agent_host is None:
        return "agent.none"
    if not row.agent_up:
        return "agent.disabled"
    return "agent.down" if row.agent_silent else None


def _candidate(row: AnyRow, device: Device, networks: Sequence[str]) -> Candidate:
    return Candidate(
        device=device,
        usage=_StandardUsage(row),
        agent_host=row.agent_host,
        networks=frozenset(it for number, it in enumerate(networks) if getattr(row, f"wired_{number}")) if networks else _NONE,
        hosts_tenant=bool(row.hosts_tenant),
        load=row.rank,
        seq=row.seq,
    )


_NONE: frozenset[str] = frozenset()


class _StandardUsage(Mapping[str, Usage]):
    """Of the standard resource classes, counted out only when somebody looks: few handlers do, and a page has many rows."""

    __slots__ = ("_row",)

    def __init__(self, row: AnyRow) -> None:
        self._row = row

    def __getitem__(self, name: str) -> Usage:
        used, limit = _COUNTERS[name]
        return Usage(getattr(self._row, used), getattr(self._row, limit))

    def __iter__(self) -> Iterator[str]:
        return iter(_COUNTERS)

    def __len__(self) -> int:
        return len(_COUNTERS)


_SENTENCES = {
    "excluded": "was excluded by the request",
    "dedicated": "belongs to another tenant for now, or is not empty and cannot be given to one tenant",
    "hint": "is not the device that was asked for",
    "device.draining": "is being drained",
    "device.disabled": "is disabled",
    "device.offline": "is not ONLINE",
    "device.closed": "is not open for new resources",
    "agent.none": "no agent drives it",
    "agent.down": "its agent does not report",
    "agent.disabled": "its agent is disabled",
    "unexamined": "was not looked at within [scheduler] max_rounds",
}


def _why(row: AnyRow, request: ScheduleRequest, resolution: Resolution) -> tuple[str, str]:
    """Code and sentence of the first thing that speaks against a device: its class, else its state."""
    if row.class_id in resolution.dropped:
        return resolution.dropped[row.class_id]
    code = row.code or "unexamined"
    if code.startswith("capacity."):
        resource_class = code.partition(".")[2]
        return code, f"has no room for {request.demand[resource_class]} {resource_class}"
    return code, _SENTENCES[code]
