"""What a VIP needs of a device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbaas_scheduler.domain.loadbalancers import (
    HealthMonitor,
    Method,
    MonitorType,
    Persistence,
    Pool,
    Protocol,
    SessionPersistence,
    Vip,
)
from lbaas_scheduler.domain.requests import Tenancy
from lbaas_scheduler.scheduler.services import LoadBalancerService

POOL = Pool("pool", Protocol.HTTP, Method.ROUND_ROBIN)
VIP = Vip("vip", "tenant", "10.0.0.9", 80, Protocol.HTTP, POOL, network_id="net")
PLAIN = frozenset({"PROTOCOL_HTTP", "METHOD_ROUND_ROBIN", "ADDRESS_IPV4"})


def monitor(kind: MonitorType, up: bool = True) -> HealthMonitor:
    return HealthMonitor(f"monitor-{kind}", kind, 5, 3, 2, admin_state_up=up)


def with_monitors(*monitors: HealthMonitor) -> Vip:
    return replace(VIP, pool=replace(POOL, health_monitors=monitors))


@pytest.mark.parametrize(
    ("vip", "traits"),
    [
        (VIP, PLAIN),
        (replace(VIP, protocol=Protocol.HTTPS), PLAIN - {"PROTOCOL_HTTP"} | {"PROTOCOL_HTTPS"}),
        (replace(VIP, pool=replace(POOL, lb_method=Method.SOURCE_IP)), PLAIN - {"METHOD_ROUND_ROBIN"} | {"METHOD_SOURCE_IP"}),
        (replace(VIP, session_persistence=SessionPersistence(Persistence.HTTP_COOKIE)), PLAIN | {"PERSISTENCE_HTTP_COOKIE"}),
        (replace(VIP, connection_limit=0), PLAIN | {"CONNECTION_LIMIT"}),
        (replace(VIP, address="", subnet_cidr="2001:db8::/64"), PLAIN - {"ADDRESS_IPV4"} | {"ADDRESS_IPV6"}),
        (replace(VIP, address="2001:db8::1"), PLAIN - {"ADDRESS_IPV4"} | {"ADDRESS_IPV6"}),
        (with_monitors(monitor(MonitorType.PING)), PLAIN | {"MONITOR_PING"}),
        (with_monitors(monitor(MonitorType.PING, up=False)), PLAIN),
        (
            with_monitors(monitor(MonitorType.PING), monitor(MonitorType.TCP)),
            PLAIN | {"MONITOR_PING", "MONITOR_TCP", "MONITOR_SEVERAL"},
        ),
    ],
)
def test_every_feature_that_a_vip_uses_is_a_trait_that_its_device_must_have(vip, traits):
    assert LoadBalancerService().needs(vip).traits == traits


@pytest.mark.parametrize(("limit", "demand"), [(-1, {"VIPS": 1}), (0, {"VIPS": 1}), (500, {"VIPS": 1, "CONNECTIONS": 500})])
def test_a_connection_limit_is_a_demand(limit, demand):
    assert LoadBalancerService().needs(replace(VIP, connection_limit=limit)).demand == demand


def test_wishes_of_a_service_type_join_what_the_vip_needs():
    request = LoadBalancerService().request_for(
        VIP,
        resource_id="vip",
        tenant_id="tenant",
        device_types=frozenset({"haproxy"}),
        service_type_id="gold",
        required=frozenset({"CUSTOM_SSD"}),
        tenancy=Tenancy.SHARED_ONLY,
    )
    assert request.required == PLAIN | {"CUSTOM_SSD"}
    assert (request.service, request.networks, request.demand) == ("LoadBalancer", ("net",), {"VIPS": 1})
    assert (request.tenancy, request.service_type_id, request.resource) == (Tenancy.SHARED_ONLY, "gold", VIP)
