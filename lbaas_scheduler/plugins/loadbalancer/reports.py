"""What agents report, turned into states. The caller has checked that the reporting agent drives the device."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum, auto

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import (
    deployments,
    device_reports,
    members,
    moves,
    pending,
    pool_monitors,
    pool_stats,
    pools,
    renewals,
    vips,
)
from lbaas_scheduler.db.applied import Applied, settle_all
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import Result, VipStats
from lbaas_scheduler.domain.statuses import Status
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.plugins.callbacks import Outcome, Reported
from lbaas_scheduler.plugins.loadbalancer import removal
from lbaas_scheduler.plugins.loadbalancer.changes import UNSETTLED
from lbaas_scheduler.sdk.networks import NetworkConnector

LOG = logging.getLogger(__name__)

MAX_COUNTER = 2**63 - 1
MAX_DESCRIPTION = 255

HEALTH = (Status.ACTIVE, Status.INACTIVE)
"""The statuses that a health check moves a member between; it moves no member out of or into any other."""


MAX_EPOCH = 2**30
"""No resource gets that many epochs by honest means; the database holds twice as many."""

RETRY_SECONDS = 5.0
"""After how long that is applied anew which had been applied before, and failed now. Later tries come ever later."""


class _Fate(Enum):
    """What came of a VIP with one result. DUE: some device is to be told of it now: it moved, or is not as it should be."""

    STAYS = auto()
    GONE = auto()
    DUE = auto()


class Reports:
    """Results and statistics. Every method works inside of the caller's transaction, and may be repeated."""

    def __init__(self, connector: NetworkConnector) -> None:
        self._connector = connector

    def apply_reports(self, conn: Connection, reports: Sequence[Reported]) -> Outcome:
        """Turn results into statuses. Costs the same number of statements for any number of VIPs that did as they were told.

        Results of old epochs and revisions change no status; those of VIPs that are gone are a warning. Those of versions that we
        never gave are by agents that know more than we do, as after a restore: what is desired is said anew, above theirs.

        :returns: what is to be done after the commit.
        """
        # Of VIPs that are on their way to a device, or that are leaving it.
        roles = moves.roles(conn, [result.vip_id for _, result in reports])
        simple: list[Reported] = []
        others: list[Reported] = []
        for device_id, result in reports:
            is_simple = _is_simple(result) and (device_id, result.vip_id) not in roles
            (simple if is_simple else others).append((device_id, result))
        behind = _confirm_all(conn, simple)
        # In one order always, so that two servers never wait for each other.
        others.sort(key=lambda it: it[1].vip_id)
        fates = [(it.vip_id, self._apply(conn, on, it, roles.get((on, it.vip_id), ""))) for on, it in others]
        gone, due = ([id_ for id_, fate in fates if fate is kind] for kind in (_Fate.GONE, _Fate.DUE))
        return Outcome(gone, [*due, *behind])

    def dispose(self, vip_ids: Collection[str]) -> None:
        """The removal of these VIPs is committed: let the networks know. Outside of any transaction."""
        for vip_id in vip_ids:
            self._connector.dispose(vip_id)

    def apply_stats(self, conn: Connection, stats: Mapping[str, VipStats], device_id: str | None = None) -> None:
        """Store counters, and move members between ACTIVE and INACTIVE.

        VIPs and members that are gone, or are not on ``device_id``, are left out. Impossible counters are logged and left out,
        the others are stored.
        """
        known = set(stats) if device_id is None else vips.on_device(conn, device_id, stats)
        pool_of = {row.vip_id: row.id for row in pools.by_vips(conn, known)}
        if len(pool_of) < len(stats):
            LOG.debug("Statistics of VIPs that are gone: %s", ", ".join(sorted(set(stats) - set(pool_of))))
        possible: dict[str, dict[str, int]] = {}
        for vip_id, pool_id in pool_of.items():
            try:
                possible[pool_id] = counters(stats[vip_id])
            except InvalidRequest as error:
                LOG.warning("Statistics of VIP %s refused: %s", vip_id, error.message)
        pool_stats.update_many(conn, possible)
        _apply_health(conn, {pool_id: stats[vip_id] for vip_id, pool_id in pool_of.items()})
        if device_id is not None:
            device_reports.record(conn, device_id, sum(it["active_connections"] for it in possible.values()), utcnow())

    def _apply(self, conn: Connection, device_id: str, result: Result, role: str) -> _Fate:
        if result.error is not None:
            return _fail(conn, device_id, result, result.error, role)
        if result.removed:
            return self._remove(conn, device_id, result)
        # What failed of it is worth another try, as the whole would be.
        retry_at = _retry_at() if result.object_errors else None
        if not deployments.settle(conn, result.vip_id, device_id, result.version, retry_at):
            return _stale(conn, device_id, result)
        arrived = role == moves.TARGET and moves.arrive(conn, result.vip_id, device_id)
        if arrived or not role:
            confirm(conn, [result.vip_id], result.object_errors)
        return _Fate.DUE if arrived else _Fate.STAYS

    def _remove(self, conn: Connection, device_id: str, result: Result) -> _Fate:
        # All of them: of two devices that let go at once the second must see that nothing is left.
        devices = deployments.hold_all(conn, result.vip_id)
        if not deployments.confirm_removal(conn, result.vip_id, device_id, result.version.epoch):
            return _stale(conn, device_id, result)
        if devices > 1:
            released = moves.leave(conn, result.vip_id, device_id)
            if released is not None and released.networks:
                self._connector.unwire(conn, device_id, released.networks)
            return _Fate.STAYS
        removal.forget(conn, self._connector, result.vip_id)
        return _Fate.GONE


