"""The allocator's pools behind the subnets of the local registry: one for each subnet, under its id."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.allocator.kinds.address import NOTHING
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.errors import Conflict, InvalidRequest, NotDefined, PoolBusy, SubnetInUse
from lbaas_scheduler.networks.rules import Subnet

LOG = logging.getLogger(__name__)

ACTOR = "networks"

VIP = "vip"
"""Owner type of what a VIP has."""


def pool_of(subnet_id: str) -> Selector:
    return Selector("address", subnet_id)


def request(subnet_id: str, vip_id: str, address: str) -> Request:
    """:param address: "" = any."""
    pool = pool_of(subnet_id)
    return Request(pool.kind, Owner(VIP, vip_id), pool.name, pool.scope, value=address or None)


@dataclass(frozen=True, slots=True)
class AddressPools:
    """Every method works on the allocator that it is given: inside of the transaction that changes the subnet, if that can be.

    Addresses are unique in their network. Those of the subnet's allocation pools are given to anybody, all others to those who
    ask for them.

    :ivar pick: which of the free addresses is given: one of the allocator's words for ``pick``.
    """

    pick: str = "lowest"

    def define(self, allocator: ResourceAllocator, subnet: Subnet, taken: Mapping[str, str]) -> None:
        """Repeatable.

        :param taken: VIP → its address: those that were there before the pool was, which keep what they have.
        """
        allocator.define(pool_of(subnet.id), self._config(subnet), ACTOR)
        for vip_id, address in taken.items():
            try:
                allocator.allocate(request(subnet.id, vip_id, address), actor=ACTOR)
            except (Conflict, InvalidRequest) as error:
                LOG.error("VIP %s has %s of subnet %s, and cannot keep it: %s", vip_id, address, subnet.id, error.message)

    def resize(self, allocator: ResourceAllocator, subnet: Subnet, taken: Mapping[str, str]) -> None:
        """Addresses that are taken stay taken, wherever they lie."""
        try:
            allocator.redefine(pool_of(subnet.id), self._config(subnet), actor=ACTOR)
        except NotDefined:
            self.define(allocator, subnet, taken)

    def undefine(self, allocator: ResourceAllocator, subnet_id: str) -> None:
        """Repeatable.

        :raises SubnetInUse: somebody has an address of it.
        """
        try:
            allocator.undefine(pool_of(subnet_id), actor=ACTOR)
        except NotDefined:
            return
        except PoolBusy as error:
            raise SubnetInUse(subnet_id=subnet_id, users=f"{error.details['count']} allocated address(es)") from error

    def _config(self, subnet: Subnet) -> dict[str, Any]:
        kind = IPv4Address if subnet.cidr.version == 4 else IPv6Address
        config = {
            "cidr": str(subnet.cidr),
            "gateway": "" if subnet.gateway is None else str(subnet.gateway),
            "automatic": ", ".join(f"{kind(first)}-{kind(last)}" for first, last in subnet.pools) or NOTHING,
            "address_scope": subnet.network_id,
            "pick": self.pick,
        }
        if subnet.cidr.prefixlen == subnet.cidr.max_prefixlen:
            # The allocator knows no network of one address, but a range of one.
            address = str(subnet.cidr.network_address)
            config |= {"cidr": str(subnet.cidr.supernet()), "ranges": f"{address}-{address}"}
        return config
