"""Health monitors: create, read, list, change, delete. A monitor has no status of its own; its associations with pools have."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from oslo_context.context import RequestContext
from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import health_monitors, pool_monitors
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.domain.loadbalancers import MonitorType
from lbaas_scheduler.errors import HealthMonitorInUse, HealthMonitorNotFound
from lbaas_scheduler.plugins.loadbalancer import changes
from lbaas_scheduler.plugins.loadbalancer.core import Core, Deletion
from lbaas_scheduler.plugins.loadbalancer.schemas.health_monitors import HEALTH_MONITOR, HTTP_ATTRIBUTES, check_times
from lbaas_scheduler.schemas.access import Fields, Filters, is_id, listing, owner, projected, visible, wants
from lbaas_scheduler.schemas.attributes import Body, Verb, accept

Document = dict[str, Any]

PLAIN = ("id", "tenant_id", "type", "delay", "timeout", "max_retries", "admin_state_up")


class HealthMonitors:
    def __init__(self, core: Core) -> None:
        self._core = core

    def create(self, context: RequestContext, body: Body) -> Document:
        """:raises DelayOrTimeoutInvalid: delay < timeout."""
        values = accept(HEALTH_MONITOR, body, Verb.POST)
        check_times(values["delay"], values["timeout"])
        values["tenant_id"] = owner(context, values)
        monitor_id = values["id"] = uuidutils.generate_uuid()

        def work(conn: Connection) -> Document:
            if not health_monitors.exists(conn, monitor_id):  # else a commit whose answer got lost
                self._core.quotas.reserve(conn, values["tenant_id"], "health_monitor")
                health_monitors.insert(conn, values)
            return _read(conn, monitor_id)

        return self._core.database.write(work)

    def get(self, context: RequestContext, monitor_id: str, fields: Fields | None = None) -> Document:
        """:raises HealthMonitorNotFound: absent, or not the caller's."""

        def work(conn: Connection) -> Document:
            find(conn, context, monitor_id)
            return _read(conn, monitor_id)

        return projected(self._core.database.read(work), fields)

    def search(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        asked = listing(context, HEALTH_MONITOR, filters, **page)
        documents = self._core.database.read(lambda conn: _documents(conn, asked, fields))
        return [projected(document, fields) for document in documents]

    def update(self, context: RequestContext, monitor_id: str, body: Body) -> Document:
        """Reaches every pool that it is associated with.

        :raises DelayOrTimeoutInvalid: delay < timeout, what is not given taken as it was.
        :raises Conflict: the device of some pool's VIP cannot do what is asked now.
        """
        values = accept(HEALTH_MONITOR, body, Verb.PUT)

        def work(conn: Connection) -> tuple[Document, list[str]]:
            find(conn, context, monitor_id)
            health_monitors.lock(conn, monitor_id)
            row = find(conn, context, monitor_id)
            if not values:
                return _read(conn, monitor_id), []
            check_times(values.get("delay", row.delay), values.get("timeout", row.timeout))
            held = changes.hold(conn, pool_monitors.pool_ids(conn, monitor_id), self._core.due_at())
            health_monitors.update(conn, monitor_id, values)
            up = values.get("admin_state_up", row.admin_state_up)
            for pool_id, vip_id in held.items():
                pool_monitors.set_status(conn, pool_id, monitor_id, changes.status_after(vip_id, up))
            if values.get("admin_state_up"):  # of a device nothing else asks more than before
                changes.check_fit(conn, self._core.service, changes.placed(held))
            return _read(conn, monitor_id), changes.placed(held)

        document, vip_ids = self._core.database.write(work)
        self._core.caster.cast(vip_ids)
        return document

    def delete(self, context: RequestContext, monitor_id: str) -> None:
        """:raises HealthMonitorInUse: a pool uses it. It is kept."""

        deletion = Deletion()

        def work(conn: Connection) -> None:
            if deletion.is_done(lambda: find(conn, context, monitor_id)):
                return
            health_monitors.lock(conn, monitor_id)
            users = len(pool_monitors.pool_ids(conn, monitor_id))
            if users:
                raise HealthMonitorInUse(monitor_id=monitor_id, count=users)
            health_monitors.delete(conn, monitor_id)

        self._core.database.write(work)


def find(conn: Connection, context: RequestContext, monitor_id: str) -> AnyRow:
    """:raises HealthMonitorNotFound: absent, or not the caller's."""
    row = health_monitors.find(conn, monitor_id) if is_id(monitor_id) else None
    return visible(context, row, HealthMonitorNotFound(id=monitor_id))


def _read(conn: Connection, monitor_id: str) -> Document:
    found = _documents(conn, Listing(filters={"id": [monitor_id]}), None)
    if not found:
        raise HealthMonitorNotFound(id=monitor_id)
    return found[0]


def _documents(conn: Connection, asked: Listing, fields: Fields | None) -> list[Document]:
    """Two statements at most, however many monitors."""
    rows = health_monitors.rows(conn, asked)
    pools: dict[str, list[Document]] = defaultdict(list)
    if rows and wants(fields, "pools"):
        for row in health_monitors.associations(conn, asked):
            description = row.status_description or None
            pools[row.monitor_id].append({"pool_id": row.pool_id, "status": row.status, "status_description": description})
    return [_document(row, pools[row.id]) for row in rows]


def _document(row: AnyRow, pools: list[Document]) -> Document:
    http = HTTP_ATTRIBUTES if MonitorType(row.type).http else ()
    return {**{name: getattr(row, name) for name in (*PLAIN, *http)}, "pools": pools}
