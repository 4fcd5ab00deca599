"""What Prometheus reads: what this process did, and how the whole stands."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

import falcon
from oslo_messaging import MessageDeliveryFailure
from prometheus_client import CollectorRegistry, Counter, Histogram, exposition, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lbaas_scheduler.allocator.drivers.sql import SqlDriver
from lbaas_scheduler.allocator.levels import Level
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.api.operations import Call, Operation, Raw
from lbaas_scheduler.db import gauges, placements
from lbaas_scheduler.db.gauges import Gauges
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.simulation import Simulation
from lbaas_scheduler.domain.trail import Decision
from lbaas_scheduler.errors import LBaaSError, NoValidDevice
from lbaas_scheduler.plugins.device_scheduler.placer import Places, Within
from lbaas_scheduler.rpc.agent_api import VipChange
from lbaas_scheduler.sdk.bounded import run_within

LOG = logging.getLogger(__name__)

Labels = TypeVar("Labels", bound=tuple[str, ...])

PREFIX = "lbaas_scheduler"

LONGEST_READING_SECONDS = 3.0
"""For how long the allocator's store may keep Prometheus waiting."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus-client's own variable: the folder in which several processes of a WSGI server add up what they did."""


class Meters:
    """The counters of this process. Those of several servers are added up by whoever reads them.

    ``reading``: held by whoever reads the allocator's store for it.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reading = threading.Lock()
        own = self.registry
        self.placements = Counter(f"{PREFIX}_placements", "Resources to be placed", ["role", "outcome", "reason"], registry=own)
        self.placing = Histogram(
            f"{PREFIX}_placement_seconds", "Time to place", ["role", "outcome"], buckets=SECONDS, registry=own
        )
        self.casts = Counter(f"{PREFIX}_casts", "Messages to agents", ["verb", "outcome"], registry=own)
        self.dropped = Counter(
            f"{PREFIX}_casts_dropped", "Messages to agents that were left to the reconciler", ["reason"], registry=own
        )
        self.requests = Histogram(
            f"{PREFIX}_request_seconds", "Time to answer", ["method", "route", "status"], buckets=SECONDS, registry=own
        )

    def count_dropped(self, reason: str, count: int) -> None:
        """See :class:`lbaas_scheduler.plugins.outbox.Outbox`."""
        self.dropped.labels(reason).inc(count)

    def render(self, *read_now: Collector) -> bytes:
        """All of it as text."""
        shown = CollectorRegistry()
        for collector in read_now:
            shown.register(collector)
        if os.environ.get(MULTIPROCESS):
            multiprocess.MultiProcessCollector(shown)  # type: ignore[no-untyped-call]
            return exposition.generate_latest(shown)
        return exposition.generate_latest(self.registry) + exposition.generate_latest(shown)


class MeteredPlacer:
    """A placer whose placements are counted. ``role`` tells new resources, ``current``, from moves, ``target``."""

    def __init__(self, placer: Places, meters: Meters) -> None:
        self._placer = placer
        self._meters = meters

    def algorithms(self) -> Mapping[str, Collection[str]]:
        return self._placer.algorithms()

    def place(self, request: ScheduleRequest, within: Within | None = None, role: str = placements.CURRENT) -> Decision:
        with self._metered(role):
            return self._placer.place(request, within, role)

    def simulate(self, request: ScheduleRequest, count: int = 1) -> Simulation:
        return self._placer.simulate(request, count)

    @contextmanager
    def _metered(self, role: str) -> Iterator[None]:
        began, outcome, reason = time.perf_counter(), "placed", ""
        try:
            yield
        except NoValidDevice as error:
            outcome, reason = "refused", _main_reason(error)
            raise
        except Exception as error:
            # What the caller does within the placement failed, or something is away: not the scheduler's verdict.
            outcome, reason = "failed", type(error).__name__ if isinstance(error, LBaaSError) else "Exception"
            raise
        finally:
            self._meters.placements.labels(role, outcome, reason).inc()
            self._meters.placing.labels(role, outcome).observe(time.perf_counter() - began)


def _main_reason(error: NoValidDevice) -> str:
    """What refused most devices. Codes that name something of a vendor or a tenant are cut to their kind."""
    dropped: Mapping[str, int] = (error.details.get("trail") or {}).get("dropped") or {}
    if not dropped:
        return "no_devices"
    return max(sorted(dropped), key=lambda code: dropped[code]).split(".")[0]


