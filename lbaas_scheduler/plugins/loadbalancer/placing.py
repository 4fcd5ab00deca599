"""A VIP's creation: checked and reserved outside of the transaction, placed and stored inside of one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_context.context import RequestContext
from oslo_db.exception import DBDuplicateEntry, DBReferenceError
from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import deployments, pools, vips
from lbaas_scheduler.domain.loadbalancers import HealthMonitor, Method, Pool, Protocol, Vip
from lbaas_scheduler.domain.placement_rules import PlacementRule
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.service_types import ServiceTypeChoice
from lbaas_scheduler.domain.statuses import Status
from lbaas_scheduler.domain.trail import Decision, Trail
from lbaas_scheduler.errors import NoValidDevice, PoolNotFound, ProtocolMismatch, Unavailable, VipExists
from lbaas_scheduler.plugins.loadbalancer import documents, loops
from lbaas_scheduler.plugins.loadbalancer import pools as pool_rules
from lbaas_scheduler.plugins.loadbalancer.asking import check_hint, request_of
from lbaas_scheduler.plugins.loadbalancer.core import Core, same_tenant
from lbaas_scheduler.plugins.loadbalancer.schemas.vips import VIP, check_persistence
from lbaas_scheduler.schemas.access import owner
from lbaas_scheduler.schemas.attributes import Body, Verb, accept
from lbaas_scheduler.sdk.networks import Reservation

LOG = logging.getLogger(__name__)

MAX_TRIES = 5


class _Changed(Exception):
    """The pool needs something else of a device than when the device was looked for, or the service type is gone since."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was read before the decision."""

    pool: Pool
    service_type: ServiceTypeChoice
    rules: Sequence[PlacementRule]

    @property
    def needs(self) -> tuple[Method, tuple[HealthMonitor, ...]]:
        """What of the pool a device must be able to do."""
        return self.pool.lb_method, self.pool.health_monitors


