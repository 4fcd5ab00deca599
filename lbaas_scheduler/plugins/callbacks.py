"""What agents ask and tell the server: the endpoint behind :class:`~lbaas_scheduler.rpc.server_api.ServerAPI`.

An agent is only believed about devices that it drives now. What it says of others (it was cut off, and its devices went
elsewhere) is logged and ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import oslo_messaging
import sqlalchemy as sa

from lbaas_scheduler.db import deployments, device_agents, devices, restores
from lbaas_scheduler.db.deployments import DeploymentRow
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.deployments import Deployment, Result, VipStats
from lbaas_scheduler.errors import InvalidRequest, KeptForRestore, LBaaSError, Unavailable
from lbaas_scheduler.plugins.agents import AgentDirectory
from lbaas_scheduler.plugins.casts import Documents, LoadsWirings, build_each
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.codec import encode_device, from_document, to_document
from lbaas_scheduler.rpc.dispatching import expecting

LOG = logging.getLogger(__name__)

T = TypeVar("T")

MAX_PAGE = 10_000

Reported = tuple[str, Result]
"""A device's id, and what came of a VIP on it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be done about results after the commit. ``gone``: to be given to :meth:`Reports.dispose`. ``moved``: ids of
    what a device has to let go of now: to be cast."""

    gone: Sequence[str] = ()
    moved: Sequence[str] = ()


class Reports(Protocol):
    """What becomes of reports: see :class:`lbaas_scheduler.plugins.loadbalancer.reports.Reports`."""

    def apply_reports(self, conn: sa.Connection, reports: Sequence[Reported]) -> Outcome: ...

    def apply_stats(self, conn: sa.Connection, stats: Mapping[str, VipStats], device_id: str | None = None) -> None: ...

    def dispose(self, vip_ids: Collection[str]) -> None: ...


_expecting = expecting(LBaaSError)
"""Our own errors are an answer to the agent, and no fault that the bus would log with its traceback."""


class AgentCallbacks:
    """The endpoint for agents, version 1.0.

    :param cast: sends what is due of VIPs: see :meth:`lbaas_scheduler.plugins.casts.Casts.cast`.
    """

    target = oslo_messaging.Target(version=topics.VERSION)

    def __init__(
        self,
        database: Database,
        directory: AgentDirectory,
        reports: Reports,
        load_vips: Documents,
        wirings: LoadsWirings = lambda *_: {},
        *,
        cast: Callable[[Collection[str]], object] = lambda _: None,
    ) -> None:
        self._database = database
        self._directory = directory
        self._reports = reports
        self._load_vips = load_vips
        self._cast = cast
        self._wirings = wirings

    def ping(self, context: Any) -> None:
        """Somebody wants to know whether the bus works and a server is there."""

    def report_state(self, context: Any, state: Any) -> None:
        """An agent lives. Cast."""
        self._directory.report(state)

    @_expecting
    def get_devices(self, context: Any, host: str) -> list[dict[str, Any]]:
        """The devices that the agent drives, their secrets sealed."""

        def work(conn: sa.Connection) -> list[dict[str, Any]]:
            mine = devices.by_ids_stored(conn, device_agents.devices_on_host(conn, host))
            return [encode_device(stored.device, stored.secret) for _, stored in sorted(mine.items())]

        return self._database.read(work)

    @_expecting
    def list_desired(self, context: Any, host: str, device_id: str, marker: str | None, limit: int) -> list[dict[str, Any]]:
        """A page of what the device should have, by VIP id from after ``marker``; [] at the end, and for others' devices."""

        def work(conn: sa.Connection) -> list[DeploymentRow]:
            if not _drives(conn, host, device_id):
                return []
            return deployments.list_desired(conn, device_id, marker, min(max(1, limit), MAX_PAGE))

        return [
            {
                "vip_id": row.resource_id,
                "epoch": row.version.epoch,
                "revision": row.version.revision,
                "operation": row.operation,
            }
            for row in self._database.read(work)
        ]

    @_expecting
    def get_deployments(self, context: Any, host: str, device_id: str, vip_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The whole desired state of those of the VIPs that are to be on the device."""

        def work(conn: sa.Connection) -> list[Deployment]:
            if not _drives(conn, host, device_id):
                return []
            wanted = {row.resource_id: row for row in deployments.on_device(conn, device_id, vip_ids) if not row.removing}
            vips = build_each(lambda ids: self._load_vips(conn, ids), list(wanted))
            wirings = self._wirings(conn, devices.by_ids(conn, [device_id]), list(wanted))
            return [
                Deployment(vip, wanted[vip_id].version, wirings.get((vip_id, device_id), {}))
                for vip_id, vip in sorted(vips.items())
            ]

        found = self._database.read(work)
        if len(found) < max(1, len(vip_ids)):
            self._keep_unknown(host, device_id, vip_ids)
        return [to_document(deployment) for deployment in found]

    def _keep_unknown(self, host: str, device_id: str, vip_ids: Sequence[str]) -> None:
        """Agents remove what is not in an answer, and spare what they get an error for, until it stands alone.

        :raises KeptForRestore: a restore is under way, and one of the VIPs, or the device, is not in the database.
        """

        def unknown(conn: sa.Connection) -> set[str]:
            under_way = restores.started_at(conn) is not None
            return restores.unknown_of(conn, device_id, vip_ids) if under_way else set()

        missing = self._database.read(unknown)
        if not missing:
            return
        kept = self._database.write(lambda conn: restores.note(conn, host, device_id, missing))
        if kept:
            what = f"VIP {min(kept)}" if kept != {""} else "anything"
            raise KeptForRestore(what=what, device_id=device_id)

    @_expecting
    def report_results(self, context: Any, host: str, results: Mapping[str, Sequence[Any]]) -> None:
        """What came of applying and removing VIPs, by device. On return it is recorded, or not worth it. May be repeated."""
        read = ((device_id, _read(Result, host, document)) for device_id, documents in results.items() for document in documents)
        self._apply(host, [(device_id, result) for device_id, result in read if result is not None])

    def report_stats(self, context: Any, host: str, device_id: str, stats: Mapping[str, Any]) -> None:
        """Counters and member health. Cast."""
        read = {key: it for key, document in stats.items() if (it := _read(VipStats, host, document)) is not None}

        def work(conn: sa.Connection) -> None:
            if _drives(conn, host, device_id):
                self._reports.apply_stats(conn, read, device_id)

        self._database.write(work)

    def _apply(self, host: str, reports: Sequence[Reported]) -> None:
        """Record results together; if one of them cannot be, the others are, one by one."""

        def work(conn: sa.Connection) -> Outcome:
            driven = _driven(conn, host, {device_id for device_id, _ in reports})
            believed = [it for it in reports if it[0] in driven]
            return self._reports.apply_reports(conn, believed) if believed else Outcome()

        if not reports:
            return
        try:
            outcome = self._database.write(work)
        except Unavailable:
            # The agent repeats its report until somebody has recorded it.
            raise
        except Exception:
            if len(reports) == 1:
                # Not the agent's to repeat for ever: the VIP stays due and is cast again.
                device_id, result = reports[0]
                LOG.exception("The result of VIP %s on device %s cannot be recorded", result.vip_id, device_id)
                return
            for it in reports:
                self._apply(host, [it])
        else:
            self._reports.dispose(outcome.gone)
            if outcome.moved:
                # What a move leaves behind need not wait for the reconciler.
                self._cast(outcome.moved)


def _drives(conn: sa.Connection, host: str, device_id: str) -> bool:
    return bool(_driven(conn, host, {device_id}))


def _driven(conn: sa.Connection, host: str, device_ids: set[str]) -> set[str]:
    driven = device_agents.driven(conn, host, device_ids)
    for device_id in sorted(device_ids - driven):
        LOG.info("The agent on %s speaks of device %s, which is not its own (any more); ignored", host, device_id)
    return driven


def _read(kind: type[T], host: str, document: Any) -> T | None:
    """One item of a report. None: it makes no sense, which must not cost the other items."""
    try:
        return from_document(kind, document)
    except InvalidRequest as error:
        LOG.warning("A part of the report of the agent on %s is ignored: %s", host, error.message)
        return None
