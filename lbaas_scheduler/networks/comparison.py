"""VIPs in the database against addresses in the allocator: what a restored backup, or a store that lost something, leaves behind.

The other direction, values whose owners are gone, is the allocator's own ``reconcile``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import vips
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import Conflict, InvalidRequest, NotDefined
from lbaas_scheduler.networks.address_pools import ACTOR, VIP, pool_of, request

Held = tuple[str, str, str]
"""Subnet, address, VIP."""


def compare(database: Database, allocator: ResourceAllocator, *, repair: bool) -> list[str]:
    """Find VIPs whose addresses the allocator does not know, or gave to somebody else. Subnets without a pool are left out.

    :param repair: take what is not taken for the VIP that uses it, so that nobody else gets it. What two have stays as it is.
    :returns: what is wrong and was not repaired, a sentence each.
    """
    used = database.read(vips.all_addresses)
    found: list[str] = []
    for subnet_id in sorted({subnet for subnet, _, _ in used}):
        rows = [row for row in used if row[0] == subnet_id]
        try:
            grants = allocator.list(pool_of(subnet_id))
        except NotDefined:
            continue  # kept elsewhere, or defined with the next VIP
        owners = {str(grant.value): grant.owner for grant in grants}
        for row in rows:
            owner = owners.get(row[1])
            if owner is None or owner != (VIP, row[2]):
                found += _wrong(database, allocator, row, "" if owner is None else f"{owner.type} {owner.id}", repair)
    return found


def _wrong(database: Database, allocator: ResourceAllocator, row: Held, owner: str, repair: bool) -> Sequence[str]:
    subnet_id, address, vip_id = row
    if not database.read(lambda conn: _still(conn, row)):
        return ()  # it went meanwhile
    if owner:
        return [f"Address {address} of subnet {subnet_id} is VIP {vip_id}'s, and the allocator gave it to {owner}"]
    if not repair:
        return [f"Address {address} of subnet {subnet_id} is VIP {vip_id}'s, and free in the allocator"]
    try:
        allocator.allocate(request(subnet_id, vip_id, address), actor=ACTOR)
    except (Conflict, InvalidRequest) as error:
        return [f"Address {address} of subnet {subnet_id} is VIP {vip_id}'s, which cannot keep it: {error.message}"]
    return ()


def _still(conn: Connection, row: Held) -> bool:
    found = vips.find(conn, row[2])
    return found is not None and (found.subnet_id, found.address) == row[:2]
