"""Segments: by which VLAN id an interface of a device knows a network, whichever way the network itself is made.

One for each network and device, whatever the number of VIPs; it comes with the first and goes with the last. The rows of
``device_networks`` say who is wired to what, the device's hot row is locked by whoever changes them, and the allocator has a pool
of ids for each interface of kind vlan or vxlan.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.core.requests import Grant, Owner, Request, Selector
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import device_networks, networks, owed_releases, schedulable
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.devices import Device, Interface
from lbaas_scheduler.errors import Conflict, Exhausted, InvalidRequest, NotDefined, StoreUnavailable
from lbaas_scheduler.networks.joint import Joint

LOG = logging.getLogger(__name__)

WIRING = "wiring"
"""Owner type of a segment; its id is ``<device>/<network>``."""

ACTOR = "networks"


class Segments:
    def __init__(self, joint: Joint) -> None:
        self._joint = joint
        self._unsettled: deque[tuple[str, str]] = deque()

    def take(self, conn: Connection, device: Device, network_ids: Collection[str]) -> bool:
        """Give the networks, which are wired to the device since a moment ago, their segments: all or nothing.

        The device's hot row is locked. Networks that have theirs keep it.

        :returns: False = one of them cannot have what it needs there.
        """
        tagged = {it.name: it for it in device.interfaces if it.tagged}
        if not tagged:
            return True
        rows = device_networks.wired(conn, device.id, network_ids)
        new = [row for row in rows if row.segment is None and row.interface in tagged]
        if not new:
            return True
        found = {row.id: row for row in networks.by_ids(conn, [row.network_id for row in new])}
        try:
            requests = [_request(device, tagged[row.interface], row.network_id, found.get(row.network_id)) for row in new]
            for name in sorted({row.interface for row in new}):
                _define(self._joint.inside(conn), device, tagged[name], conn)
            grants = self._allocate(self._joint.inside(conn), requests)
        except (InvalidRequest, Conflict, Exhausted) as error:
            LOG.info("Device %s cannot be wired: %s", device.id, error.message)
            return False
        for row, grant in zip(new, grants, strict=True):
            device_networks.set_segment(conn, device.id, row.network_id, grant.value)
        return True

    def give_back(self, conn: Connection, device_id: str, network_ids: Collection[str]) -> None:
        """Of those networks that are not wired to the device any more. The device's hot row is locked."""
        if not self._joint.is_one:
            self._unsettled.extend((device_id, network_id) for network_id in network_ids)
            for network_id in network_ids:
                owed_releases.add(conn, WIRING, owner_of(device_id, network_id).id)
            return
        for network_id in self._unwired(conn, device_id, network_ids):
            self._joint.inside(conn).release_owner(owner_of(device_id, network_id), actor=ACTOR)

    def settle(self) -> bool:
        """Transactions have ended, one way or the other. Nothing to do where segments are a part of them. Never raises.

        :returns: False = the allocator's store does not answer. What is left is settled later.
        """
        for _ in range(len(self._unsettled)):
            try:
                device_id, network_id = self._unsettled.popleft()
            except IndexError:  # another thread settled it
                break
            try:
                self._settle(device_id, network_id)
            except Exception as error:
                self._unsettled.append((device_id, network_id))
                if isinstance(error, StoreUnavailable):
                    LOG.warning("%d segment(s) are settled later: %s", len(self._unsettled), error.message)
                    return False
                # What it was called after is done all the same.
                LOG.exception("The segment of network %s on device %s is settled later", network_id, device_id)
        return True

    def settle_owed(self, owner: Owner) -> None:
        """Of a wiring that a transaction has ended: by this server, or by one that died after it."""
        self._settle(*device_and_network(owner))

    def forget_device(self, device_id: str) -> None:
        """The device is gone. Repeatable."""
        for pool in self._joint.allocator.pools("vlan"):
            if pool.name.startswith(f"{device_id}/"):
                self._joint.allocator.undefine(Selector("vlan", pool.name, pool.scope), force=True, actor=ACTOR)

    def _unwired(self, conn: Connection, device_id: str, network_ids: Collection[str]) -> list[str]:
        left = {row.network_id for row in device_networks.wired(conn, device_id, network_ids)}
        return sorted(set(network_ids) - left)

    def _settle(self, device_id: str, network_id: str) -> None:
        """Make what the store has agree with what the database says, while nobody can change that."""
        owner = owner_of(device_id, network_id)
        if not self._joint.allocator.list(owner=owner):
            # Asked before anything is locked, so that a store that does not answer keeps nobody else waiting.
            self._joint.database.write(lambda conn: owed_releases.discard(conn, *owner))
            return

        def work(conn: Connection) -> None:
            schedulable.lock(conn, [device_id])
            owed_releases.discard(conn, *owner)
            allocator = self._joint.inside(conn)
            if not device_networks.wired(conn, device_id, [network_id]):
                allocator.release_owner(owner, actor=ACTOR)
                return
            for grant in allocator.list(owner=owner):
                if grant.status == "held":
                    allocator.commit(grant.id, actor=ACTOR)

        self._joint.database.write(work)

    def _allocate(self, allocator: ResourceAllocator, requests: Sequence[Request]) -> list[Grant]:
        if self._joint.is_one:
            return allocator.allocate_many(requests, actor=ACTOR)
        self._unsettled.extend(device_and_network(request.owner) for request in requests)
        return allocator.hold(requests, self._joint.hold_seconds, actor=ACTOR)


