"""Tenants' own devices: what ``[devices]`` lets tenants register, and whose a device is.

A tenant's own device is private to him, of a type that tenants may register, and its management address lies in a network that
they may use. So a device that the operator dedicated to a tenant stays the operator's, and does not exist for the tenant.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from lbaas_scheduler.devices import schema
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import DeviceNotFound, InvalidRequest, NotAuthorized

Attributes = Mapping[str, Any]

TENANTS_OWN = (
    *("device_type", "service", "tenant_id", "shared", "name", "description", "form", "zone", "admin_state"),
    *("management", "capabilities", "capacity"),
)
"""Attributes that a tenant may set. The others reach into the operator's networks and agents, or are the vendor's own."""

_REACHED_BY = ("address", "port", "user")


class TenantDevices:
    """:param conf: its group ``devices`` is read anew each time."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def accept(self, tenant_id: str | None, attributes: Any) -> dict[str, Any]:
        """Attributes of a new device, made the tenant's.

        :raises NotAuthorized: he may not have such a device; says what he may have.
        :raises InvalidRequest: an attribute is wrong, or it would be another tenant's.
        """
        schema.check_new(attributes)
        _check_operators_own(attributes)
        if not tenant_id:
            raise InvalidRequest(reason="the request belongs to no tenant, and only administrators register devices for others")
        if attributes.get("tenant_id") not in (None, tenant_id):
            raise InvalidRequest(reason="only an administrator may register a device for another tenant", attribute="tenant_id")
        if attributes["device_type"] not in self._types:
            raise NotAuthorized(
                reason=f"tenants may register no devices of type {attributes['device_type']!r}; "
                f"types that they may: {', '.join(self._types) or 'none'}"
            )
        self._check_management(attributes.get("management"))
        return {**attributes, "tenant_id": tenant_id, "shared": False}

    def check_changes(self, changes: Any) -> None:
        """:raises NotAuthorized: only an administrator may change that, or lead the device there.
        :raises InvalidRequest: an attribute is wrong."""
        schema.check_changes(changes)
        _check_operators_own(changes)
        if "management" in changes:
            # An address that is not named stays, and is one that he may use: else the device would not be his own.
            self._check_management(changes["management"], address_stays=True)

    def owns(self, tenant_id: str | None, device: Device) -> bool:
        return (
            bool(tenant_id)
            and device.tenant_id == tenant_id
            and not device.shared
            and device.device_type in self._types
            and self._is_allowed(device.management.address)
        )

    def check_owner(self, tenant_id: str | None, device: Device) -> None:
        """:raises DeviceNotFound: it is not the tenant's own, which is to say that it does not exist for him."""
        if not self.owns(tenant_id, device):
            raise DeviceNotFound(id=device.id)

    def _check_management(self, management: Attributes | None, address_stays: bool = False) -> None:
        if not (address_stays and management is not None and "address" not in management):
            self._check_address((management or {}).get("address", ""))
        # The vendor's own parameters may hold addresses that nobody here can tell from other texts.
        unknown = [name for name in management or {} if name not in _REACHED_BY and not schema.SECRET_KEY.fullmatch(name)]
        if unknown:
            raise NotAuthorized(
                reason=f"only an administrator may set management.{unknown[0]}; tenants set {', '.join(_REACHED_BY)} and secrets"
            )

    def _check_address(self, address: Any) -> None:
        allowed = ", ".join(self._conf.devices.tenant_management_networks) or "none"
        if _address(address) is None:
            raise InvalidRequest(
                reason="management.address of a tenant's device must be given as an IPv4 or IPv6 address; names are not "
                f"looked up; networks that tenants may use: {allowed}",
                attribute="management",
            )
        if not self._is_allowed(address):
            raise NotAuthorized(reason=f"management.address lies in no network that tenants may use; these are: {allowed}")

    def _is_allowed(self, text: str) -> bool:
        address = _address(text)
        networks = map(ipaddress.ip_network, self._conf.devices.tenant_management_networks)
        return address is not None and any(address in network for network in networks)

    @property
    def _types(self) -> list[str]:
        return sorted(self._conf.devices.tenant_device_types)


def seen(document: dict[str, Any]) -> dict[str, Any]:
    """What its tenant sees of a device: agents are the operator's, but whether there is one is the tenant's business."""
    agent = document["agent"]
    return {**document, "agent_host": None, "agent": agent and {"alive": agent["alive"]}}


def _check_operators_own(attributes: Attributes) -> None:
    given = [name for name in attributes if name not in TENANTS_OWN]
    if given or attributes.get("shared"):
        raise NotAuthorized(reason=f"only an administrator may set {', '.join(given) or 'shared to true'} of a device")


def _address(text: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None: no address, or one that hides another: where a scope or a mapped address leads, no network says."""
    try:
        address = ipaddress.ip_address(text) if isinstance(text, str) else None
    except ValueError:
        return None
    hides = isinstance(address, ipaddress.IPv6Address) and (address.scope_id is not None or address.ipv4_mapped is not None)
    return None if hides else address
