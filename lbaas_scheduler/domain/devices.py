"""A load-balancer device, as the scheduler, its handlers and its agents see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lbaas_scheduler.domain.capacity import Capacity, Usage
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus, Form

FLAT, VLAN, VXLAN = "flat", "vlan", "vxlan"
"""Kinds of interfaces."""


@dataclass(frozen=True, slots=True)
class Management:
    """How to reach a device's management interface.

    ``secret`` holds whatever must not be shown (the password, keys, tokens) and is left out of ``repr``.
    """

    address: str = ""
    port: int | None = None
    user: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The vendor's own, not secret."""
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface of a device. ``max_vlans`` = how many networks it carries at once; −1 = unlimited.

    ``kind``: how it tells networks apart: ``flat``: it does not; ``vlan``: by VLAN ids, a network of type vlan by its own and any
    other by one of ``vlans`` ("100-199, 300-399"; "" = all); ``vxlan``: it carries VXLANs, and knows each by one of ``vlans``.
    """

    name: str
    max_vlans: int = -1
    physical_network: str = ""
    kind: str = FLAT
    vlans: str = ""

    @property
    def tagged(self) -> bool:
        """Whether each of its networks needs a VLAN id."""
        return self.kind != FLAT


@dataclass(frozen=True, slots=True)
class Device:
    """One device of the fleet.

    ``tenant_id`` None = the operator's. A private device (``shared`` false, with a tenant) serves only that tenant.
    ``extra`` is the vendor's own and was validated by the vendor's handler.
    """

    id: str
    name: str
    service: str
    device_type: str
    description: str = ""
    form: Form = Form.VIRTUAL
    tenant_id: str | None = None
    shared: bool = True
    zone: str = ""
    admin_state: AdminState = AdminState.ENABLED
    status: DeviceStatus = DeviceStatus.ONLINE
    status_description: str = ""
    management: Management = field(default_factory=Management)
    traits: frozenset[str] = frozenset()
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    interfaces: tuple[Interface, ...] = ()
    agent_host: str | None = None
    """Pins the device to the agent on this host; None = any agent that drives its type."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that SQL let through, with what the decision needs to know of it."""

    device: Device
    usage: Mapping[str, Usage] = field(default_factory=dict)
    agent_host: str = ""
    networks: frozenset[str] = frozenset()
    """Those of the request's networks that are wired to the device already."""
    hosts_tenant: bool = False
    load: int = 0
    """Fill of the fullest standard resource class, in 1/10,000."""
    weight: float = 50.0
    """How well it suits in the words of its handler, 0..100; set before an algorithm ranks."""
    seq: int = 0
    """Grows with registration."""
    connections: int | None = None
    """Open connections as last reported; None = unknown, out of date, or not asked for."""
