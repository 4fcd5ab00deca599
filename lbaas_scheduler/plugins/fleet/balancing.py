"""Reads the fleet for a plan that evens out its load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import chunks
from lbaas_scheduler.db.class_cache import ClassCache
from lbaas_scheduler.db.models import deployments, device_load, devices, placements
from lbaas_scheduler.db.placements import CURRENT
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.capacity import UNLIMITED
from lbaas_scheduler.domain.fleet import DeviceClass
from lbaas_scheduler.domain.moves import BalancePlan
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.plugins.fleet.starting import Requests
from lbaas_scheduler.scheduler import balance
from lbaas_scheduler.scheduler.balance import Bin
from lbaas_scheduler.scheduler.classes import resolve


class Balancing:
    """:param requests: service → its :data:`~lbaas_scheduler.plugins.fleet.starting.Requests`."""

    def __init__(self, database: Database, requests: Mapping[str, Requests]) -> None:
        self._database = database
        self._requests = requests

    def plan(self, service: str, bound: float, max_moves: int) -> BalancePlan:
        """What would have to move. Nothing is changed; handlers are asked only when a move begins.

        :raises InvalidRequest: the service is unknown, or what it has cannot be moved.
        """
        if service not in self._requests:
            known = ", ".join(sorted(self._requests)) or "none"
            raise InvalidRequest(reason=f"resources of service '{service}' cannot be moved; those of these can: {known}")
        classes = ClassCache(self._database).current()
        return self._database.read(lambda conn: self._plan(conn, service, classes, bound, max_moves))

    def _plan(self, conn: Connection, service: str, classes: Sequence[DeviceClass], bound: float, max_moves: int) -> BalancePlan:
        bins, class_of = _bins(conn, service)
        homes = {resource_id: class_of[it.device_id] for it in sorted(bins, key=_fullest) for resource_id in it.resources}
        asked = _InTurn(list(homes), lambda ids: self._requests[service](conn, ids))

        @cache
        def admitted(resource_id: str) -> frozenset[int]:
            request = asked.of(resource_id)
            return frozenset() if request is None else _admitted(classes, request, homes[resource_id])

        return balance.plan(bins, lambda resource_id, device_id: class_of[device_id] in admitted(resource_id), bound, max_moves)


class _InTurn:
    """Requests of resources, read by the thousand: a plan looks at few of many, and at the fullest devices' first.

    :param order: resource ids, in about the order in which they will be asked for.
    """

    def __init__(self, order: Sequence[str], read: Callable[[Sequence[str]], Mapping[str, ScheduleRequest]]) -> None:
        self._left = dict.fromkeys(order)
        self._read = read
        self._known: dict[str, ScheduleRequest] = {}

    def of(self, resource_id: str) -> ScheduleRequest | None:
        if resource_id in self._left:
            turn = [resource_id, *islice((it for it in self._left if it != resource_id), chunks.SIZE - 1)]
            self._known.update(self._read(turn))
            for each in turn:
                del self._left[each]
        return self._known.get(resource_id)


def _fullest(it: Bin) -> tuple[float, str]:
    return -(len(it.resources) / it.limit if it.limit else len(it.resources)), it.device_id


def _admitted(classes: Sequence[DeviceClass], request: ScheduleRequest, own_class: int) -> frozenset[int]:
    """Classes that the resource may move to: of the tier of tenancy that it is in, so that none leaves its own devices."""
    return next((tier for tier in resolve(classes, request).tiers if own_class in tier), frozenset())


def _bins(conn: Connection, service: str) -> tuple[list[Bin], dict[str, int]]:
    """Devices that work, with what lives on them, and their classes. A device that is being drained is nobody's measure."""
    held: dict[str, list[str]] = defaultdict(list)
    c = placements.c
    settled = sa.exists().where(
        deployments.c.resource_id == c.resource_id, deployments.c.device_id == c.device_id, deployments.c.operation == "apply"
    )
    living = sa.select(c.device_id, c.resource_id).where(c.service == service, c.role == CURRENT, settled)
    for row in conn.execute(living.order_by(c.resource_id)):
        held[row.device_id].append(row.resource_id)
    working = (
        sa.select(device_load)
        .join(devices, devices.c.id == device_load.c.device_id)
        .where(
            devices.c.service == service,
            devices.c.admin_state == AdminState.ENABLED.value,
            devices.c.status == DeviceStatus.ONLINE.value,
        )
    )
    rows = conn.execute(working.order_by(device_load.c.device_id)).all()
    bins = [
        Bin(
            row.device_id,
            tuple(held[row.device_id]),
            None if row.vips_max == UNLIMITED else row.vips_max,
            bool(row.schedulable) and not row.dedicated_to,
        )
        for row in rows
    ]
    return bins, {row.device_id: row.class_id for row in rows}
