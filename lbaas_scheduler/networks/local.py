"""The local registry of networks as a connector: addresses are rows of the same database."""

from __future__ import annotations

import random
from typing import Any

from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import addresses, networks
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import IpAddressGenerationFailure, IpAddressInUse, SubnetNotFound
from lbaas_scheduler.networks.rules import Subnet
from lbaas_scheduler.schemas.access import is_id
from lbaas_scheduler.sdk.networks import NetworkConnector, Reservation

MAX_TRIES = 10


class LocalConnector(NetworkConnector):
    """Gives the lowest free address of the subnet's allocation pools, or the one that is asked for.

    Only :meth:`bind` decides: the primary key of the taken addresses is the guard, whoever races for one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def prepare(self, context: Any, subnet_id: str, address: str | None, vip_id: str) -> Reservation:
        def work(conn: Connection) -> Subnet:
            subnet = _find(conn, context, subnet_id)
            if address is not None:
                _check_free(conn, subnet, address)
            return subnet

        subnet = self._database.read(work)
        return Reservation(
            vip_id=vip_id,
            subnet_id=subnet_id,
            network_id=subnet.network_id,
            cidr=str(subnet.cidr),
            port_id=uuidutils.generate_uuid(),
            address=address or "",
        )

    def bind(self, conn: Any, reservation: Reservation) -> str:
        row = networks.find_subnet(conn, reservation.subnet_id)
        if row is None:
            raise SubnetNotFound(id=reservation.subnet_id)
        subnet = Subnet.of(row)
        if reservation.address:
            number = int(subnet.check_usable(reservation.address))
            if not addresses.take(conn, subnet.id, number, reservation.vip_id):
                raise IpAddressInUse(address=reservation.address, subnet_id=subnet.id)
            return reservation.address
        return _take_any(conn, subnet, reservation.vip_id)

    def cancel(self, reservation: Reservation) -> None:
        """Nothing to undo: nothing was written."""

    def release(self, conn: Any, vip_id: str) -> None:
        addresses.release(conn, vip_id)

    def dispose(self, vip_id: str) -> None:
        """Nothing is left: the address went with the transaction."""


def _find(conn: Connection, context: Any, subnet_id: str) -> Subnet:
    row = networks.find_subnet(conn, subnet_id) if is_id(subnet_id) else None
    if row is None or not (context.is_admin or row.shared or row.tenant_id == context.project_id):
        raise SubnetNotFound(id=subnet_id)
    return Subnet.of(row)


def _check_free(conn: Connection, subnet: Subnet, address: str) -> None:
    parsed = subnet.check_usable(address)
    if parsed == subnet.gateway or addresses.is_taken(conn, subnet.id, int(parsed)):
        raise IpAddressInUse(address=address, subnet_id=subnet.id)


def _take_any(conn: Connection, subnet: Subnet, owner_id: str) -> str:
    """The lowest free address; after a lost race one of the next few, so that racers do not meet again and again."""
    spread = 1
    for _ in range(MAX_TRIES):
        free = _some_free(conn, subnet, spread)
        if not free:
            raise IpAddressGenerationFailure(subnet_id=subnet.id)
        number = random.choice(free)  # noqa: S311
        if addresses.take(conn, subnet.id, number, owner_id):
            return subnet.text(number)
        spread *= 2
    raise IpAddressGenerationFailure(f"Too many VIPs ask for an address of subnet {subnet.id} at once.", subnet_id=subnet.id)


def _some_free(conn: Connection, subnet: Subnet, count: int) -> list[int]:
    """The first ``count`` free addresses, ascending; fewer, if there are no more."""
    free: list[int] = []
    for first, last in subnet.ranges():
        start: int | None = first
        while start is not None and start <= last and len(free) < count:
            start = addresses.first_free(conn, subnet.id, start, last)
            if start is not None:
                free.append(start)
                start += 1
    return free
