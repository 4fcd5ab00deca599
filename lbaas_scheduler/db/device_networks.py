"""Which networks are wired to which interface of a device, and for how many resources.

A network that is wired already costs nothing more. A new one takes one of the VLANs of an interface; the caller holds the
device's hot row, so that counting them and adding one cannot be overtaken.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.models import device_networks
from lbaas_scheduler.domain.devices import Device

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


def detach(conn: Connection, device_id: str, network_ids: Collection[str]) -> None:
    """Unwire the networks for one resource; the last one frees the VLAN."""
    if not network_ids:
        return
    of_these = sa.and_(C.device_id == device_id, C.network_id.in_(sorted(network_ids)))
    conn.execute(sa.update(device_networks).where(of_these).values(vips=C.vips - 1))
    conn.execute(sa.delete(device_networks).where(of_these, C.vips <= 0))


_ROW = sa.and_(C.device_id == sa.bindparam("device"), C.network_id == sa.bindparam("network"))
_SHARE = sa.update(device_networks).where(_ROW).values(vips=C.vips + 1)
_COUNT = (
    sa.select(C.interface, sa.func.count().label("networks")).where(C.device_id == sa.bindparam("device")).group_by(C.interface)
)
_INSERT = sa.insert(device_networks)


def _share(conn: Connection, device_id: str, network_id: str) -> bool:
    return bool(conn.execute(_SHARE, {"device": device_id, "network": network_id}).rowcount)


def _wire(conn: Connection, device: Device, network_id: str) -> bool:
    interface = _free_interface(conn, device)
    if interface is None:
        return False
    conn.execute(_INSERT, {"network_id": network_id, "device_id": device.id, "interface": interface, "vips": 1})
    return True


def _wired(conn: Connection, device: Device) -> dict[str, int]:
    """Interface → how many networks it carries."""
    return {row.interface: row.networks for row in conn.execute(_COUNT, {"device": device.id})}


def _free_interface(conn: Connection, device: Device) -> str | None:
    """The first interface with a VLAN left; "" for a device without registered interfaces."""
    if not device.interfaces:
        return ""
    wired = _wired(conn, device)
    for interface in device.interfaces:
        if interface.max_vlans < 0 or wired.get(interface.name, 0) < interface.max_vlans:
            return interface.name
    return None