class MeteredAgents:
    """The agents as servers reach them (:class:`~lbaas_scheduler.rpc.agent_api.AgentAPI`), with every message counted."""

    def __init__(self, agents: Any, meters: Meters) -> None:
        self._agents = agents
        self._meters = meters

    def create_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        self._send("create_vip", host, device, deployment)

    def update_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        self._send("update_vip", host, device, deployment)

    def delete_vip(self, host: str, device: Mapping[str, Any], vip_id: str, version: Version) -> None:
        self._send("delete_vip", host, device, vip_id, version)

    def change_vips(self, host: str, changes: Sequence[VipChange]) -> None:
        self._send("change_vips", host, changes)

    def resync(self, host: str, device_id: str | None = None) -> None:
        self._send("resync", host, device_id)

    def agent_updated(self, host: str, admin_state_up: bool) -> None:
        self._send("agent_updated", host, admin_state_up)

    def _send(self, verb: str, *arguments: Any) -> None:
        try:
            getattr(self._agents, verb)(*arguments)
        except MessageDeliveryFailure:
            self._meters.casts.labels(verb, "bus_away").inc()
            raise
        self._meters.casts.labels(verb, "sent").inc()


class Fleet(Collector):
    """How the whole stands, read from the database when somebody asks."""

    def __init__(self, database: Database, heard_since: datetime) -> None:
        self._database = database
        self._heard_since = heard_since

    def collect(self) -> Iterator[Metric]:
        try:
            found = self._database.glance(lambda conn: gauges.read(conn, utcnow(), self._heard_since))
        except LBaaSError:
            yield GaugeMetricFamily(f"{PREFIX}_database_up", "Whether the database answers", 0)
            return
        yield GaugeMetricFamily(f"{PREFIX}_database_up", "Whether the database answers", 1)
        yield from _families(found)


def _families(found: Gauges) -> Iterator[Metric]:
    yield _gauge("devices", "Registered devices", ("status", "admin_state"), found.devices)
    yield _gauge("devices_open", "Devices that take new VIPs", (), {(): found.open_devices})
    yield _gauge("agents", "Agents that ever reported", ("state",), {(state,): count for state, count in found.agents.items()})
    yield _gauge("vips", "VIPs", ("status",), {(status,): count for status, count in found.vips.items()})
    ages = {("+Inf" if age is None else str(age),): count for age, count in found.unapplied.items()}
    yield _gauge("unapplied_deployments", "Deployments that agents did not confirm yet, by age", ("younger_than_seconds",), ages)
    yield _gauge("repaired_vips", "VIPs that devices had lost and got back, since the agents' starts", (), {(): found.repaired})
    yield _gauge("cast_queue", "Casts that are due and that no server has taken up", (), {(): found.due})


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Mapping[Labels, int]) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


class Resources(Collector):
    """How full the pools of resources are, at least the fullest of them: a pool's name is a label, and pools are many.

    One reading at a time, and none that keeps Prometheus waiting: a store that is away may take its time to say so.
    """

    def __init__(self, allocator: ResourceAllocator, database: Database, reading: threading.Lock) -> None:
        self._allocator = allocator
        self._database = database
        self._reading = reading

    def collect(self) -> Iterator[Metric]:
        found: list[Level] | None = self._within_time()
        text = "Whether the store of the resource allocator answers"
        yield GaugeMetricFamily(f"{PREFIX}_allocator_up", text, int(found is not None))
        values = {
            (level.kind, level.scope, level.pool, state): getattr(level, state)
            for level in found or ()
            for state in ("total", "used", "held", "quarantined")
        }
        yield _gauge("resource_values", "Values of the fullest pools of resources", ("kind", "scope", "pool", "state"), values)

    def _within_time(self) -> list[Level] | None:
        if not self._reading.acquire(blocking=False):
            return None
        answers: list[list[Level]] = []
        run_within(time.monotonic() + LONGEST_READING_SECONDS, "read-resources", lambda: self._read(answers))
        return answers[0] if answers else None

    def _read(self, answers: list[list[Level]]) -> None:
        try:
            # In the product's own database, all pools are counted by one statement.
            counted = self._database.glance(gauges.allocations) if isinstance(self._allocator.driver, SqlDriver) else None
            answers.append(self._allocator.levels(counted))
        except LBaaSError as error:
            LOG.warning("How full the pools of resources are cannot be read: %s", error.message)
        finally:
            self._reading.release()


class RequestMeter:
    """Falcon middleware: how long each kind of request took."""

    def __init__(self, meters: Meters) -> None:
        self._requests = meters.requests

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.began = time.perf_counter()

    def process_response(self, req: falcon.Request, resp: falcon.Response, resource: Any, req_succeeded: bool) -> None:
        # Only paths and methods of ours: what strangers make up must not become labels.
        if req.uri_template is not None and resp.status_code != 405:
            labels = (req.method, req.uri_template, str(resp.status_code))
            self._requests.labels(*labels).observe(time.perf_counter() - req.context.began)


def _metrics(call: Call) -> Raw:
    services = call.services
    fleet = Fleet(services.database, services.heard_since())
    resources = Resources(services.allocator, services.database, services.meters.reading)
    return Raw(services.meters.render(fleet, resources), exposition.CONTENT_TYPE_LATEST)


METRICS = Operation(
    run=_metrics,
    rule=None,
    summary="Show counters for Prometheus",
    tag="Operations",
    gives={"type": "string"},
    media_type="text/plain",
)
