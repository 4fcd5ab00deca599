"""What the scheduler is told of Envoy devices."""

from __future__ import annotations

from typing import Any

import pytest
from oslo_config import cfg

from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.loadbalancers import MonitorType
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.sdk.conformance.documents import monitor, vip
from lbaas_scheduler.vendors.envoy.handler import EnvoyHandler

DEVICE = Candidate(Device("d", "lab", "LoadBalancer", "envoy"))


@pytest.fixture
def handler() -> EnvoyHandler:
    return EnvoyHandler(cfg.ConfigOpts())


def ask(handler: EnvoyHandler, **changes: Any) -> Verdict:
    document = vip(port=80, monitors=(monitor(MonitorType.HTTP, **changes),))
    return handler.is_good(DEVICE, ScheduleRequest(document.id, "LoadBalancer", "t", resource=document))


def test_what_envoy_cannot_do_is_missing_from_its_traits(handler: EnvoyHandler) -> None:
    assert {"MONITOR_PING", "PERSISTENCE_APP_COOKIE", "OVERLAPPING_IPS"}.isdisjoint(handler.traits)
    assert {"MONITOR_SEVERAL", "CONNECTION_LIMIT", "PERSISTENCE_HTTP_COOKIE", "ADDRESS_IPV6"} <= handler.traits


def test_a_monitor_with_a_method_that_envoy_does_not_know_goes_elsewhere(handler: EnvoyHandler) -> None:
    assert ask(handler, http_method="HEAD").ok
    verdict = ask(handler, http_method="PROPFIND")
    assert not verdict.ok
    assert "http_method" in verdict.reason


def test_a_resource_of_another_service_is_none_of_its_business(handler: EnvoyHandler) -> None:
    assert handler.is_good(DEVICE, ScheduleRequest("r", "Firewall", "t", resource=object())).ok
