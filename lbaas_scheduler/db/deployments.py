"""Deployments: what each device should have of each resource, and how far its agent has got.

A row is *settled* when its ``due_at`` is NULL: desired and applied are the same. Everything that changes desired state makes the
row due again, in the same transaction; a server that casts claims the row by moving ``due_at`` with a compare-and-swap. So a lost
cast, report, agent or server costs a delay and never the resource.

Lock order: a transaction that changes a resource touches its deployment row first and the resource's own rows after it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import deployments, vips
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.deployments import Version

APPLY = "apply"
REMOVE = "remove"

# How many more due rows are read than are claimed: servers that pick at random from the same window rarely meet.
_WINDOW = 4


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    """One resource on one device.

    ``version`` is the desired state. ``applied_revision`` 0 = nothing was confirmed under the present epoch.
    ``pending_since`` None = settled, or its overdue pending state was turned into an error already.
    """

    resource_id: str
    device_id: str
    operation: str
    version: Version
    applied_revision: int
    due_at: datetime | None
    attempts: int
    pending_since: datetime | None
    error: str

    @property
    def removing(self) -> bool:
        return self.operation == REMOVE


_INSERT = sa.insert(deployments)


def create(conn: sa.Connection, resource_id: str, device_id: str, *, epoch: int, due_at: datetime) -> None:
    """A new desired state, revision 1, to be confirmed. ``due_at``: when it is cast again unless confirmed by then."""
    values = {
        "resource_id": resource_id,
        "device_id": device_id,
        "operation": APPLY,
        "epoch": epoch,
        "desired_revision": 1,
        "due_at": due_at,
        "pending_since": clock.utcnow(),
    }
    conn.execute(_INSERT, values)


def bump(conn: sa.Connection, resource_ids: Collection[str], due_at: datetime) -> int:
    """The resources changed: the next revision is desired. Before any other row of the resources is touched.

    Resources that are being removed, and those without a deployment, stay as they are.

    :returns: how many rows were changed.
    """
    applied = deployments.c.operation == APPLY
    return sum(_change_all(conn, desire(due_at), deployments.c.resource_id.in_(ids), applied) for ids in chunks(resource_ids))


def bump_device(conn: sa.Connection, device_id: str, due_at: datetime) -> int:
    """The device itself changed: all that is on it is to be applied anew. As :func:`bump` otherwise."""
    changed = desire(due_at).where(deployments.c.device_id == device_id, deployments.c.operation == APPLY)
    return conn.execute(changed).rowcount


def bump_service_type(conn: sa.Connection, service_type_id: str, due_at: datetime) -> int:
    """What the service type says of its VIPs changed. As :func:`bump` otherwise."""
    of_it = sa.select(vips.c.id).where(vips.c.service_type_id == service_type_id)
    changed = desire(due_at).where(deployments.c.resource_id.in_(of_it), deployments.c.operation == APPLY)
    return conn.execute(changed).rowcount


def ask_again(conn: sa.Connection, device_id: str, due_at: datetime) -> int:
    """The device may have lost what it had, or not have let go of what it should have: all of it is to be confirmed anew."""
    return conn.execute(desire(due_at).where(deployments.c.device_id == device_id)).rowcount


def mark_removal(conn: sa.Connection, resource_ids: Collection[str], due_at: datetime, *, device_id: str | None = None) -> int:
    """The resources are to go, from every device or from one. Repeatable.

    :returns: how many rows wait for an agent's confirmation; 0 = nothing is deployed, there is nobody to wait for.
    """
    removal = desire(due_at).values(operation=REMOVE)
    return sum(_change_all(conn, removal, *of(ids, device_id)) for ids in chunks(resource_ids))


def settle(conn: sa.Connection, resource_id: str, device_id: str, version: Version, retry_at: datetime | None = None) -> bool:
    """An agent confirmed a version.

    :param retry_at: not all of it is as it should be, and it is cast again: then, or when it is due anyhow, with back-off.
    :returns: whether this is the desired state, so that statuses may follow. False: something newer is on its way, or the epoch
        is an old one: the statuses stay.
    """
    row = (*of([resource_id], device_id), deployments.c.epoch == version.epoch)
    next_try = (
        {"due_at": None, "attempts": 0} if retry_at is None else {"due_at": sa.func.coalesce(deployments.c.due_at, retry_at)}
    )
    settled = (
        sa.update(deployments)
        .where(*row, deployments.c.desired_revision == version.revision)
        .values(applied_revision=version.revision, pending_since=None, error="", **next_try)
    )
    if conn.execute(settled).rowcount:
        return True
    # Progress, though not the end: the deadline of what is pending counts from here.
    progress = (
        sa.update(deployments)
        .where(*row, deployments.c.applied_revision < version.revision, deployments.c.desired_revision > version.revision)
        .values(applied_revision=version.revision, pending_since=clock.utcnow(), error="")
    )
    conn.execute(progress)
    return False


def fail(conn: sa.Connection, resource_id: str, device_id: str, version: Version, error: str, retry_at: datetime) -> bool:
    """An agent could not apply or remove a version. It is cast again, with back-off.

    :param retry_at: when first, if the row was settled: what was applied once may fail when it is applied anew.
    :returns: whether this was the desired state; False = the failure is out of date.
    """
    failed = (
        sa.update(deployments)
        .where(
            *of([resource_id], device_id),
            deployments.c.epoch == version.epoch,
            deployments.c.desired_revision == version.revision,
        )
        .values(error=error, pending_since=None, due_at=sa.func.coalesce(deployments.c.due_at, retry_at))
    )
    return bool(conn.execute(failed).rowcount)


def hold(conn: sa.Connection, resource_id: str, device_id: str) -> bool:
    """Keep changes of a resource on a device out until the transaction ends.

    :returns: whether it is to be there.
    """
    # By a write of nothing: neither SQLite nor Galera has SELECT ... FOR UPDATE.
    row = (*of([resource_id], device_id), deployments.c.operation == APPLY)
    held = sa.update(deployments).where(*row).values(desired_revision=deployments.c.desired_revision)
    return bool(conn.execute(held).rowcount)


def hold_all(conn: sa.Connection, resource_id: str) -> int:
    """Keep changes of a resource out, on every device, until the transaction ends: whoever decides by what is left of it must
    not be overtaken by another who decides the same.

    :returns: on how many devices it is, or is to be removed from.
    """
    held = sa.update(deployments).where(deployments.c.resource_id == resource_id)
    return conn.execute(held.values(desired_revision=deployments.c.desired_revision)).rowcount


def confirm_removal(conn: sa.Connection, resource_id: str, device_id: str, epoch: int) -> bool:
    """An agent confirmed that the resource is gone from the device. Repeatable.

    :param epoch: of the removal that it carried out: one of an older epoch tells nothing of what came since.
    :returns: whether that was waited for; False = it was confirmed before, or is wanted on the device again.
    """
    row = (*of([resource_id], device_id), deployments.c.operation == REMOVE, deployments.c.epoch <= epoch)
    return bool(conn.execute(sa.delete(deployments).where(*row)).rowcount)


def delete(conn: sa.Connection, resource_id: str, device_id: str | None = None) -> int:
    """Forget the deployments of a resource on one device or on all, whatever their state. Repeatable.

    :returns: how many there were.
    """
    return conn.execute(sa.delete(deployments).where(*of([resource_id], device_id))).rowcount


def claim_due(
    conn: sa.Connection, now: datetime, limit: int, later: Callable[[int], datetime], choose: random.Random
) -> list[DeploymentRow]:
    """Take due rows for casting. No row is taken by two servers.

    :param later: number of attempts so far → when the row is due again unless confirmed by then.
    :returns: the rows that are now the caller's to cast, in random order.
    """
    due = conn.execute(
        sa.select(deployments).where(deployments.c.due_at <= now).order_by(deployments.c.due_at).limit(limit * _WINDOW)
    ).all()
    picked = choose.sample(due, min(limit, len(due)))
    # In key order, so that two servers never wait for each other.
    picked.sort(key=lambda row: (row.resource_id, row.device_id))
    claimed = [from_row(row) for row in picked if _claim(conn, row, later(row.attempts))]
    choose.shuffle(claimed)
    return claimed


def hand_back(conn: sa.Connection, rows: Iterable[DeploymentRow], due_at: datetime) -> None:
    """Rows that were claimed, but not cast for a reason that is not theirs: due again soon, and the try does not count."""
    for row in rows:
        untried = (
            sa.update(deployments)
            .where(
                *of([row.resource_id], row.device_id),
                deployments.c.desired_revision == row.version.revision,
                deployments.c.attempts == row.attempts + 1,
            )
            .values(due_at=due_at, attempts=row.attempts)
        )
        conn.execute(untried)


def overdue(conn: sa.Connection, before: datetime, limit: int) -> list[DeploymentRow]:
    """Rows that have waited for a confirmation since before ``before``, longest first."""
    waiting = (
        sa.select(deployments)
        .where(deployments.c.due_at.is_not(None), deployments.c.pending_since < before)
        .order_by(deployments.c.pending_since)
        .limit(limit)
    )
    return [from_row(row) for row in conn.execute(waiting)]


def give_up_waiting(conn: sa.Connection, row: DeploymentRow) -> bool:
    """The row's overdue state is about to be reported as an error. Casting goes on.

    :returns: whether it still waits for the same version; False = it was confirmed, changed, or reported by another server.
    """
    given_up = (
        sa.update(deployments)
        .where(
            *of([row.resource_id], row.device_id),
            deployments.c.epoch == row.version.epoch,
            deployments.c.desired_revision == row.version.revision,
            deployments.c.pending_since == row.pending_since,
        )
        .values(pending_since=None)
    )
    return bool(conn.execute(given_up).rowcount)


def get(conn: sa.Connection, resource_id: str, device_id: str | None = None) -> DeploymentRow | None:
    """The deployment of a resource on a device; without a device, the one to be applied (either of the two while it moves)."""
    rows = for_resources(conn, [resource_id])
    wanted = [row for row in rows if (not row.removing if device_id is None else row.device_id == device_id)]
    return wanted[0] if wanted else None


def for_resources(conn: sa.Connection, resource_ids: Iterable[str]) -> list[DeploymentRow]:
    """All deployments of the resources, on whatever devices, ordered by resource and device."""
    rows = [from_row(row) for ids in chunks(resource_ids) for row in conn.execute(_FOR_RESOURCES, {"ids": ids})]
    return sorted(rows, key=lambda row: (row.resource_id, row.device_id))


_FOR_RESOURCES = sa.select(deployments).where(deployments.c.resource_id.in_(sa.bindparam("ids")))


def on_device(conn: sa.Connection, device_id: str, resource_ids: Iterable[str]) -> list[DeploymentRow]:
    """Those of the resources that are on the device, ordered by resource."""
    return [row for row in for_resources(conn, resource_ids) if row.device_id == device_id]


def count_on_device(conn: sa.Connection, device_id: str) -> int:
    """How many resources are on a device, or wait to be removed from it."""
    counted = sa.select(sa.func.count()).select_from(deployments).where(deployments.c.device_id == device_id)
    return int(conn.scalar(counted) or 0)


def list_desired(conn: sa.Connection, device_id: str, marker: str | None, limit: int) -> list[DeploymentRow]:
    """What a device should have, ordered by resource id, from after ``marker``."""
    page = (
        sa.select(deployments)
        .where(deployments.c.device_id == device_id, deployments.c.resource_id > (marker or ""))
        .order_by(deployments.c.resource_id)
        .limit(limit)
    )
    return [from_row(row) for row in conn.execute(page)]


def to_be_removed(conn: sa.Connection, device_id: str, limit: int) -> list[DeploymentRow]:
    """What a device has not let go of, ordered by resource id."""
    leaving = sa.select(deployments).where(deployments.c.device_id == device_id, deployments.c.operation == REMOVE)
    return [from_row(row) for row in conn.execute(leaving.order_by(deployments.c.resource_id).limit(limit))]


def desire(due_at: datetime) -> sa.Update:
    """The next revision is wanted, of whichever rows the caller says."""
    return sa.update(deployments).values(
        desired_revision=deployments.c.desired_revision + 1,
        due_at=due_at,
        attempts=0,
        pending_since=since(),
    )


def _change_all(conn: sa.Connection, change: sa.Update, *which: sa.ColumnElement[bool]) -> int:
    """Change rows, and whichever came while the statement waited for the others: a move that had locked them adds one, which
    the statement does not see. With all of them locked no further one comes."""
    changed = conn.execute(change.where(*which)).rowcount
    if changed and conn.scalar(sa.select(sa.func.count()).select_from(deployments).where(*which)) != changed:
        changed = conn.execute(change.where(*which)).rowcount
    return changed


def since() -> sa.ColumnElement[Any]:
    """Since when a row waits that has to wait from now on: what waits already goes on waiting."""
    return sa.func.coalesce(deployments.c.pending_since, clock.utcnow())


def _claim(conn: sa.Connection, row: Any, later: datetime) -> bool:
    claim = (
        sa.update(deployments)
        .where(*of([row.resource_id], row.device_id), deployments.c.due_at == row.due_at)
        .values(due_at=later, attempts=deployments.c.attempts + 1)
    )
    return bool(conn.execute(claim).rowcount)


def of(resource_ids: Collection[str], device_id: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    """The rows of resources, on one device or on all."""
    of_resources = deployments.c.resource_id.in_(resource_ids)
    return (of_resources,) if device_id is None else (of_resources, deployments.c.device_id == device_id)


def from_row(row: Any) -> DeploymentRow:
    return DeploymentRow(
        resource_id=row.resource_id,
        device_id=row.device_id,
        operation=row.operation,
        version=Version(row.epoch, row.desired_revision),
        applied_revision=row.applied_revision,
        due_at=row.due_at,
        attempts=row.attempts,
        pending_since=row.pending_since,
        error=row.error,
    )
