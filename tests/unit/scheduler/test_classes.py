"""Which classes of devices may take a request, and why the others may not."""

from __future__ import annotations

from typing import Any

import pytest

from lbaas_scheduler.domain.requests import Tenancy
from lbaas_scheduler.domain.statuses import Form
from lbaas_scheduler.scheduler.classes import resolve
from tests.factories import new_device, new_request
from tests.fakes import FleetInMemory


def resolution(request: Any, *devices: Any) -> Any:
    return resolve(FleetInMemory(devices).classes(), request)


@pytest.mark.parametrize(
    ("device", "request_", "code", "words"),
    [
        ({"device_type": "haproxy"}, {"device_types": frozenset({"envoy"})}, "device_type", "is of type haproxy; wanted: envoy"),
        ({"tenant_id": "other", "shared": False}, {}, "tenancy", "policy private_first"),
        ({"zone": "b"}, {"zone": "a"}, "zone", "is in zone 'b'; wanted: 'a'"),
        ({"form": Form.VIRTUAL}, {"form": Form.PHYSICAL}, "form", "is virtual; wanted: physical"),
        ({}, {"required": frozenset({"PROTOCOL_HTTPS", "MONITOR_PING"})}, "trait.MONITOR_PING", "MONITOR_PING, PROTOCOL_HTTPS"),
        ({"traits": frozenset({"CUSTOM_OLD"})}, {"forbidden": frozenset({"CUSTOM_OLD"})}, "trait.CUSTOM_OLD", "forbidden"),
    ],
)
def test_a_class_that_may_not_take_the_request_is_dropped_with_a_reason(device, request_, code, words):
    found = resolution(new_request(**request_), new_device(**device))
    assert found.tiers == ()
    assert found.dropped[1][0] == code
    assert words in found.dropped[1][1]


def test_a_class_of_another_service_is_not_even_mentioned():
    found = resolution(new_request(), new_device(service="Firewall"))
    assert (found.tiers, found.dropped) == ((), {})


OWN = {"tenant_id": "tenant", "shared": False}
SHARED = {"zone": "elsewhere"}
FOREIGN = {"tenant_id": "other", "shared": False}
LENT = {"tenant_id": "other", "shared": True}


@pytest.mark.parametrize(
    ("tenancy", "tiers"),
    [
        (Tenancy.PRIVATE_FIRST, [{1}, {2, 4}]),
        (Tenancy.PRIVATE_ONLY, [{1}]),
        (Tenancy.SHARED_ONLY, [{2, 4}]),
    ],
)
def test_tenancy_decides_whose_devices_are_tried_in_which_order(tenancy, tiers):
    devices = [new_device(**fields) for fields in (OWN, SHARED, FOREIGN, LENT)]
    found = resolution(new_request(tenancy=tenancy), *devices)
    assert [set(tier) for tier in found.tiers] == tiers


def test_the_version_is_the_highest_id_among_all_classes():
    assert resolution(new_request(), new_device(service="Firewall"), new_device()).version == 2
