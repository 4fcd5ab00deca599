from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from lbaas_scheduler.domain.capacity import Capacity
from lbaas_scheduler.domain.deployments import Deployment, MemberHealth, Result, Version, VipStats
from lbaas_scheduler.domain.devices import Device, Interface, Management
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
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.rpc.codec import decode_device, encode_device, from_document, to_document
from tests.agent_side import deployment

DEVICE = Device(
    "d1",
    "名字 \"'\n",
    "LoadBalancer",
    "haproxy",
    management=Management("10.0.0.9", 8443, "admin", {"verify": True}, {"password": "s3cret"}),
    traits=frozenset({"CUSTOM_B", "CUSTOM_A"}),
    capacities={"VIPS": Capacity(10, 1, 1.5)},
    interfaces=(Interface("eth1", 4, "physnet1"),),
    extra={"nested": {"list": [1, 2.5, None]}},
)
FULL = Deployment(
    Vip(
        "v1",
        "t1",
        "2001:db8::1",
        443,
        Protocol.HTTPS,
        Pool("p1", Protocol.HTTPS, Method.SOURCE_IP, health_monitors=(HealthMonitor("h1", MonitorType.HTTP, 5, 3, 2),)),
        connection_limit=5,
        session_persistence=SessionPersistence(Persistence.APP_COOKIE, "JSESSIONID"),
    ),
    Version(2, 7),
    {"vlan": 100, "gateway": None},
)


def over_json(document):
    return json.loads(json.dumps(document))


@pytest.mark.parametrize(
    "value",
    [
        FULL,
        deployment("v1", members=3),
        Result("v1", Version(1, 2), error="no", object_errors={"m1": "down"}, removed=True),
        VipStats(2**40, 1, 2, 3, {"m1": MemberHealth(None), "m2": MemberHealth(False, 3, "L4CON")}),
        replace(DEVICE, management=replace(DEVICE.management, secret={})),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_comes_back_equal_and_of_its_own_types(value):
    back = from_document(type(value), over_json(to_document(value)))
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, Device)  # a frozenset's order is free


def test_a_secret_never_travels_in_the_open():
    assert "s3cret" not in json.dumps(to_document(DEVICE))
    assert "s3cret" not in json.dumps(encode_device(DEVICE, "token"))


def test_a_device_travels_with_its_sealed_secret():
    device, token = decode_device(over_json(encode_device(DEVICE, "gAAAA-token")))
    assert token == "gAAAA-token"
    assert device == replace(DEVICE, management=replace(DEVICE.management, secret={}))


def test_a_device_without_a_secret_has_an_empty_token():
    assert decode_device(over_json(encode_device(DEVICE, "")))[1] == ""


def test_a_reader_ignores_what_it_does_not_know_and_fills_in_defaults():
    newer = {"vip_id": "v1", "version": [1, 1], "colour": "blue"}
    assert from_document(Result, newer) == Result("v1", Version(1, 1))


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"version": [1, 1]}, "Result.vip_id is missing"),
        ({"vip_id": 7, "version": [1, 1]}, "Result.vip_id must be a string"),
        ({"vip_id": "v", "version": [1]}, "Result.version must be a list of 2"),
        ({"vip_id": "v", "version": [1, "x"]}, "Result.version must be an integer"),
        ({"vip_id": "v", "version": [1, True]}, "Result.version must be an integer"),
        ({"vip_id": "v", "version": [1, 1], "object_errors": []}, "Result.object_errors must be an object"),
        ({"vip_id": "v", "version": [1, 1], "removed": 1}, "Result.removed must be true or false"),
        ("text", "Result must be an object"),
    ],
)
def test_a_broken_document_is_refused_and_the_place_is_named(document, place):
    with pytest.raises(InvalidRequest, match=place.replace(".", r"\.")):
        from_document(Result, document)


def test_an_unknown_member_of_an_enum_is_refused_with_the_known_ones():
    document = to_document(FULL)
    document["vip"]["protocol"] = "UDP"
    with pytest.raises(InvalidRequest, match=r"Deployment\.vip\.protocol must be one of TCP, HTTP, HTTPS"):
        from_document(Deployment, document)


@pytest.mark.parametrize("document", [None, [], {}, {"management": None}, {"management": {"secret": 7}}])
def test_a_broken_device_is_refused(document):
    with pytest.raises(InvalidRequest):
        decode_device(document)


def test_what_has_no_place_on_the_bus_is_a_fault_of_ours():
    with pytest.raises(TypeError, match="bytes"):
        to_document({"key": b"raw"})


def test_ten_thousand_members_take_less_than_two_megabytes_and_two_seconds():
    big = deployment("v1", members=10_000)
    began = time.monotonic()
    text = json.dumps(to_document(big))
    assert from_document(Deployment, json.loads(text)) == big
    assert time.monotonic() - began < 2.0
    assert len(text) < 2_000_000


def test_what_a_newer_release_appended_to_a_list_of_fixed_length_is_left_out():
    assert from_document(Version, [1, 2, 3]) == Version(1, 2)
