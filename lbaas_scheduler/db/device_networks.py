"""Which networks are wired to which interface of a device, and for how many resources.

A network that is wired already costs nothing more. A new one takes one of the VLANs of an interface; the caller holds the
device's hot row, so that counting them and adding one cannot be overtaken.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import device_networks, networks, subnets, vips
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.devices import VXLAN, Device, Interface

C = device_networks.c


def attach(conn: Connection, device: Device, network_ids: Collection[str]) -> bool:
    """Wire the networks for one more resource, all or nothing.

    A device without registered interfaces has no limit.

    :returns: False = no interface has a VLAN left; nothing was changed.
    """
    attached: list[str] = []
    for network_id in sorted(network_ids):
        if not (_share(conn, device.id, network_id) or _wire(conn, device, network_id)):
            detach(conn, device.id, attached)
            return False
        attached.append(network_id)
    return True


def fits(conn: Connection, device: Device, network_ids: Collection[str]) -> bool:
    """Whether :func:`attach` would succeed now. Changes nothing."""
    if not network_ids or not device.interfaces:
        return True
    here = sa.select(C.network_id).where(C.device_id == device.id, C.network_id.in_(sorted(network_ids)))
    new = len(set(network_ids) - set(conn.scalars(here)))
    wired = _wired(conn, device)
    room = [it.max_vlans - wired.get(it.name, 0) for it in device.interfaces if it.max_vlans >= 0]
    return len(room) < len(device.interfaces) or new <= sum(max(0, free) for free in room)


def detach(conn: Connection, device_id: str, network_ids: Collection[str]) -> bool:
    """Unwire the networks for one resource; the last one frees the VLAN.

    :returns: whether one of them was freed.
    """
    if not network_ids:
        return False
    of_these = sa.and_(C.device_id == device_id, C.network_id.in_(sorted(network_ids)))
    conn.execute(sa.update(device_networks).where(of_these).values(vips=C.vips - 1))
    return bool(conn.execute(sa.delete(device_networks).where(of_these, C.vips <= 0)).rowcount)


def wired(conn: Connection, device_id: str, network_ids: Collection[str]) -> list[AnyRow]:
    """Those of the networks that the device has, by their ids."""
    these = sa.select(device_networks).where(C.device_id == device_id, C.network_id.in_(sorted(network_ids)))
    return list(conn.execute(these.order_by(C.network_id)))


def segments(conn: Connection, device_id: str, interface: str) -> dict[str, int]:
    """Network → the VLAN id by which an interface of the device knows it."""
    here = sa.and_(C.device_id == device_id, C.interface == interface, C.segment.is_not(None))
    return {row.network_id: row.segment for row in conn.execute(sa.select(C.network_id, C.segment).where(here))}


def pairs(conn: Connection) -> list[tuple[str, str]]:
    """Every device with every network that it has."""
    return [(row.device_id, row.network_id) for row in conn.execute(sa.select(C.device_id, C.network_id))]


def set_segment(conn: Connection, device_id: str, network_id: str, segment: int) -> None:
    """By which VLAN id the device knows the network."""
    row = sa.and_(C.device_id == device_id, C.network_id == network_id)
    conn.execute(sa.update(device_networks).where(row).values(segment=segment))


def wirings(conn: Connection, device_ids: Collection[str], vip_ids: Collection[str]) -> list[AnyRow]:
    """How each of the devices reaches the networks of each of the VIPs, as far as they are wired."""
    query = (
        sa.select(
            vips.c.id.label("vip_id"),
            device_networks,
            networks.c.network_type,
            networks.c.segmentation_id,
            networks.c.physical_network,
            subnets.c.gateway_ip,
        )
        .join_from(vips, subnets, subnets.c.id == vips.c.subnet_id)
        .join(networks, networks.c.id == subnets.c.network_id)
        .join(device_networks, C.network_id == networks.c.id)
        .where(C.device_id.in_(sorted(device_ids)))
    )
    return [row for ids in chunks(vip_ids) for row in conn.execute(query.where(vips.c.id.in_(ids)))]


_ROW = sa.and_(C.device_id == sa.bindparam("device"), C.network_id == sa.bindparam("network"))
_SHARE = sa.update(device_networks).where(_ROW).values(vips=C.vips + 1)
_COUNT = (
    sa.select(C.interface, sa.func.count().label("networks")).where(C.device_id == sa.bindparam("device")).group_by(C.interface)
)
_INSERT = sa.insert(device_networks)


def _share(conn: Connection, device_id: str, network_id: str) -> bool:
    return bool(conn.execute(_SHARE, {"device": device_id, "network": network_id}).rowcount)


def _wire(conn: Connection, device: Device, network_id: str) -> bool:
    interface = _free_interface(conn, device, network_id)
    if interface is None:
        return False
    conn.execute(_INSERT, {"network_id": network_id, "device_id": device.id, "interface": interface, "vips": 1})
    return True


def _wired(conn: Connection, device: Device) -> dict[str, int]:
    """Interface → how many networks it carries."""
    return {row.interface: row.networks for row in conn.execute(_COUNT, {"device": device.id})}


def _free_interface(conn: Connection, device: Device, network_id: str) -> str | None:
    """The first interface that can carry the network and has a VLAN left; "" for a device without registered interfaces."""
    if not device.interfaces:
        return ""
    wired = _wired(conn, device)
    for interface in _suitable(conn, device, network_id):
        if interface.max_vlans < 0 or wired.get(interface.name, 0) < interface.max_vlans:
            return interface.name
    return None


def _suitable(conn: Connection, device: Device, network_id: str) -> list[Interface]:
    """An interface of kind vxlan carries nothing else."""
    if all(interface.kind != VXLAN for interface in device.interfaces):
        return list(device.interfaces)
    vni = sa.select(networks.c.segmentation_id).where(networks.c.id == network_id, networks.c.network_type == VXLAN)
    is_vxlan = conn.scalar(vni) is not None
    return [interface for interface in device.interfaces if is_vxlan or interface.kind != VXLAN]
