"""What devices are to have of VIPs, beside members and monitors: one statement, however many."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import pools as pool_store
from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import pools, service_types, subnets, vips
from lbaas_scheduler.db.rows import AnyRow, AnySelect


def rows(conn: Connection, vip_ids: Collection[str]) -> list[AnyRow]:
    """VIPs that have a pool, with what is asked of it. ``cidr`` and ``network_id`` are None where the subnet is kept elsewhere.

    ``has_members``, ``has_monitors``: whether it is worth reading them.
    """
    return [row for ids in chunks(vip_ids) for row in conn.execute(_ROWS, {"ids": ids})]


_ROWS: AnySelect = (
    sa.select(
        vips.c.id,
        vips.c.tenant_id,
        vips.c.address,
        vips.c.protocol_port,
        vips.c.protocol,
        vips.c.connection_limit,
        vips.c.persistence_type,
        vips.c.cookie_name,
        vips.c.admin_state_up,
        pools.c.id.label("pool_id"),
        pools.c.protocol.label("pool_protocol"),
        pools.c.lb_method.label("pool_lb_method"),
        pools.c.admin_state_up.label("pool_admin_state_up"),
        *pool_store.CONTENTS,
        subnets.c.cidr,
        subnets.c.network_id,
        service_types.c.options.label("service_type_options"),
    )
    .select_from(
        vips.join(pools, pools.c.id == vips.c.pool_id)
        .join(service_types, service_types.c.id == vips.c.service_type_id)
        .outerjoin(subnets, subnets.c.id == vips.c.subnet_id)
    )
    .where(vips.c.id.in_(sa.bindparam("ids")))
)
