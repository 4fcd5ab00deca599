"""What the allocator is asked to do from time to time: give back what nobody wants any more."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from oslo_config import cfg
from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.core.requests import Owner
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import device_networks, owed_releases, restores, vips
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.networks.address_pools import ACTOR, VIP
from lbaas_scheduler.networks.comparison import compare
from lbaas_scheduler.networks.segments import WIRING, Segments, device_and_network, owner_of

LOG = logging.getLogger(__name__)

OWED_AT_ONCE = 100
"""Releases that are made good in one cycle."""


class OwnerProbe:
    """Whether an owner that this package named lives. The allocator's ``reconcile`` asks it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __call__(self, owner: Owner) -> bool | None:
        """None = not one of ours."""
        return self._database.read(lambda conn: self._lives(conn, owner) or _if_sure(conn, owner))

    def _lives(self, conn: Connection, owner: Owner) -> bool | None:
        if owner.type == VIP:
            return vips.exists(conn, owner.id)
        if owner.type == WIRING:
            device_id, network_id = device_and_network(owner)
            return bool(device_networks.wired(conn, device_id, [network_id]))
        return None


class Census:
    """As :class:`OwnerProbe`, for one round: who lives at the first question, in two statements for any number of owners."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._living: frozenset[Owner] | None = None
        self._is_sure = True

    def __call__(self, owner: Owner) -> bool | None:
        if owner.type not in (VIP, WIRING):
            return None
        if self._living is None:
            self._living, self._is_sure = self._database.read(lambda conn: (_living(conn), restores.started_at(conn) is None))
        return owner in self._living or (False if self._is_sure else None)


def _if_sure(conn: Connection, owner: Owner) -> bool | None:
    """Of an owner that is not here: False, but during a restore, when it may serve without being known here."""
    return False if owner.type in (VIP, WIRING) and restores.started_at(conn) is None else None


def _living(conn: Connection) -> frozenset[Owner]:
    wired = (owner_of(device_id, network_id) for device_id, network_id in device_networks.pairs(conn))
    return frozenset([*(Owner(VIP, vip_id) for vip_id in vips.all_ids(conn)), *wired])


class Upkeep:
    """:param conf: its group ``allocator`` is read anew each time.

    :param monotonic: the clock by which it tells that it is time; for tests.
    """

    def __init__(
        self,
        allocator: ResourceAllocator,
        segments: Segments,
        database: Database,
        conf: cfg.ConfigOpts,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allocator = allocator
        self._segments = segments
        self._database = database
        self._conf = conf
        self._monotonic = monotonic
        self._last = monotonic()

    def steps(self) -> Sequence[Callable[[], None]]:
        """For the reconciler."""
        return (self.settle, self.give_back_what_is_lost)

    def settle(self) -> None:
        """Also what is owed by servers that have died since.

        :raises StoreUnavailable: the allocator's store does not answer; the rest is given back later.
        """
        self._segments.settle()
        for kind, owner_id in self._database.read(lambda conn: owed_releases.oldest(conn, OWED_AT_ONCE)):
            owner = Owner(kind, owner_id)
            if kind == WIRING:
                self._segments.settle_owed(owner)
                continue
            self._allocator.release_owner(owner, actor=ACTOR)
            self._database.write(lambda conn, owner=owner: owed_releases.discard(conn, *owner))  # type: ignore[misc]

    def give_back_what_is_lost(self) -> None:
        options = self._conf.allocator
        interval = options.reconcile_interval_seconds
        if not interval or self._monotonic() - self._last < interval:
            return
        self._last = self._monotonic()
        for text in compare(self._database, self._allocator, repair=True):
            LOG.error("%s; look which of them serves, and delete the other", text)
        if self._database.read(restores.started_at) is not None:
            return  # who is not here may live all the same
        report = self._allocator.reconcile(
            Census(self._database),
            dry_run=False,
            grace_seconds=options.owner_grace_delay_seconds,
            history_days=options.history_days,
            request_days=options.request_days,
        )
        lost = report.expired + report.leaked + report.orphans
        if lost:
            LOG.warning("Given back, for nobody had them any more: %s", "; ".join(lost))
        if report.kept:
            LOG.info("Holds that were not confirmed, and are final now: %s", "; ".join(report.kept))
