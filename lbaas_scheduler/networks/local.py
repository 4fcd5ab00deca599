"""The local registry of networks as a connector: addresses are the allocator's."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.core.requests import Owner, Request
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import device_networks, networks, owed_releases, vips
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import (
    InvalidIpForSubnet,
    IpAddressGenerationFailure,
    IpAddressInUse,
    NotAllocated,
    NotDefined,
    OutOfRange,
    PoolExhausted,
    StaleGeneration,
    SubnetNotFound,
    Unavailable,
    ValueInUse,
)
from lbaas_scheduler.networks import address_pools
from lbaas_scheduler.networks.address_pools import ACTOR, VIP, AddressPools, pool_of
from lbaas_scheduler.networks.joint import DEFAULT_HOLD_SECONDS, Joint
from lbaas_scheduler.networks.rules import Subnet
from lbaas_scheduler.networks.segments import Segments, wiring_of
from lbaas_scheduler.schemas.access import is_id
from lbaas_scheduler.sdk.networks import NetworkConnector, Reservation, Wirings

LOG = logging.getLogger(__name__)

ALLOCATION = "allocation"
"""Of a reservation's details: id of the address that is held for it."""


class LocalConnector(NetworkConnector):
    """Gives an address of the subnet's allocation pools, or the one that is asked for.

    Where the allocator keeps its state in the same database, :meth:`bind` takes the address in the transaction that places the
    VIP. Where it keeps it elsewhere, :meth:`prepare` holds one and :meth:`confirm` makes it final; a hold that nobody confirmed
    is taken back when its time is over.
    """

    def __init__(
        self,
        database: Database,
        allocator: ResourceAllocator,
        hold_seconds: float = DEFAULT_HOLD_SECONDS,
        pick: str = "lowest",
    ) -> None:
        self._joint = Joint(database, allocator, hold_seconds)
        self._pools = AddressPools(pick)
        self.segments = Segments(self._joint)

    def prepare(self, context: Any, subnet_id: str, address: str | None, vip_id: str) -> Reservation:
        def work(conn: Connection) -> Subnet:
            subnet = _find(conn, context, subnet_id)
            if address is not None:
                self._check_free(conn, subnet, address)
            return subnet

        subnet = self._joint.database.read(work)
        reservation = Reservation(
            vip_id=vip_id,
            subnet_id=subnet_id,
            network_id=subnet.network_id,
            cidr=str(subnet.cidr),
            port_id=uuidutils.generate_uuid(),
            address=address or "",
        )
        return reservation if self._joint.is_one else self._hold(reservation, subnet)

    def bind(self, conn: Any, reservation: Reservation) -> str:
        if not self._joint.is_one:
            # Held as it is, its address keeps the subnet's pool, and with it the subnet, from going.
            if networks.find_subnet(conn, reservation.subnet_id) is None:
                raise SubnetNotFound(id=reservation.subnet_id)
            return reservation.address
        allocator = self._joint.inside(conn)
        try:
            return self._take(allocator, reservation)
        except NotDefined:
            # Of a subnet whose row came here without the registry, or before the allocator was another one.
            if not networks.lock_subnet(conn, reservation.subnet_id):
                raise SubnetNotFound(id=reservation.subnet_id) from None
            row = networks.find_subnet(conn, reservation.subnet_id)
            self._pools.define(allocator, Subnet.of(row), vips.addresses(conn, reservation.subnet_id))
            return self._take(allocator, reservation)

    def confirm(self, reservation: Reservation) -> None:
        held = reservation.details.get(ALLOCATION)
        if held is None:
            return
        try:
            self._joint.hurried.commit(held, actor=ACTOR)
        except (NotAllocated, StaleGeneration):
            self._take_late(reservation)
        except Unavailable as error:
            LOG.warning("The address of VIP %s stays a hold until it can be confirmed: %s", reservation.vip_id, error.message)

    def cancel(self, reservation: Reservation) -> None:
        held = reservation.details.get(ALLOCATION)
        if held is None:
            return  # nothing was written
        try:
            self._joint.hurried.release(held, missing_ok=True, actor=ACTOR)
        except Unavailable as error:
            LOG.warning("Address %s is given back when its hold is over: %s", reservation.address, error.message)

    def release(self, conn: Any, vip_id: str) -> None:
        if self._joint.is_one:
            self._joint.inside(conn).release_owner(Owner(VIP, vip_id), actor=ACTOR)
        else:
            owed_releases.add(conn, VIP, vip_id)

    def dispose(self, vip_id: str) -> None:
        if self._joint.is_one:
            return  # the address went with the transaction
        try:
            if self.segments.settle():
                self._give_back(vip_id)
                return
        except Unavailable as error:
            LOG.warning("The address of VIP %s could not be given back: %s", vip_id, error.message)
        LOG.warning("The address of VIP %s, which is gone, is given back when the allocator's store answers", vip_id)

    def wire(self, conn: Any, device: Device, network_ids: Collection[str]) -> bool:
        return self.segments.take(conn, device, network_ids)

    def unwire(self, conn: Any, device_id: str, network_ids: Collection[str]) -> None:
        self.segments.give_back(conn, device_id, network_ids)

    def settle(self) -> None:
        self.segments.settle()

    def _give_back(self, vip_id: str) -> None:
        self._joint.allocator.release_owner(Owner(VIP, vip_id), actor=ACTOR)
        self._joint.database.write(lambda conn: owed_releases.discard(conn, VIP, vip_id))

    def wirings(self, conn: Any, devices: Mapping[str, Device], vip_ids: Collection[str]) -> Wirings:
        interfaces = {id_: {it.name: it for it in device.interfaces} for id_, device in devices.items() if device.interfaces}
        if not interfaces:
            return {}
        rows = device_networks.wirings(conn, interfaces, vip_ids)
        return {(row.vip_id, row.device_id): wiring_of(row, interfaces[row.device_id]) for row in rows}

    def forget_device(self, device_id: str) -> None:
        self.segments.forget_device(device_id)

    def _hold(self, reservation: Reservation, subnet: Subnet) -> Reservation:
        allocator = self._joint.allocator
        try:
            address, held = self._hold_once(allocator, reservation)
        except NotDefined:
            taken = self._joint.database.read(lambda conn: vips.addresses(conn, subnet.id))
            self._pools.define(allocator, subnet, taken)
            address, held = self._hold_once(allocator, reservation)
        return replace(reservation, address=address, details={ALLOCATION: held})

    def _hold_once(self, allocator: ResourceAllocator, reservation: Reservation) -> tuple[str, str]:
        with _as_networks_say(reservation):
            [grant] = allocator.hold([_request(reservation)], self._joint.hold_seconds, actor=ACTOR)
        return grant.value, grant.id

    def _take(self, allocator: ResourceAllocator, reservation: Reservation) -> str:
        with _as_networks_say(reservation):
            return str(allocator.allocate(_request(reservation), actor=ACTOR).value)

    def _take_late(self, reservation: Reservation) -> None:
        """Its hold was over before the VIP was placed."""
        try:
            self._take(self._joint.allocator, reservation)
        except IpAddressInUse:
            LOG.error("VIP %s has address %s, which somebody else got meanwhile", reservation.vip_id, reservation.address)

    def _check_free(self, conn: Connection, subnet: Subnet, address: str) -> None:
        parsed = subnet.check_usable(address)
        if parsed == subnet.gateway:
            raise IpAddressInUse(address=address, subnet_id=subnet.id)
        if not self._joint.is_one:
            return  # it is held at once
        try:
            holder = self._joint.inside(conn).holder(pool_of(subnet.id), address)
        except NotDefined:
            return
        if holder is not None:
            raise IpAddressInUse(address=address, subnet_id=subnet.id)


class _as_networks_say:  # noqa: N801  # reads as a verb: with _as_networks_say(reservation)
    """What the allocator refuses, in the words that LBaaS clients know."""

    def __init__(self, reservation: Reservation) -> None:
        self._reservation = reservation

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        asked = self._reservation
        if isinstance(error, PoolExhausted):
            raise IpAddressGenerationFailure(subnet_id=asked.subnet_id) from error
        if isinstance(error, ValueInUse):
            raise IpAddressInUse(address=asked.address, subnet_id=asked.subnet_id) from error
        if isinstance(error, OutOfRange):
            raise InvalidIpForSubnet(address=asked.address, subnet_id=asked.subnet_id, cidr=asked.cidr) from error


def _request(reservation: Reservation) -> Request:
    return address_pools.request(reservation.subnet_id, reservation.vip_id, reservation.address)


def _find(conn: Connection, context: Any, subnet_id: str) -> Subnet:
    row = networks.find_subnet(conn, subnet_id) if is_id(subnet_id) else None
    if row is None or not (context.is_admin or row.shared or row.tenant_id == context.project_id):
        raise SubnetNotFound(id=subnet_id)
    return Subnet.of(row)
