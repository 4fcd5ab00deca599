"""What is stuck, set so that its device is told of it anew. For administrators: repairs go on by themselves, but ever later."""

from __future__ import annotations

from typing import Any

from oslo_context.context import RequestContext
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import pending, pools, renewals, vips
from lbaas_scheduler.domain.statuses import PENDING, Status
from lbaas_scheduler.errors import Conflict, NotAuthorized, VipNotFound
from lbaas_scheduler.plugins.loadbalancer.core import Core
from lbaas_scheduler.plugins.loadbalancer.vips import document
from lbaas_scheduler.schemas.access import is_id

STUCK = PENDING | {Status.ERROR}


class Resetting:
    def __init__(self, core: Core) -> None:
        self._core = core

    def reset(self, context: RequestContext, vip_id: str) -> dict[str, Any]:
        """Apply a VIP anew that is, or has below it what is, in ERROR or PENDING: at once, its deadline and back-off begun anew.

        What failed turns PENDING_UPDATE. What is being deleted stays PENDING_DELETE, and its removal is asked for again.

        :raises Conflict: nothing of it is stuck, or it is on no device that could be told.
        :raises VipNotFound: there is no such VIP.
        """
        if not context.is_admin:
            raise NotAuthorized(reason="only administrators reset the status of VIPs")

        def work(conn: Connection) -> dict[str, Any]:
            # First of all, as everything that changes a VIP does; undone where the VIP is refused.
            told = renewals.renew(conn, vip_id, self._core.due_at()) if is_id(vip_id) else 0
            row = vips.find(conn, vip_id) if is_id(vip_id) else None
            if row is None:
                raise VipNotFound(id=vip_id)
            pool_ids = [pool.id for pool in pools.by_vips(conn, [vip_id])]
            if row.status not in STUCK and not any(pending.is_stuck(conn, pool_id) for pool_id in pool_ids):
                raise Conflict(reason=f"VIP {vip_id} is {row.status}, and nothing below it is in ERROR or PENDING")
            if not told:
                raise Conflict(reason=f"VIP {vip_id} is on no device that could be told anew; delete it")
            status = Status.PENDING_UPDATE if row.status == Status.ERROR else row.status
            vips.set_status(conn, vip_id, status)
            for pool_id in pool_ids:
                pending.restart(conn, pool_id)
            return document(vips.find(conn, vip_id) or row)

        shown = self._core.database.write(work)
        self._core.caster.cast([vip_id])
        return shown