class Placing:
    def __init__(self, core: Core) -> None:
        self._core = core

    def create(self, context: RequestContext, body: Body) -> Mapping[str, Any]:
        """Place and store a VIP; its cast is the caller's.

        A VIP that cannot be placed leaves nothing behind.

        :returns: the VIP's row.
        :raises PoolNotFound: absent, or not the caller's.
        :raises VipExists: the pool has a VIP.
        :raises ProtocolMismatch: it speaks another protocol than its pool.
        :raises NotAuthorized: it is another tenant's than its pool.
        :raises ServiceProviderNotFound: an unknown or disabled service type.
        :raises NotAuthorized, DeviceNotFound: somebody else than an administrator asks for a device; it does not exist.
        :raises LeadsBack, LeadsToHost: members of its pool lead back to it, or to its device's host.
        :raises NoValidDevice: says why; for administrators with the devices by name, and the trail.
        Whatever :meth:`~lbaas_scheduler.sdk.networks.NetworkConnector.prepare` and ``bind`` raise about the address.
        """
        values = accept(VIP, body, Verb.POST)
        values["session_persistence"] = check_persistence(values["session_persistence"], values["protocol"])
        values["tenant_id"] = owner(context, values)
        values["id"] = uuidutils.generate_uuid()
        for _ in range(MAX_TRIES):
            plan = self._core.database.read(lambda conn: self._plan(conn, context, values))
            try:
                return self._place(context, values, plan)
            except _Changed:
                LOG.info("Pool %s, or its service type, changed while a device was looked for; looking again", values["pool_id"])
        raise Unavailable(dependency="The pool", reason="it changes too often to find a device for it")

    def _plan(self, conn: Connection, context: RequestContext, values: dict[str, Any]) -> _Plan:
        check_hint(context, conn, values["device_id"])
        row = pool_rules.outline(conn, context, values["pool_id"])
        same_tenant(context, values["tenant_id"], row.tenant_id)
        if row.protocol != values["protocol"]:
            raise ProtocolMismatch(vip_proto=values["protocol"], pool_proto=row.protocol)
        if row.vip_id is not None:
            raise VipExists(pool_id=row.id)
        wanted = values["service_type_id"] or row.service_type_id
        service_type = self._core.service_types.choose(conn, wanted, self._core.service.name)
        rules = self._core.rules.of_service(conn, self._core.service.name)
        return _Plan(documents.pool_of(conn, row), service_type, rules)

    def _place(self, context: RequestContext, values: dict[str, Any], plan: _Plan) -> Mapping[str, Any]:
        reservation = self._core.connector.prepare(context, values["subnet_id"], values["address"], values["id"])

        stored: dict[str, Any] = {}

        def within(conn: Connection, decision: Decision) -> None:
            stored.update(self._store(conn, values, plan, reservation, decision))

        try:
            self._core.placer.place(self._request(values, plan, reservation), within)
        except DBDuplicateEntry:
            # The answer to a commit got lost, and the repetition met its own rows.
            row = self._core.database.read(lambda conn: vips.find(conn, values["id"]))
            if row is None:
                self._core.connector.cancel(reservation)
                raise
            stored.update(row._mapping)
        except DBReferenceError:
            self._core.connector.cancel(reservation)
            raise _Changed from None
        except NoValidDevice as error:
            self._core.connector.cancel(reservation)
            raise error if context.is_admin else _for_tenants(error) from None
        except Exception:
            self._core.connector.cancel(reservation)
            raise
        self._core.connector.confirm(reservation)
        return stored

    def _request(self, values: dict[str, Any], plan: _Plan, reservation: Reservation) -> ScheduleRequest:
        persistence = values["session_persistence"] or {}
        vip = Vip(
            id=values["id"],
            tenant_id=values["tenant_id"],
            address=reservation.address,
            protocol_port=values["protocol_port"],
            protocol=Protocol(values["protocol"]),
            pool=plan.pool,
            subnet_cidr=reservation.cidr,
            network_id=reservation.network_id,
            connection_limit=values["connection_limit"],
            session_persistence=documents.persistence_of(persistence.get("type"), persistence.get("cookie_name")),
            admin_state_up=values["admin_state_up"],
        )
        return request_of(
            self._core.service,
            vip,
            plan.service_type,
            plan.rules,
            name=values["name"],
            subnet_id=values["subnet_id"],
            device_id=values["device_id"],
        )

    def _store(
        self, conn: Connection, values: dict[str, Any], plan: _Plan, reservation: Reservation, decision: Decision
    ) -> dict[str, Any]:
        """The rows of a placed VIP, in the transaction that claimed its device.

        :returns: the VIP's own.
        """
        method, monitors = plan.needs
        if not pools.take(conn, values["pool_id"], values["id"], method):
            raise _untaken(conn, values["pool_id"])
        # From here the pool's row is locked: what is read of it now is what the first document will say, or a bump will follow.
        if documents.monitors(conn, values["pool_id"]) != monitors:
            raise _Changed
        persistence = values["session_persistence"] or {}
        columns = {name: value for name, value in values.items() if name not in ("session_persistence", "device_id")}
        columns |= {
            "address": self._core.connector.bind(conn, reservation),
            "port_id": reservation.port_id,
            "persistence_type": persistence.get("type"),
            "cookie_name": persistence.get("cookie_name"),
            "service_type_id": plan.service_type.id,
            "status": Status.PENDING_CREATE,
            "status_description": "",
        }
        self._core.quotas.reserve(conn, values["tenant_id"], "vip")
        vips.insert(conn, columns)
        loops.check(conn, values["id"])
        due_at = self._core.due_at()
        deployments.create(conn, values["id"], decision.device_id, epoch=decision.epoch, due_at=due_at)
        return columns


def _untaken(conn: Connection, pool_id: str) -> Exception:
    """Why a pool could not be taken."""
    row = pools.outline(conn, pool_id)
    if row is None:
        return PoolNotFound(id=pool_id)
    return _Changed() if row.vip_id is None else VipExists(pool_id=pool_id)


def _for_tenants(error: NoValidDevice) -> NoValidDevice:
    """Without the trail: which devices there are, and how many, is no tenant's business."""
    return NoValidDevice(summary=Trail.from_document(error.details["trail"]).for_tenants())