def confirm(conn: Connection, vip_ids: Collection[str], object_errors: Mapping[str, str] | None = None) -> None:
    """The desired state of VIPs is applied: nothing below them waits any more, but for single objects that failed."""
    errors = {object_id: description(text) for object_id, text in (object_errors or {}).items()}
    vips.settle(conn, vip_ids, UNSETTLED)
    pool_ids = {row.id for row in pools.by_vips(conn, vip_ids)}
    pools.settle(conn, pool_ids, UNSETTLED)
    for pool_id in pool_ids & errors.keys():
        pools.update(conn, pool_id, {"status": Status.ERROR, "status_description": errors[pool_id]})
    members.delete_leaving(conn, pool_ids)
    checked = pool_monitors.checked(conn, pool_ids)
    members.settle(conn, checked, UNSETTLED)
    # Nothing checks these any more: nobody can say that they are down.
    members.settle(conn, pool_ids - checked, (*UNSETTLED, Status.INACTIVE))
    pool_monitors.settle(conn, pool_ids, UNSETTLED)
    if errors:
        for pool_id in pool_ids:
            _fail_objects(conn, pool_id, errors)


def _is_simple(result: Result) -> bool:
    """Whether a VIP was applied, and all of it."""
    return result.error is None and not result.removed and not result.object_errors


def _confirm_all(conn: Connection, reports: Sequence[Reported]) -> list[str]:
    """:returns: VIPs that are to be said anew."""
    wanted = {Applied(it.vip_id, device_id, it.version): it for device_id, it in reports}
    desired = settle_all(conn, wanted)
    if desired:
        confirm(conn, [it.resource_id for it in desired])
    stale = sorted(wanted.keys() - desired)
    return [it.resource_id for it in stale if _stale(conn, it.device_id, wanted[it]) is _Fate.DUE]


def counters(stats: VipStats) -> dict[str, int]:
    """The four counters of a pool.

    :raises InvalidRequest: one is negative, no integer, or does not fit into 64 bits.
    """
    values = {name: getattr(stats, name) for name in pool_stats.COUNTERS}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNTER:
            raise InvalidRequest(reason=f"counter {name} must be an integer from 0 to 2**63 - 1, not {value!r}")
    return values


def description(text: str) -> str:
    """``text`` as a status description: one that every database takes."""
    clean = text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= MAX_DESCRIPTION else f"{clean[: MAX_DESCRIPTION - 1]}…"


def _retry_at() -> datetime:
    return utcnow() + timedelta(seconds=RETRY_SECONDS)


def _fail(conn: Connection, device_id: str, result: Result, error: str, role: str) -> _Fate:
    if not deployments.fail(conn, result.vip_id, device_id, result.version, description(error), _retry_at()):
        return _stale(conn, device_id, result)
    if role:
        # Where the VIP lives it is as well as it was: this is no matter of its tenant's.
        LOG.warning("VIP %s, %s on device %s, failed there: %s", result.vip_id, role.partition(":")[0], device_id, error)
        back = role == moves.TARGET and moves.roll_back(conn, result.vip_id, device_id, description(error))
        return _Fate.DUE if back else _Fate.STAYS
    deployment = deployments.get(conn, result.vip_id, device_id)
    removing = deployment is not None and deployment.removing
    # A removal that failed is still a removal: it is tried again until it succeeds.
    vips.set_status(conn, result.vip_id, Status.PENDING_DELETE if removing else Status.ERROR, description(error))
    if not removing:
        errors = {object_id: description(text) for object_id, text in result.object_errors.items()}
        for row in pools.by_vips(conn, [result.vip_id]):
            pending.fail(conn, row.id, description(error))
            _fail_objects(conn, row.id, errors)
    return _Fate.STAYS


def _fail_objects(conn: Connection, pool_id: str, errors: Mapping[str, str]) -> None:
    members.fail(conn, pool_id, errors)
    pool_monitors.fail(conn, pool_id, errors)


def _stale(conn: Connection, device_id: str, result: Result) -> _Fate:
    """A result that is not of what is desired."""
    vip_id, theirs = result.vip_id, result.version
    row = deployments.get(conn, vip_id, device_id)
    if row is None:
        LOG.warning("Device %s reports on VIP %s, which is gone", device_id, vip_id)
        return _Fate.STAYS
    lost = result.removed and not row.removing and theirs.epoch == row.version.epoch
    if theirs < row.version and not lost:
        LOG.debug("Device %s reports VIP %s at %s, which is out of date", device_id, vip_id, theirs)
        return _Fate.STAYS
    if theirs.epoch > MAX_EPOCH:
        LOG.error("Device %s reports VIP %s at %s, which cannot be; ignored", device_id, vip_id, theirs)
        return _Fate.STAYS
    what = "removed, which should be there" if lost else f"at {theirs}, and {row.version} is the newest that it should have"
    LOG.warning("Device %s reports VIP %s %s; it is told anew", device_id, vip_id, what)
    renewals.outrank(conn, vip_id, device_id, theirs.epoch)
    return _Fate.DUE


def _apply_health(conn: Connection, stats: Mapping[str, VipStats]) -> None:
    """Pool id → statistics. Writes only what changed: most reports say what the one before said."""
    health = {pool_id: each.members for pool_id, each in stats.items() if each.members}
    up, down = [], []
    for row in members.statuses(conn, health, only=HEALTH):
        said = health[row.pool_id].get(row.id)
        if said is None or said.up is None:
            continue
        if said.up and row.status == Status.INACTIVE:
            up.append(row.id)
        elif not said.up and row.status == Status.ACTIVE:
            down.append(row.id)
    members.update_many(conn, up, {"status": Status.ACTIVE}, only=[Status.INACTIVE])
    members.update_many(conn, down, {"status": Status.INACTIVE}, only=[Status.ACTIVE])
