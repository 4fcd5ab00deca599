"""The allocator's pools behind the subnets of the local registry: one for each subnet, under its id."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from lbaas_scheduler.allocator.core.requests import Selector
from lbaas_scheduler.allocator.kinds.address import NOTHING
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.errors import NotDefined, PoolBusy, SubnetInUse
from lbaas_scheduler.networks.rules import Subnet

ACTOR = "networks"


def pool_of(subnet_id: str) -> Selector:
    return Selector("address", subnet_id)


@dataclass(frozen=True, slots=True)
class AddressPools:
    """Every method works on the allocator that it is given: inside of the transaction that changes the subnet, if that can be.

    Addresses are unique in their network. Those of the subnet's allocation pools are given to anybody, all others to those who
    ask for them.

    :ivar pick: which of the free addresses is given: one of the allocator's words for ``pick``.
    """

    pick: str = "lowest"

    def define(self, allocator: ResourceAllocator, subnet: Subnet) -> None:
        """Repeatable."""
        allocator.define(pool_of(subnet.id), self._config(subnet), ACTOR)

    def resize(self, allocator: ResourceAllocator, subnet: Subnet) -> None:
        """Addresses that are taken stay taken, wherever they lie."""
        try:
            allocator.redefine(pool_of(subnet.id), self._config(subnet), actor=ACTOR)
        except NotDefined:
            self.define(allocator, subnet)

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
