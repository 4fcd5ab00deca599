"""The rows of members."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.listing import fetch, matching
from lbaas_scheduler.db.models import members
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.domain.statuses import Status

COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    **{name: column for name, column in members.c.items() if name not in ("leaving", "created_at")},
    "status_description": sa.func.nullif(members.c.status_description, ""),
}


def insert_many(conn: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    now = utcnow()
    conn.execute(_INSERT, [{**row, "created_at": now} for row in rows])


_INSERT = sa.insert(members)


def exists(conn: Connection, member_id: str) -> bool:
    return conn.execute(sa.select(members.c.id).where(members.c.id == member_id)).first() is not None


def find(conn: Connection, member_id: str) -> AnyRow | None:
    return conn.execute(sa.select(members).where(members.c.id == member_id)).one_or_none()


Place = tuple[str, str, int]
"""Pool, address and port, of which a pool has one member that stays."""


def taken(conn: Connection, places: Collection[Place]) -> list[Place]:
    """Those of the places that have a member."""
    pool_ids, addresses = {pool_id for pool_id, *_ in places}, {address for _, address, _ in places}
    there = sa.select(members.c.pool_id, members.c.address, members.c.protocol_port).where(
        members.c.pool_id.in_(pool_ids), members.c.address.in_(addresses), members.c.leaving == ""
    )
    return [place for row in conn.execute(there) if (place := tuple(row)) in places]


def by_ids(conn: Connection, member_ids: Collection[str]) -> list[AnyRow]:
    return list(conn.execute(sa.select(members).where(members.c.id.in_(member_ids))))


def rows(conn: Connection, listing: Listing) -> list[AnyRow]:
    return fetch(conn, matching(conn, sa.select(members), COLUMNS, listing), listing)


def of_pools(conn: Connection, pool_ids: Collection[str]) -> list[AnyRow]:
    """All members of these pools, by age."""
    return [row for ids in chunks(pool_ids) for row in conn.execute(_SELECT_OF_POOLS, {"ids": ids})]


def update(conn: Connection, member_id: str, values: Mapping[str, Any]) -> None:
    conn.execute(sa.update(members).where(members.c.id == member_id).values(**values))


def update_many(conn: Connection, member_ids: Collection[str], values: Mapping[str, Any], only: Collection[Status]) -> None:
    """Change those of the members that are in one of the statuses ``only``."""
    for ids in chunks(member_ids):
        conn.execute(sa.update(members).where(members.c.id.in_(ids), members.c.status.in_(only)).values(**values))


def statuses(conn: Connection, pool_ids: Collection[str], only: Collection[Status]) -> list[AnyRow]:
    """``(pool_id, id, status)`` of the pools' members that are in one of the statuses ``only``."""
    query = sa.select(members.c.pool_id, members.c.id, members.c.status).where(members.c.status.in_(only))
    return [row for ids in chunks(pool_ids) for row in conn.execute(query.where(members.c.pool_id.in_(ids)))]


def delete(conn: Connection, member_id: str) -> None:
    conn.execute(sa.delete(members).where(members.c.id == member_id))


def delete_leaving(conn: Connection, pool_ids: Collection[str]) -> None:
    """Remove the members of the pools that waited for their device to let go."""
    for ids in chunks(pool_ids):
        conn.execute(_DELETE_LEAVING, {"ids": ids})


def settle(conn: Connection, pool_ids: Collection[str], statuses: Collection[Status]) -> None:
    """The members of the pools that are in ``statuses`` become ACTIVE, or DISABLED where they are down by their owner's will."""
    for ids in chunks(pool_ids):
        conn.execute(_SETTLE, {"ids": ids, "statuses": statuses})


_OF_POOLS = members.c.pool_id.in_(sa.bindparam("ids"))
_SELECT_OF_POOLS = sa.select(members).where(_OF_POOLS).order_by(members.c.created_at, members.c.id)
_DELETE_LEAVING = sa.delete(members).where(_OF_POOLS, members.c.leaving != "")
_SETTLE = (
    sa.update(members)
    .where(_OF_POOLS, members.c.status.in_(sa.bindparam("statuses")), members.c.leaving == "")
    .values(
        status=sa.case((members.c.admin_state_up, str(Status.ACTIVE)), else_=str(Status.DISABLED)),
        status_description="",
    )
)


def fail(conn: Connection, pool_id: str, errors: Mapping[str, str]) -> None:
    """Single members that the device refused."""
    if errors:
        statement = sa.update(members).where(
            members.c.pool_id == pool_id, members.c.id == sa.bindparam("member_id"), members.c.leaving == ""
        )
        values = [{"member_id": member_id, "status_description": errors[member_id]} for member_id in sorted(errors)]
        conn.execute(statement.values(status=Status.ERROR), values)
