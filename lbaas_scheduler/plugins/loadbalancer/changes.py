"""A change of anything below a VIP, inside of its transaction: what is locked, in which order, and what it does to states.

Order of locks, everywhere: health monitor → deployment → hot row of the device → pool → all else. The deployment's revision is
bumped first, so that whoever reads the document afterwards reads the change with it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import deployments, devices, members, moves, placements, pool_monitors, pools, vips
from lbaas_scheduler.domain.statuses import Status
from lbaas_scheduler.errors import Conflict, Unavailable
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.scheduler.services import Service

MAX_LOOKS = 5

UNSETTLED = (Status.PENDING_CREATE, Status.PENDING_UPDATE, Status.ERROR)
"""What a confirmed deployment turns into ACTIVE or DISABLED."""


def hold(conn: Connection, pool_ids: Collection[str], due_at: datetime) -> dict[str, str | None]:
    """Lock the pools, after bumping the deployments of their VIPs. Costs the same number of statements for any number of pools.

    :returns: pool id → id of its VIP, which stays so until the end of the transaction. Pools that are gone are left out.
    """
    seen = pools.vip_ids(conn, pool_ids)
    for _ in range(MAX_LOOKS):
        deployments.bump(conn, placed(seen), due_at)
        pools.lock(conn, seen)
        now = pools.vip_ids(conn, pool_ids)
        if now == seen:
            return seen
        seen = now
    raise Unavailable(dependency="The pool", reason="its VIP changes too often")


def placed(held: dict[str, str | None]) -> list[str]:
    """The VIPs of the pools."""
    return [vip_id for vip_id in held.values() if vip_id is not None]


def status_after(vip_id: str | None, admin_state_up: bool, pending: Status = Status.PENDING_UPDATE) -> Status:
    """The status of a changed object: it waits for the device of its VIP, if there is one."""
    if vip_id is not None:
        return pending
    return Status.ACTIVE if admin_state_up else Status.DISABLED


def rest(conn: Connection, pool_id: str) -> None:
    """The pool has no VIP any more: no device is waited for, and no device's health check says anything."""
    members.delete_leaving(conn, [pool_id])
    members.settle(conn, [pool_id], (*UNSETTLED, Status.INACTIVE))
    pools.settle(conn, [pool_id], UNSETTLED)
    pool_monitors.settle(conn, [pool_id], UNSETTLED)


def check_fit(conn: Connection, service: Service, vip_ids: Collection[str]) -> None:
    """Judge the changed VIPs by the devices that they are on.

    :raises Conflict: a device cannot do what is asked now, or has no room for it.
    """
    if not vip_ids:
        return
    abilities = vips.device_traits(conn, vip_ids)
    for vip_id, vip in documents.load(conn, abilities).items():
        missing = service.needs(vip).traits - abilities[vip_id]
        if missing:
            names = ", ".join(sorted(missing))
            raise Conflict(reason=f"the device that carries VIP {vip_id} cannot do {names}", vip_id=vip_id)
    _turn_back(conn, service, abilities)


def _turn_back(conn: Connection, service: Service, vip_ids: Collection[str]) -> None:
    """VIPs that are on their way to a device which cannot do what is asked now stay where they are: no move is a reason to
    refuse a tenant's change."""
    ways = moves.targets(conn, vip_ids)
    able = devices.by_ids(conn, ways.values())
    for vip_id, vip in documents.load(conn, ways).items() if ways else ():
        missing = service.needs(vip).traits - able[ways[vip_id]].traits
        if missing:
            moves.roll_back(conn, vip_id, ways[vip_id], f"It cannot do {', '.join(sorted(missing))}, which is asked by now.")


def adjust_demand(conn: Connection, service: Service, vip_id: str, connection_limit: int) -> None:
    """Claim what another connection limit needs, on the device that the VIP is on.

    :raises Conflict: it has no room for it.
    """
    placement = placements.get(conn, vip_id)
    vip = documents.load(conn, [vip_id]).get(vip_id)
    if placement is None or vip is None:
        return
    before = service.needs(vip).demand
    after = service.needs(replace(vip, connection_limit=connection_limit)).demand
    # Whatever else the placement holds was claimed by somebody who knows why.
    amounts = {name: amount for name, amount in placement.amounts.items() if name not in before} | dict(after)
    obstacle = placements.adjust(conn, vip_id, amounts)
    if obstacle is not None:
        limit = f"a connection limit of {connection_limit}"
        raise Conflict(reason=f"the device that carries VIP {vip_id} has no room for {limit} ({obstacle})", vip_id=vip_id)
    target_id = moves.targets(conn, [vip_id]).get(vip_id)
    obstacle = placements.adjust(conn, vip_id, amounts, moves.TARGET)
    if obstacle is not None and target_id is not None:
        moves.roll_back(conn, vip_id, target_id, f"It has no room for what is asked by now ({obstacle}).")
