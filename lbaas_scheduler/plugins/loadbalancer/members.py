"""Members: create, read, list, change, move, delete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from oslo_context.context import RequestContext
from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import members
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.statuses import Status
from lbaas_scheduler.errors import MemberExists, MemberNotFound, PoolNotFound, StateInvalid
from lbaas_scheduler.plugins.loadbalancer import changes, loops, pools
from lbaas_scheduler.plugins.loadbalancer.core import Core, Deletion
from lbaas_scheduler.plugins.loadbalancer.schemas.members import MEMBER
from lbaas_scheduler.schemas.access import Fields, Filters, is_id, listing, owner, projected, visible
from lbaas_scheduler.schemas.attributes import Body, Verb, accept

T = TypeVar("T")

Document = dict[str, Any]

PLAIN = ("id", "tenant_id", "pool_id", "address", "protocol_port", "weight", "admin_state_up", "status")


class Members:
    def __init__(self, core: Core) -> None:
        self._core = core

    def create(self, context: RequestContext, body: Body) -> Document:
        """See :meth:`create_bulk`."""
        return self.create_bulk(context, [body])[0]

    def create_bulk(self, context: RequestContext, bodies: Sequence[Body]) -> list[Document]:
        """All of them or none, in whatever state pools and VIPs are. Costs as many statements for many in a pool as for one.

        :raises PoolNotFound: absent, or not the caller's.
        :raises MemberExists: the pool has a member with this address and port.
        :raises LeadsBack, LeadsToHost: the pool's VIP would call itself, or its device's host.
        """
        new = [_new(context, body) for body in bodies]
        pool_ids = sorted({values["pool_id"] for values in new})

        def work(conn: Connection) -> tuple[list[Document], list[str]]:
            for pool_id in pool_ids:
                pools.find(conn, context, pool_id)
            held = changes.hold(conn, pool_ids, self._core.due_at())
            for pool_id in pool_ids:
                if pool_id not in held:
                    raise PoolNotFound(id=pool_id)
            if not members.exists(conn, new[0]["id"]):  # else a commit whose answer got lost
                self._insert(conn, new, held)
            documents = {row.id: _document(row) for row in members.by_ids(conn, [values["id"] for values in new])}
            return [documents[values["id"]] for values in new], changes.placed(held)

        return self._write(work)

    def _insert(self, conn: Connection, new: Sequence[Document], held: dict[str, str | None]) -> None:
        _check_free(conn, [(values["pool_id"], values["address"], values["protocol_port"]) for values in new])
        for tenant_id, count in sorted(Counter(values["tenant_id"] for values in new).items()):
            self._core.quotas.reserve(conn, tenant_id, "member", count)
        rows = [
            {**values, "status": changes.status_after(held[values["pool_id"]], values["admin_state_up"], Status.PENDING_CREATE)}
            for values in new
        ]
        members.insert_many(conn, rows)
        for vip_id in sorted(changes.placed(held)):
            loops.check(conn, vip_id)

    def get(self, context: RequestContext, member_id: str, fields: Fields | None = None) -> Document:
        """:raises MemberNotFound: absent, or not the caller's."""
        row = self._core.database.read(lambda conn: _find(conn, context, member_id))
        return projected(_document(row), fields)

    def search(
        self, context: RequestContext, filters: Filters | None = None, fields: Fields | None = None, **page: Any
    ) -> list[Document]:
        asked = listing(context, MEMBER, filters, **page)
        return [projected(_document(row), fields) for row in self._core.database.read(lambda conn: members.rows(conn, asked))]

    def update(self, context: RequestContext, member_id: str, body: Body) -> Document:
        """Also moves it to another pool.

        :raises StateInvalid: it is being deleted.
        :raises PoolNotFound: the new pool is absent, or not the caller's.
        :raises MemberExists: the new pool has a member with its address and port.
        :raises LeadsBack, LeadsToHost: the new pool's VIP would call itself, or its device's host.
        """
        values = accept(MEMBER, body, Verb.PUT)

        def work(conn: Connection) -> tuple[Document, list[str]]:
            row = _find(conn, context, member_id)
            if not values:
                return _document(row), []
            pool_id = values.get("pool_id", row.pool_id)
            if pool_id != row.pool_id:
                pools.find(conn, context, pool_id)
            row, held = self._hold(conn, context, member_id, pool_id)
            if pool_id not in held:
                raise PoolNotFound(id=pool_id)
            if row.leaving:
                raise StateInvalid(resource="Member", id=member_id, state=row.status)
            if pool_id != row.pool_id:
                _check_free(conn, [(pool_id, row.address, row.protocol_port)])
            up = values.get("admin_state_up", row.admin_state_up)
            status = changes.status_after(held[pool_id], up)
            members.update(conn, member_id, {**values, "status": status, "status_description": ""})
            if pool_id != row.pool_id and (vip_id := held[pool_id]) is not None:
                loops.check(conn, vip_id)
            return _read(conn, member_id), changes.placed(held)

        return self._write(work)

    def delete(self, context: RequestContext, member_id: str) -> None:
        """In any state. Stays as PENDING_DELETE until the device of the pool's VIP has let go."""

        deletion = Deletion()

        def work(conn: Connection) -> tuple[Document, list[str]]:
            if deletion.is_done(lambda: _find(conn, context, member_id)):
                return {}, []
            row, held = self._hold(conn, context, member_id)
            if held.get(row.pool_id) is None:
                members.delete(conn, member_id)
            else:
                leaving = {"leaving": member_id, "status": Status.PENDING_DELETE, "status_description": ""}
                members.update(conn, member_id, leaving)
            return {}, changes.placed(held)

        self._write(work)

    def _write(self, work: Callable[[Connection], tuple[T, list[str]]]) -> T:
        written, vip_ids = self._core.database.write(work)
        self._core.caster.cast(vip_ids)
        return written

    def _hold(
        self, conn: Connection, context: RequestContext, member_id: str, *more: str
    ) -> tuple[AnyRow, dict[str, str | None]]:
        """Lock the member's pool and ``more``, and read the member as it is then: it may have moved meanwhile."""
        held: dict[str, str | None] = {}
        row = _find(conn, context, member_id)
        while row.pool_id not in held:
            held = changes.hold(conn, {row.pool_id, *more}, self._core.due_at())
            row = _find(conn, context, member_id)
        return row, held


def _find(conn: Connection, context: RequestContext, member_id: str) -> AnyRow:
    return visible(context, members.find(conn, member_id) if is_id(member_id) else None, MemberNotFound(id=member_id))


def _new(context: RequestContext, body: Body) -> Document:
    values = accept(MEMBER, body, Verb.POST)
    return {**values, "tenant_id": owner(context, values), "id": uuidutils.generate_uuid()}


def _check_free(conn: Connection, places: Sequence[members.Place]) -> None:
    taken = members.taken(conn, set(places)) or [place for place, count in Counter(places).items() if count > 1]
    if taken:
        pool_id, address, port = taken[0]
        raise MemberExists(address=address, port=port, pool_id=pool_id)


def _read(conn: Connection, member_id: str) -> Document:
    row = members.find(conn, member_id)
    if row is None:
        raise MemberNotFound(id=member_id)
    return _document(row)


def _document(row: AnyRow) -> Document:
    return {**{name: getattr(row, name) for name in PLAIN}, "status_description": row.status_description or None}
