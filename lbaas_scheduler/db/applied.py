"""What agents confirmed, many at once: a busy agent reports on as many devices as it drives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from lbaas_scheduler.db import deployments
from lbaas_scheduler.db.models import deployments as table
from lbaas_scheduler.domain.deployments import Version


@dataclass(frozen=True, slots=True, order=True)
class Applied:
    """A version of a resource that is on a device."""

    resource_id: str
    device_id: str
    version: Version


def settle_all(conn: sa.Connection, applied: Collection[Applied]) -> set[Applied]:
    """Agents confirmed versions: :func:`~lbaas_scheduler.db.deployments.settle` of many, in one statement if all are desired.

    :returns: those that are the desired state.
    """
    keys = {(it.resource_id, it.device_id, it.version.epoch, it.version.revision): it for it in sorted(applied)}
    if not keys:
        return set()
    values = {"ids": sorted({it.resource_id for it in applied}), "versions": list(keys)}
    if conn.execute(_SETTLE_ALL, values).rowcount == len(keys):
        return set(applied)
    # What was desired is locked now; what was not will never be: versions only grow.
    desired = {keys[tuple(row)] for row in conn.execute(_DESIRED, values)}
    return {it for it in keys.values() if it in desired or deployments.settle(conn, it.resource_id, it.device_id, it.version)}


_KEY = sa.tuple_(table.c.resource_id, table.c.device_id, table.c.epoch, table.c.desired_revision)
_AT = (
    # For the index: no database looks up whole rows in it as well as it looks up ids.
    table.c.resource_id.in_(sa.bindparam("ids")),
    _KEY.in_(sa.bindparam("versions")),
)
_SETTLE_ALL = (
    sa.update(table)
    .where(*_AT)
    .values(applied_revision=table.c.desired_revision, due_at=None, attempts=0, pending_since=None, error="")
)
_DESIRED = sa.select(table.c.resource_id, table.c.device_id, table.c.epoch, table.c.desired_revision).where(*_AT)
