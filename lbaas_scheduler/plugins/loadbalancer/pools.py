"""Pools: create, read, list, change, delete."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from oslo_context.context import RequestContext
from oslo_db.exception import DBReferenceError
from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import pool_stats, pools
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.errors import PoolInUse, PoolNotFound, ServiceProviderNotFound
from lbaas_scheduler.plugins.loadbalancer import changes
from lbaas_scheduler.plugins.loadbalancer.core import Core, Deletion
from lbaas_scheduler.plugins.loadbalancer.schemas.pools import POOL
from lbaas_scheduler.schemas.access import Fields, Filters, is_id, listing, owner, projected, visible, wants
from lbaas_scheduler.schemas.attributes import Body, Verb, accept

Document = dict[str, Any]

PLAIN = (
    "id",
    "tenant_id",
    "name",
    "description",
    "vip_id",
    "subnet_id",
    "protocol",
    "provider",
    "lb_method",
    "admin_state_up",
    "status",
)


class Pools:
    """A pool needs no device of its own: without a VIP it is ACTIVE at once; with one, its changes go to the VIP's device."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def create(self, context: RequestContext, body: Body) -> Document:
        """See :meth:`create_bulk`."""
        return self.create_bulk(context, [body])[0]

    def create_bulk(self, context: RequestContext, bodies: Sequence[Body]) -> list[Document]:
        """All of them or none.

        :raises ServiceProviderNotFound: an unknown or disabled ``provider``.
        """
        new = [_new(context, body) for body in bodies]
        ids = [values["id"] for values in new]

        def work(conn: Connection) -> dict[str, Document]:
            if pools.find(conn, ids[0]) is None:  # else a commit whose answer got lost
                self._insert(conn, new)
            return {document["id"]: document for document in _documents(conn, Listing(filters={"id": ids}), None)}

        try:
            made = self._core.database.write(work)
        except DBReferenceError:  # one was deleted since it was looked up
            named = sorted({values["provider"] for values in new if values["provider"] is not None})
            raise ServiceProviderNotFound(service_type=", ".join(named)) from None
        return [made[id_] for id_ in ids]

    def _insert(self, conn: Connection, new: Sequence[Document]) -> None:
        for tenant_id, count in sorted(Counter(values["tenant_id"] for values in new).items()):
            self._core.quotas.reserve(conn, tenant_id, "pool", count)
        types = {provider: self._service_type_id(conn, provider) for provider in {values["provider"] for values in new}}
        rows = [{**values, "service_type_id": types[values["provider"]]} for values in new]
        pools.insert_many(conn, [{name: value for name, value in row.items() if name != "provider"} for row in rows])

    def get(self, context: RequestContext, pool_id: str, fields: Fields | None = None) -> Document:
        """:raises PoolNotFound: absent, or not the caller's."""

        def work(conn: Connection) -> Document:
            find(conn, context, pool_id)
            return self._document(conn, pool_id)

        return projected(self._core.database.read(work), fields)

    def search(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        asked = listing(context, POOL, filters, **page)
        documents = self._core.database.read(lambda conn: _documents(conn, asked, fields))
        return [projected(document, fields) for document in documents]

    def update(self, context: RequestContext, pool_id: str, body: Body) -> Document:
        """:raises Conflict: the device of the pool's VIP cannot do the new method."""
        values = accept(POOL, body, Verb.PUT)
        values.pop("health_monitors", None)

        def work(conn: Connection) -> tuple[Document, list[str]]:
            row = find(conn, context, pool_id)
            if not values:
                return self._document(conn, pool_id), []
            held = changes.hold(conn, [pool_id], self._core.due_at())
            if pool_id not in held:
                raise PoolNotFound(id=pool_id)
            row = find(conn, context, pool_id)  # anew: others may have changed it until it was held
            up = values.get("admin_state_up", row.admin_state_up)
            status = changes.status_after(held[pool_id], up)
            pools.update(conn, pool_id, {**values, "status": status, "status_description": ""})
            vip_ids = changes.placed(held)
            if "lb_method" in values:
                changes.check_fit(conn, self._core.service, vip_ids)
            return self._document(conn, pool_id), vip_ids

        document, vip_ids = self._core.database.write(work)
        self._core.caster.cast(vip_ids)
        return document

    def delete(self, context: RequestContext, pool_id: str) -> None:
        """With its members and associations.

        :raises PoolInUse: it has a VIP. Nothing is changed, its status neither.
        """

        deletion = Deletion()

        def work(conn: Connection) -> None:
            if deletion.is_done(lambda: find(conn, context, pool_id)):
                return
            vip_id = changes.hold(conn, [pool_id], self._core.due_at()).get(pool_id)
            if vip_id is not None:
                raise PoolInUse(pool_id=pool_id, vip_id=vip_id)
            pools.delete(conn, pool_id)

        self._core.database.write(work)

    def stats(self, context: RequestContext, pool_id: str) -> dict[str, dict[str, int]]:
        """``{"stats": {bytes_in, bytes_out, active_connections, total_connections}}``, as last reported."""

        def work(conn: Connection) -> dict[str, int]:
            find(conn, context, pool_id)
            return pool_stats.get(conn, pool_id) or dict.fromkeys(pool_stats.COUNTERS, 0)

        return {"stats": self._core.database.read(work)}

    def _service_type_id(self, conn: Connection, provider: str | None) -> str | None:
        if provider is None:
            return None
        return self._core.service_types.choose(conn, provider, self._core.service.name).id

    def _document(self, conn: Connection, pool_id: str) -> Document:
        return _documents(conn, Listing(filters={"id": [pool_id]}), None)[0]


def _new(context: RequestContext, body: Body) -> Document:
    values = accept(POOL, body, Verb.POST)
    del values["health_monitors"]
    status = changes.status_after(None, values["admin_state_up"])
    return {**values, "tenant_id": owner(context, values), "id": uuidutils.generate_uuid(), "status": status}


def find(conn: Connection, context: RequestContext, pool_id: str) -> AnyRow:
    """:raises PoolNotFound: absent, or not the caller's."""
    return visible(context, pools.find(conn, pool_id) if is_id(pool_id) else None, PoolNotFound(id=pool_id))


def outline(conn: Connection, context: RequestContext, pool_id: str) -> AnyRow:
    """What a VIP asks of its pool. Errors as :func:`find`."""
    return visible(context, pools.outline(conn, pool_id) if is_id(pool_id) else None, PoolNotFound(id=pool_id))


def _documents(conn: Connection, asked: Listing, fields: Fields | None) -> list[Document]:
    """Three statements at most, however many pools."""
    rows = pools.rows(conn, asked)
    members: dict[str, list[str]] = defaultdict(list)
    monitors: dict[str, list[Document]] = defaultdict(list)
    if rows and wants(fields, "members"):
        for row in pools.member_ids(conn, asked):
            members[row.pool_id].append(row.id)
    if rows and wants(fields, "health_monitors", "health_monitors_status"):
        for row in pools.associations(conn, asked):
            description = row.status_description or None
            monitors[row.pool_id].append({"monitor_id": row.monitor_id, "status": row.status, "status_description": description})
    return [_document(row, members[row.id], monitors[row.id]) for row in rows]


def _document(row: AnyRow, member_ids: list[str], monitors: list[Document]) -> Document:
    return {
        **{name: getattr(row, name) for name in PLAIN},
        "status_description": row.status_description or None,
        "members": member_ids,
        "health_monitors": [each["monitor_id"] for each in monitors],
        "health_monitors_status": monitors,
    }
