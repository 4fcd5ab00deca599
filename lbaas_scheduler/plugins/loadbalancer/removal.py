"""The end of a VIP: everything that it held goes in one transaction."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import deployments, epochs, moves, pools, vips
from lbaas_scheduler.plugins.loadbalancer import changes
from lbaas_scheduler.sdk.networks import NetworkConnector


def forget(conn: Connection, connector: NetworkConnector, vip_id: str) -> None:
    """Remove the VIP's deployments, capacity, wiring, address and row. Repeatable.

    After the commit the caller owes the connector a :meth:`~lbaas_scheduler.sdk.networks.NetworkConnector.dispose`.
    """
    deployments.delete(conn, vip_id)
    for released in moves.forget(conn, vip_id):
        if released.networks:
            connector.unwire(conn, released.device_id, released.networks)
    pool_id = pools.free(conn, vip_id)
    if pool_id is not None:
        changes.rest(conn, pool_id)
    connector.release(conn, vip_id)
    vips.delete(conn, vip_id)
    epochs.forget(conn, vip_id)