def device_and_network(owner: Owner) -> tuple[str, str]:
    device_id, _, network_id = owner.id.rpartition("/")
    return device_id, network_id


def wiring_of(row: AnyRow, interfaces: Mapping[str, Interface]) -> dict[str, Any]:
    """What a driver is told, from a row of :func:`lbaas_scheduler.db.device_networks.wirings`. See ``sdk.networks``."""
    interface = interfaces.get(row.interface, Interface(row.interface))
    return {
        "network_id": row.network_id,
        "interface": row.interface,
        "kind": interface.kind,
        "segment": row.segment,
        "vni": row.segmentation_id if row.network_type == "vxlan" else None,
        "physical_network": row.physical_network or interface.physical_network,
        "gateway_ip": row.gateway_ip,
    }


def owner_of(device_id: str, network_id: str) -> Owner:
    """Who has the segment of a network on a device."""
    return Owner(WIRING, f"{device_id}/{network_id}")


def _pool_of(device: Device, interface: Interface) -> Selector:
    return Selector("vlan", f"{device.id}/{interface.name}")


def _define(allocator: ResourceAllocator, device: Device, interface: Interface, conn: Connection) -> None:
    """Rare: with the first network on an interface, and after a change of its ids."""
    config = {
        "ranges": interface.vlans,
        # Ids are unique on the interface, and nowhere else.
        "physical_network": f"interface:{uuid.uuid5(uuid.NAMESPACE_OID, f'{device.id}/{interface.name}')}",
        "pick": "lowest",
    }
    selector = _pool_of(device, interface)
    try:
        allocator.redefine(selector, config, drain=True, actor=ACTOR)
    except NotDefined:
        allocator.define(selector, config, ACTOR)
        # Those that were there before the pool was, in another store for example, keep what they have.
        for network_id, segment in device_networks.segments(conn, device.id, interface.name).items():
            _keep(allocator, selector, owner_of(device.id, network_id), segment)


def _keep(allocator: ResourceAllocator, pool: Selector, owner: Owner, segment: int) -> None:
    try:
        allocator.allocate(Request(pool.kind, owner, pool.name, pool.scope, value=segment), actor=ACTOR)
    except (InvalidRequest, Conflict) as error:
        LOG.error("%s has id %d of pool %s, and cannot keep it: %s", owner.id, segment, pool.name, error.message)


def _request(device: Device, interface: Interface, network_id: str, network: AnyRow | None) -> Request:
    """:raises InvalidRequest: the interface cannot carry such a network."""
    pool = _pool_of(device, interface)
    kind = network.network_type if network is not None else "flat"
    number = network.segmentation_id if network is not None else None
    if interface.kind == "vxlan" and (kind != "vxlan" or not number):
        raise InvalidRequest(reason=f"interface {interface.name} carries VXLANs, and network {network_id} has no VNI")
    # On an uplink the network's own tag is the only one that means it.
    value = number if interface.kind == "vlan" and kind == "vlan" else None
    return Request(pool.kind, owner_of(device.id, network_id), pool.name, pool.scope, value=value)
