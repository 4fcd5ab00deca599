"""Where VIPs get their addresses from: the interface to whatever keeps networks.

Registered under ``lbaas_scheduler.network_connectors``, chosen by ``[DEFAULT] network_connector``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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

    @abstractmethod
    def cancel(self, reservation: Reservation) -> None:
        """The VIP found no device. Outside of any transaction. Undo what :meth:`prepare` did; repeatable."""

    @abstractmethod
    def release(self, conn: Any, vip_id: str) -> None:
        """The VIP is gone: free its address, in the transaction that removes it. SQL on ``conn`` only; repeatable."""

    @abstractmethod
    def dispose(self, vip_id: str) -> None:
        """The VIP's removal is committed. Outside of any transaction. Undo what is left of :meth:`prepare`; repeatable."""
