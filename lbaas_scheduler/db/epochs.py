"""Epochs of resources: numbers that only grow, however often a resource's deployments come and go.

What an agent remembers of a resource may outlive every row of it on that device: an epoch that was used once must never be used
again. A resource's first deployment is of the first epoch, and needs no row here; the row comes with the resource's second
epoch, and stays for as long as the resource.

Lock order: the resource's deployments first, this row after them.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from oslo_db.exception import DBDuplicateEntry

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.fleet_models import epochs
from lbaas_scheduler.db.models import deployments


def advance(conn: sa.Connection, resource_ids: Collection[str], above: int = 0) -> None:
    """Give each of the resources an epoch that it never had.

    :param above: higher than this, too.
    """
    for ids in chunks(resource_ids):
        values = {"ids": ids, "above": above, "step": 1}
        if conn.execute(_ADVANCE_SOME, values).rowcount < len(ids):
            _add_missing(conn, ids)
            # Once more for all: that some leave a number out does no harm.
            conn.execute(_ADVANCE_SOME, values)


def advance_all(conn: sa.Connection, step: int) -> None:
    """Give all resources epochs that are higher by ``step`` than any that is known here."""
    d = deployments.c
    known = sa.exists().where(epochs.c.resource_id == d.resource_id)
    missing = sa.select(d.resource_id, sa.func.max(d.epoch)).where(~known).group_by(d.resource_id)
    conn.execute(sa.insert(epochs).from_select(["resource_id", "epoch"], missing))
    conn.execute(_ADVANCE, {"above": 0, "step": step})


def take(conn: sa.Connection, resource_id: str) -> int:
    """The next epoch of a resource, for a deployment that is about to be made."""
    advance(conn, [resource_id])
    return int(conn.execute(sa.select(epochs.c.epoch).where(epochs.c.resource_id == resource_id)).scalar_one())


def latest() -> sa.ColumnElement[int]:
    """For an UPDATE of deployments: the epoch that was given last to the row's resource."""
    given = sa.select(epochs.c.epoch).where(epochs.c.resource_id == deployments.c.resource_id).scalar_subquery()
    return sa.func.coalesce(given, deployments.c.epoch)


def forget(conn: sa.Connection, resource_id: str) -> None:
    """The resource is gone for good. Repeatable."""
    conn.execute(sa.delete(epochs).where(epochs.c.resource_id == resource_id))


def _add_missing(conn: sa.Connection, ids: Collection[str]) -> None:
    there = set(conn.scalars(sa.select(epochs.c.resource_id).where(epochs.c.resource_id.in_(ids))))
    for resource_id in sorted(set(ids) - there):
        try:
            with conn.begin_nested():
                conn.execute(sa.insert(epochs).values(resource_id=resource_id, epoch=0))
        except DBDuplicateEntry:
            continue  # another device's transaction was faster


# A server of an older release raises the epochs of deployments alone: those count, too.
_DEPLOYED = sa.func.coalesce(
    sa.select(sa.func.max(deployments.c.epoch)).where(deployments.c.resource_id == epochs.c.resource_id).scalar_subquery(), 0
)
_ABOVE = sa.bindparam("above", type_=sa.Integer)
_KNOWN = sa.case((epochs.c.epoch >= _ABOVE, epochs.c.epoch), else_=_ABOVE)
_ADVANCE = sa.update(epochs).values(
    epoch=sa.case((_KNOWN >= _DEPLOYED, _KNOWN), else_=_DEPLOYED) + sa.bindparam("step", type_=sa.Integer)
)
_ADVANCE_SOME = _ADVANCE.where(epochs.c.resource_id.in_(sa.bindparam("ids", expanding=True)))
