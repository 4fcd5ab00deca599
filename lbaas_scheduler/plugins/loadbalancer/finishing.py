"""Finishes what waits for nobody. All that changes a status sees to it that somebody owes an answer; this is for the day on which
one of them does not, and says so loudly."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from enum import Enum, auto
from typing import Protocol

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import deployments, epochs, placements, pools, renewals, unowed, vips
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.statuses import Status
from lbaas_scheduler.plugins.loadbalancer import changes, removal
from lbaas_scheduler.sdk.networks import NetworkConnector

LOG = logging.getLogger(__name__)

INTERVAL_SECONDS = 60.0
"""How often a server looks. A look reads the statuses of everything."""

BATCH = 100
"""So many VIPs and so many pools are finished at a time; the others wait for the next look."""

NOWHERE = "It is on no device; delete it."


class _End(Enum):
    NONE = auto()
    """It needed none any more, or there is none that could be made."""
    GONE = auto()
    ASKED = auto()


class Casts(Protocol):
    def cast(self, vip_ids: Collection[str]) -> object:
        """Send each VIP's whole desired state to its device's agent. After the commit; never raises."""


class Finishing:
    """A step of the reconciler.

    :param monotonic: the clock by which it tells when to look; for tests.
    """

    def __init__(
        self,
        database: Database,
        connector: NetworkConnector,
        caster: Casts,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._connector = connector
        self._caster = caster
        self._monotonic = monotonic
        self._looked_at = -INTERVAL_SECONDS

    def finish_what_nobody_answers_for(self) -> None:
        """Look, if it is time to."""
        now = self._monotonic()
        if now - self._looked_at < INTERVAL_SECONDS:
            return
        self._looked_at = now
        for pool_id in self._database.read(lambda conn: unowed.pool_ids(conn, BATCH)):
            self._database.write(lambda conn, it=pool_id: self._rest(conn, it))  # type: ignore[misc]
        for vip_id in self._database.read(lambda conn: unowed.vip_ids(conn, BATCH)):
            try:
                self._finish(vip_id)
            except Exception:
                LOG.exception("VIP %s waits for nobody, and cannot be finished", vip_id)

    def _finish(self, vip_id: str) -> None:
        end = self._database.write(lambda conn: self._end(conn, vip_id))
        if end is _End.GONE:
            self._connector.dispose(vip_id)
        elif end is _End.ASKED:
            self._caster.cast([vip_id])

    def _rest(self, conn: Connection, pool_id: str) -> None:
        pools.lock(conn, [pool_id])
        if pools.vip_ids(conn, [pool_id]).get(pool_id, "gone") is None:
            LOG.error("Pool %s waited for a device, and has no VIP; it waits no longer", pool_id)
            changes.rest(conn, pool_id)

    def _end(self, conn: Connection, vip_id: str) -> _End:
        devices = deployments.hold_all(conn, vip_id)
        row = vips.find(conn, vip_id) if unowed.is_stuck(conn, vip_id) else None
        if row is None:
            return _End.NONE
        if row.status == Status.PENDING_DELETE:
            return self._remove(conn, vip_id, devices)
        if devices:
            LOG.error(
                "VIP %s is %s, or something below it waits, and no device was asked; it is applied anew", vip_id, row.status
            )
            renewals.renew(conn, vip_id, utcnow())
            return _End.ASKED
        return _deploy(conn, vip_id, row.status)

    def _remove(self, conn: Connection, vip_id: str, devices: int) -> _End:
        if devices:
            LOG.error("VIP %s is PENDING_DELETE, and no device was asked to remove it; %d are asked now", vip_id, devices)
            deployments.mark_removal(conn, [vip_id], utcnow())
            return _End.ASKED
        LOG.error("VIP %s is PENDING_DELETE, and no device has it any more; it is gone now", vip_id)
        removal.forget(conn, self._connector, vip_id)
        return _End.GONE


def _deploy(conn: Connection, vip_id: str, status: str) -> _End:
    """A VIP that is deployed nowhere: where it has a place it is deployed there."""
    place = placements.get(conn, vip_id)
    if place is not None:
        LOG.error("VIP %s is %s, and was not deployed on its device %s; it is now", vip_id, status, place.device_id)
        epoch = epochs.take(conn, vip_id)
        deployments.create(conn, vip_id, place.device_id, epoch=epoch, due_at=utcnow())
        return _End.ASKED
    if status != Status.ERROR:
        LOG.error("VIP %s is %s, and on no device; it is in ERROR now", vip_id, status)
        vips.set_status(conn, vip_id, Status.ERROR, NOWHERE)
    return _End.NONE
