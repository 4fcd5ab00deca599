"""Services: how a resource's needs follow from the resource.

The framework knows nothing of load balancers. What a VIP, a firewall or whatever else needs of a device is said by its
:class:`Service`, found under ``lbaas_scheduler.services``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from lbaas_scheduler.domain import capacity, traits
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.domain.requests import ScheduleRequest


@dataclass(frozen=True, slots=True)
class Needs:
    """What one resource needs: traits that its device must have, amounts per resource class, networks to be wired."""

    traits: frozenset[str]
    demand: Mapping[str, int] = field(default_factory=dict)
    networks: tuple[str, ...] = ()


class Service(ABC):
    """One service. Built without arguments; stateless."""

    name: str

    @abstractmethod
    def needs(self, resource: Any) -> Needs:
        """What ``resource`` needs of a device. Pure."""

    def request_for(
        self,
        resource: Any,
        *,
        resource_id: str,
        tenant_id: str,
        device_types: frozenset[str] = frozenset(),
        service_type_id: str = "",
        **wishes: Any,
    ) -> ScheduleRequest:
        """The request that places ``resource``.

        :param device_types: what the service type's definition says; empty = every type of the service that can do it.
        :param wishes: further fields of :class:`~lbaas_scheduler.domain.requests.ScheduleRequest`.
        """
        needs = self.needs(resource)
        return ScheduleRequest(
            resource_id=resource_id,
            service=self.name,
            tenant_id=tenant_id,
            device_types=device_types,
            service_type_id=service_type_id,
            required=needs.traits | wishes.pop("required", frozenset()),
            demand=needs.demand,
            networks=needs.networks,
            resource=resource,
            **wishes,
        )


class LoadBalancerService(Service):
    """A VIP with its pool, members and health monitors (:class:`~lbaas_scheduler.domain.loadbalancers.Vip`)."""

    name = "LoadBalancer"

    def needs(self, resource: Vip) -> Needs:
        """One of VIPS; CONNECTIONS where a limit is set; a trait per feature that is used.

        An unset address counts as IPv4 or IPv6 by the VIP's subnet.
        """
        demand = {capacity.VIPS: 1}
        if resource.connection_limit > 0:
            demand[capacity.CONNECTIONS] = resource.connection_limit
        networks = (resource.network_id,) if resource.network_id else ()
        return Needs(_vip_traits(resource), demand, networks)


def _vip_traits(vip: Vip) -> frozenset[str]:
    needed = {
        f"PROTOCOL_{vip.protocol}",
        f"METHOD_{vip.pool.lb_method}",
        traits.ADDRESS_IPV6 if _is_ipv6(vip) else traits.ADDRESS_IPV4,
    }
    if vip.session_persistence is not None:
        needed.add(f"PERSISTENCE_{vip.session_persistence.type}")
    if vip.connection_limit >= 0:
        needed.add(traits.CONNECTION_LIMIT)
    monitors = [monitor for monitor in vip.pool.health_monitors if monitor.admin_state_up]
    needed.update(f"MONITOR_{monitor.type}" for monitor in monitors)
    if len(monitors) > 1:
        needed.add(traits.MONITOR_SEVERAL)
    return frozenset(needed)


def _is_ipv6(vip: Vip) -> bool:
    address = vip.address or vip.subnet_cidr.partition("/")[0]
    return bool(address) and ip_address(address).version == 6
