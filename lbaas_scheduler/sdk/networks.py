"""Where VIPs get their addresses from: the interface to whatever keeps networks.

Registered under ``lbaas_scheduler.network_connectors``, chosen by ``[DEFAULT] network_connector``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from lbaas_scheduler.domain.devices import Device

Wirings = Mapping[tuple[str, str], Mapping[str, Any]]
"""(VIP id, device id) → what ``Deployment.wiring`` says: how the device reaches the VIP's network."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is known of a VIP's place in its network before the VIP has a device.

    ``address`` "" = any; it is chosen by :meth:`NetworkConnector.bind`. ``port_id`` is what clients attach floating IPs to.
    ``details`` is the connector's own.
    """

    vip_id: str
    subnet_id: str
    network_id: str
    cidr: str
    port_id: str
    address: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


class NetworkConnector(ABC):
    """Gives VIPs addresses and takes them back.

    The order is :meth:`prepare` → :meth:`bind` for a VIP that found its device, :meth:`prepare` → :meth:`cancel` for one that did
    not, and :meth:`release` → :meth:`dispose` when a VIP goes. Called from several threads at once.

    Built as ``Connector(database, allocator, hold_seconds, pick)``: the server's database and resource allocator, for how long
    the latter may hold a value for a placement that is under way, and which of the free addresses are to be given.
    """

    @abstractmethod
    def prepare(self, context: Any, subnet_id: str, address: str | None, vip_id: str) -> Reservation:
        """Check what the VIP asks for. Outside of any transaction: may block, may use the network.

        :param context: the caller's ``oslo_context.context.RequestContext``. Only subnets that he may use exist for him.
        :param address: canonical text of an address; None = any free one.
        :raises SubnetNotFound: absent, or not the caller's.
        :raises InvalidIpForSubnet: the address does not lie in the subnet, or means something else there.
        :raises IpAddressInUse: it is taken, or is the gateway's.
        :raises Unavailable: whoever keeps the networks is away.
        """

    @abstractmethod
    def bind(self, conn: Any, reservation: Reservation) -> str:
        """Give the VIP its address, in the transaction that places it. SQL on ``conn`` (an ``sqlalchemy.engine.Connection``)
        only; may be called again for the same reservation, in a new transaction, after a rolled-back one.

        :returns: the address.
        :raises IpAddressInUse: somebody else was faster.
        :raises IpAddressGenerationFailure: no free address is left.
        """

    def confirm(self, reservation: Reservation) -> None:
        """The VIP is placed, and that is committed. Outside of any transaction. Make final what :meth:`prepare` did; repeatable.

        It may never be called, where a server dies: what became of the VIP is then to be found out from the database.
        """

    @abstractmethod
    def cancel(self, reservation: Reservation) -> None:
        """The VIP found no device. Outside of any transaction. Undo what :meth:`prepare` did; repeatable."""

    @abstractmethod
    def release(self, conn: Any, vip_id: str) -> None:
        """The VIP is gone: free its address, in the transaction that removes it. SQL on ``conn`` only; repeatable."""

    @abstractmethod
    def dispose(self, vip_id: str) -> None:
        """The VIP's removal is committed. Outside of any transaction. Undo what is left of :meth:`prepare`; repeatable."""

    # What follows may be left as it is by connectors whose devices reach every network by themselves.

    def wire(self, conn: Any, device: Device, network_ids: Collection[str]) -> bool:
        """A VIP is about to be placed on the device: see to it that the device can reach these networks, all or nothing.

        In the transaction that places or moves it, which has the device to itself; SQL on ``conn`` only, or what :meth:`settle`
        can undo. A network that the device reaches already is shared.

        :returns: False = the device cannot; another one is tried.
        """
        return True

    def unwire(self, conn: Any, device_id: str, network_ids: Collection[str]) -> None:
        """A VIP left the device, and with it perhaps the last one of these networks: free what nobody needs there any more.

        In the transaction that removes it, as :meth:`wire`. Networks that others on the device use stay. Repeatable.
        """

    def settle(self) -> None:
        """A transaction with :meth:`wire` has ended, committed or not. Outside of any transaction; never raises; repeatable.

        It may never be called, where a server dies, and is not called after :meth:`unwire`.
        """

    def wirings(self, conn: Any, devices: Mapping[str, Device], vip_ids: Collection[str]) -> Wirings:
        """How each of the devices reaches the networks of each of the VIPs, as far as it is to: what drivers are told.

        A document of JSON's types. That of the local registry: ``network_id``; ``interface``: name of the device's interface;
        ``kind``: ``flat``, ``vlan`` or ``vxlan``, the interface's; ``segment``: the VLAN id by which the interface knows the
        network, None for a flat one; ``vni``: of a network of type vxlan; ``physical_network``; ``gateway_ip``: of the VIP's
        subnet, or None.
        """
        return {}

    def forget_device(self, device_id: str) -> None:
        """The device is removed from the registry; nothing was on it. Outside of any transaction; repeatable."""
