"""Associations of health monitors with pools."""

from __future__ import annotations

from typing import Any

from oslo_context.context import RequestContext
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import health_monitors, pool_monitors
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.statuses import Status
from lbaas_scheduler.errors import PoolMonitorAssociationExists, PoolMonitorAssociationNotFound, PoolNotFound
from lbaas_scheduler.plugins.loadbalancer import changes, pools
from lbaas_scheduler.plugins.loadbalancer import health_monitors as monitors
from lbaas_scheduler.plugins.loadbalancer.core import Core, Deletion
from lbaas_scheduler.schemas.access import Fields, projected

Document = dict[str, Any]


class Associations:
    def __init__(self, core: Core) -> None:
        self._core = core

    def create(self, context: RequestContext, monitor_id: str, pool_id: str) -> Document:
        """:returns: ``{"health_monitor": [ids of all monitors of the pool]}``.

        :raises HealthMonitorNotFound: absent, or not the caller's. PoolNotFound likewise.
        :raises PoolMonitorAssociationExists: they are associated already.
        :raises Conflict: the device of the pool's VIP cannot do this monitor, or not several at once.
        """

        tried = False

        def work(conn: Connection) -> tuple[Document, list[str]]:
            nonlocal tried
            monitors.find(conn, context, monitor_id)
            pools.find(conn, context, pool_id)
            health_monitors.lock(conn, monitor_id)
            held = changes.hold(conn, [pool_id], self._core.due_at())
            if pool_id not in held:
                raise PoolNotFound(id=pool_id)
            if pool_monitors.find(conn, pool_id, monitor_id) is None:
                up = monitors.find(conn, context, monitor_id).admin_state_up
                status = changes.status_after(held[pool_id], up, Status.PENDING_CREATE)
                pool_monitors.insert(conn, pool_id, monitor_id, status)
            elif not tried:  # else a commit whose answer got lost
                raise PoolMonitorAssociationExists(monitor_id=monitor_id, pool_id=pool_id)
            tried = True
            changes.check_fit(conn, self._core.service, changes.placed(held))
            ids = [row.id for row in pool_monitors.of_pools(conn, [pool_id])]
            return {"health_monitor": ids}, changes.placed(held)

        document, vip_ids = self._core.database.write(work)
        self._core.caster.cast(vip_ids)
        return document

    def get(self, context: RequestContext, monitor_id: str, pool_id: str, fields: Fields | None = None) -> Document:
        """:raises PoolMonitorAssociationNotFound: they are not associated."""

        def work(conn: Connection) -> Document:
            row = _find(conn, context, monitor_id, pool_id)
            return {
                "pool_id": row.pool_id,
                "monitor_id": row.monitor_id,
                "status": row.status,
                "status_description": row.status_description or None,
                "tenant_id": row.tenant_id,
            }

        return projected(self._core.database.read(work), fields)

    def delete(self, context: RequestContext, monitor_id: str, pool_id: str) -> None:
        """Gone at once for clients; the device of the pool's VIP, if there is one, follows.

        :raises PoolMonitorAssociationNotFound: they are not associated.
        """

        deletion = Deletion()

        def work(conn: Connection) -> list[str]:
            held = changes.hold(conn, [pool_id], self._core.due_at())
            if not deletion.is_done(lambda: _find(conn, context, monitor_id, pool_id)):
                pool_monitors.delete(conn, pool_id, monitor_id)
            return changes.placed(held)

        self._core.caster.cast(self._core.database.write(work))


def _find(conn: Connection, context: RequestContext, monitor_id: str, pool_id: str) -> AnyRow:
    monitors.find(conn, context, monitor_id)
    pools.find(conn, context, pool_id)
    row = pool_monitors.find(conn, pool_id, monitor_id)
    if row is None:
        raise PoolMonitorAssociationNotFound(monitor_id=monitor_id, pool_id=pool_id)
    return row
