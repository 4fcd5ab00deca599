"""VIPs: read, list, change, move, delete. Their creation, which finds them a device, is in :mod:`.placing`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from oslo_context.context import RequestContext
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import deployments, pools, vips
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.statuses import Status
from lbaas_scheduler.errors import PoolNotFound, ProtocolMismatch, StateInvalid, VipExists, VipNotFound
from lbaas_scheduler.plugins.loadbalancer import changes, loops, removal
from lbaas_scheduler.plugins.loadbalancer import pools as pool_rules
from lbaas_scheduler.plugins.loadbalancer.core import Core, Deletion, same_tenant
from lbaas_scheduler.plugins.loadbalancer.placing import Placing
from lbaas_scheduler.plugins.loadbalancer.schemas.vips import VIP, check_persistence
from lbaas_scheduler.schemas.access import Fields, Filters, is_id, listing, projected, visible
from lbaas_scheduler.schemas.attributes import Body, Verb, accept

LOG = logging.getLogger(__name__)

Document = dict[str, Any]

PLAIN = (
    "id",
    "tenant_id",
    "name",
    "description",
    "subnet_id",
    "address",
    "port_id",
    "protocol",
    "protocol_port",
    "pool_id",
    "connection_limit",
    "service_type_id",
    "admin_state_up",
    "status",
)

ASKS_OF_THE_DEVICE = frozenset({"pool_id", "session_persistence", "connection_limit"})
"""Changes that may need what the VIP's device cannot do. That it can do less than before is its operator's business: no other
change is refused for it."""


class Vips:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._placing = Placing(core)

    def create(self, context: RequestContext, body: Body) -> Document:
        """See :meth:`.placing.Placing.create`."""
        row = self._placing.create(context, body)
        self._core.caster.cast([row["id"]])
        return document(SimpleNamespace(**row))

    def create_bulk(self, context: RequestContext, bodies: Sequence[Body]) -> list[Document]:
        """All of them or none: they are placed one after the other, and removed again if one cannot be; a server that dies
        meanwhile leaves those that were placed. Agents hear of them when all are. Errors as :meth:`create`."""
        for body in bodies:
            accept(VIP, body, Verb.POST)  # so that nothing need be removed again because of a spelling mistake
        rows: list[Mapping[str, Any]] = []
        try:
            for body in bodies:
                rows.append(self._placing.create(context, body))
        except Exception:
            for row in rows:
                LOG.info("VIP %s is removed again, since another one of the same request cannot be created", row["id"])
                self.delete(context, row["id"])
            raise
        self._core.caster.cast([row["id"] for row in rows])
        return [document(SimpleNamespace(**row)) for row in rows]

    def get(self, context: RequestContext, vip_id: str, fields: Fields | None = None) -> Document:
        """:raises VipNotFound: absent, or not the caller's."""
        row = self._core.database.read(lambda conn: _find(conn, context, vip_id))
        return projected(document(row), fields)

    def search(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        asked = listing(context, VIP, filters, **page)
        return [projected(document(row), fields) for row in self._core.database.read(lambda conn: vips.rows(conn, asked))]

    def update(self, context: RequestContext, vip_id: str, body: Body) -> Document:
        """Accepted in every state but PENDING_DELETE. Without ``session_persistence`` the stored one stays; null clears it.

        :raises StateInvalid: it is being deleted.
        :raises ProtocolMismatch, NotAuthorized, VipExists, PoolNotFound: as for the creation, of another pool.
        :raises LeadsBack, LeadsToHost: members of another pool lead back to it, or to its device's host.
        :raises Conflict: its device cannot do what is asked now, or has no room for it.
        """
        values = accept(VIP, body, Verb.PUT)

        def work(conn: Connection) -> tuple[Document, list[str]]:
            _find(conn, context, vip_id)
            if not values:
                return _read(conn, vip_id), []
            bumped = deployments.bump(conn, [vip_id], self._core.due_at())
            row = _find(conn, context, vip_id)
            if not bumped or row.status == Status.PENDING_DELETE:
                raise StateInvalid(resource="Vip", id=vip_id, state=Status.PENDING_DELETE)
            changed = _columns(values, row)
            if "connection_limit" in values:
                changes.adjust_demand(conn, self._core.service, vip_id, values["connection_limit"])
            if changed.get("pool_id", row.pool_id) != row.pool_id:
                self._move(conn, context, row, changed["pool_id"])
            vips.update(conn, vip_id, {**changed, "status": Status.PENDING_UPDATE, "status_description": ""})
            if not ASKS_OF_THE_DEVICE.isdisjoint(values):
                changes.check_fit(conn, self._core.service, [vip_id])
            return _read(conn, vip_id), [vip_id]

        document, vip_ids = self._core.database.write(work)
        self._core.caster.cast(vip_ids)
        return document

    def delete(self, context: RequestContext, vip_id: str) -> None:
        """In any state. The pool is free at once; the row stays as PENDING_DELETE until the device has let go."""

        deletion = Deletion()

        def work(conn: Connection) -> bool:
            if deletion.is_done(lambda: _find(conn, context, vip_id)):
                return False
            waiting = deployments.mark_removal(conn, [vip_id], self._core.due_at())
            pool_id = pools.free(conn, vip_id)
            if pool_id is not None:
                changes.rest(conn, pool_id)
            if waiting:
                vips.set_status(conn, vip_id, Status.PENDING_DELETE)
            else:  # there is no device that could have anything of it
                removal.forget(conn, self._core.connector, vip_id)
            return bool(waiting)

        if self._core.database.write(work):
            self._core.caster.cast([vip_id])
        else:
            self._core.connector.dispose(vip_id)

    def _move(self, conn: Connection, context: RequestContext, row: AnyRow, pool_id: str) -> None:
        pool = pool_rules.find(conn, context, pool_id)
        same_tenant(context, row.tenant_id, pool.tenant_id)
        if pool.protocol != row.protocol:
            raise ProtocolMismatch(vip_proto=row.protocol, pool_proto=pool.protocol)
        pools.lock(conn, {pool_id, row.pool_id})
        old = pools.free(conn, row.id)
        if not pools.take(conn, pool_id, row.id):
            if pools.find(conn, pool_id) is None:
                raise PoolNotFound(id=pool_id)
            raise VipExists(pool_id=pool_id)
        loops.check(conn, row.id)
        if old is not None:
            changes.rest(conn, old)


def _find(conn: Connection, context: RequestContext, vip_id: str) -> AnyRow:
    return visible(context, vips.find(conn, vip_id) if is_id(vip_id) else None, VipNotFound(id=vip_id))


def _columns(values: dict[str, Any], row: AnyRow) -> dict[str, Any]:
    """What a PUT changes, column by column."""
    changed = {name: value for name, value in values.items() if name != "session_persistence"}
    if "session_persistence" in values:
        persistence = check_persistence(values["session_persistence"], row.protocol) or {}
        changed |= {"persistence_type": persistence.get("type"), "cookie_name": persistence.get("cookie_name")}
    return changed


def _read(conn: Connection, vip_id: str) -> Document:
    row = vips.find(conn, vip_id)
    if row is None:
        raise VipNotFound(id=vip_id)
    return document(row)


def document(row: AnyRow | SimpleNamespace) -> Document:
    """What an answer shows of a VIP."""
    return {
        **{name: getattr(row, name) for name in PLAIN},
        "session_persistence": _persistence(row),
        "status_description": row.status_description or None,
    }


def _persistence(row: AnyRow | SimpleNamespace) -> Document | None:
    """Always there (LP 1231915); ``cookie_name`` with APP_COOKIE only."""
    if row.persistence_type is None:
        return None
    cookie = {} if row.cookie_name is None else {"cookie_name": row.cookie_name}
    return {"type": row.persistence_type, **cookie}
