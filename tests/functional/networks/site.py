"""The fleet's lab, with words for networks and segments."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.allocator.core.requests import Grant, Selector
from lbaas_scheduler.db.models import device_networks
from tests.functional.fleet.lab import ADMIN, TENANT, Body, Lab


class Site(Lab):
    """``vips`` of one network each; what devices serve, and are told of it, is in ``agents.served``."""

    def add(self, name: str, *interfaces: Body, **attributes: Any) -> str:
        """A device with these interfaces."""
        if not hasattr(self, "ids"):
            self.furnish()
        return self.add_device(name, interfaces=list(interfaces), **attributes)

    def network(self, cidr: str = "10.9.0.0/24", **attributes: Any) -> str:
        """A network with a subnet. :returns: the subnet's id."""
        networks = self.plant.parts.networks
        network = networks.create_network(ADMIN, {"name": "n", "shared": True, **attributes})
        return str(networks.create_subnet(ADMIN, {"network_id": network["id"], "cidr": cidr})["id"])

    def vip_in(self, subnet_id: str, **attributes: Any) -> str:
        return self.vip(subnet_id=subnet_id, **attributes)

    def delete(self, vip_id: str) -> None:
        self.balancers.delete_vip(TENANT, vip_id)
        self.agents.work()

    def wiring(self, vip_id: str, device: str) -> Body:
        """What the device's driver was told last."""
        return dict(self.agents.served[self.ids[device]][vip_id].wiring)

    def segments(self, device: str, interface: str = "eth1") -> list[Grant]:
        return self.plant.parts.allocator.list(Selector("vlan", f"{self.ids[device]}/{interface}"))

    def wired(self) -> int:
        """How many rows say that a device has a network."""
        return len(self.database.read(lambda conn: conn.execute(device_networks.select()).all()))


def vlan(name: str = "eth1", **attributes: Any) -> Body:
    return {"name": name, "kind": "vlan", **attributes}


def vxlan(name: str = "eth1", **attributes: Any) -> Body:
    return {"name": name, "kind": "vxlan", **attributes}
