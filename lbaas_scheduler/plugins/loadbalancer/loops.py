"""No data plane may be made to call itself: one client's connection would take all that its device has, from all tenants."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import loops
from lbaas_scheduler.errors import LeadsBack, LeadsToHost


def check(conn: Connection, vip_id: str) -> None:
    """Judge the members that a VIP has by now; last in the transaction that gave it one.

    One statement where no member is a VIP. Else the pools on the way are locked and looked at again: two changes that close
    a ring together, and of which neither sees the other, come one after the other.

    :raises LeadsBack: a member is the VIP's own address and port, or leads there through other VIPs.
    :raises LeadsToHost: a member is on the loopback interface of the VIP's device, and the VIP is not.
    """
    reach = loops.of(conn, vip_id)
    if reach.others and not reach.itself:
        loops.hold(conn, sorted(reach.others))
        reach = loops.of(conn, vip_id)
    if reach.itself:
        raise LeadsBack(vip_id=vip_id)
    if reach.host:
        raise LeadsToHost(vip_id=vip_id)
