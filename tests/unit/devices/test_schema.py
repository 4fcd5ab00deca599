"""What a device's attributes may look like, and what is said of those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from lbaas_scheduler.devices import attributes, schema
from lbaas_scheduler.devices.attributes import DeviceType
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import InvalidRequest

KIND = DeviceType("LoadBalancer", "fake", frozenset({"PROTOCOL_TCP", "PROTOCOL_HTTP"}))
SECRET = "s3cret-value"


def build(**given: Any) -> Device:
    whole = {"device_type": "fake", **given}
    schema.check_new(whole)
    return attributes.new_device("id", whole, KIND)


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": 1}, "device: unknown attribute 'colour'; known are admin_state, agent_host,"),
        ({"device_type": None}, "device_type must be a string of 1 to 64 characters."),
        ({"device_type": ""}, "device_type must be a string of 1 to 64 characters."),
        ({"name": "x" * 256}, "name must be a string of at most 255 characters"),
        ({"form": "cloud"}, "form must be one of physical, virtual."),
        ({"admin_state": "up"}, "admin_state must be one of enabled, draining, disabled."),
        ({"shared": "yes"}, "shared must be true or false."),
        ({"shared": False}, "A device that is not shared belongs to a tenant: give its tenant_id, or set shared to true."),
        *(({"tenant_id": wrong}, "tenant_id must be a tenant's id (1 to 255 ASCII") for wrong in ("", "a b", "a\n", "\x1b", "é")),
        ({"agent_host": "a-line\n"}, "agent_host must be the host name that an agent reports, without spaces, or null."),
        ({"agent_host": "two words"}, "agent_host must be the host name that an agent reports, without spaces, or null."),
        ({"management": []}, "management must be an object {address, port, user, password, and the vendor's own}, or null."),
        ({"management": {"port": 0}}, "management.port must be an integer from 1 to 65535, or null."),
        ({"management": {"port": True}}, "management.port must be an integer from 1 to 65535, or null."),
        ({"management": {"port": "443"}}, "management.port must be an integer from 1 to 65535, or null."),
        ({"management": {"a b": 1}}, "management: every key must be named with letters, digits, '_', '.' and '-'."),
        ({"management": {"x": {}}}, "management.x must be a string, number, true, false, null or a list of these."),
        ({"management": {"secret_set": True}}, "management.secret_set is read-only; leave it out."),
        ({"management": {"password": 7}}, "management.password must be a string (it is kept as a secret), or null to remove it."),
        ({"management": {"API_Token": [SECRET]}}, "management.API_Token must be a string (it is kept as a secret), or null"),
        ({"capabilities": "PROTOCOL_TCP"}, "capabilities must be a list of traits, or null for all that the device type has."),
        (
            {"capabilities": ["PROTOCOL_HTTPS"]},
            "device type 'fake' does not have 'PROTOCOL_HTTPS'; it has PROTOCOL_HTTP, PROTOCOL_TCP",
        ),
        ({"capabilities": ["fast"]}, "does not have 'fast'"),
        ({"capacity": {"vips": 1}}, "capacity: every key must be named in capitals, digits and '_'."),
        ({"capacity": {"FOO": 1}}, "unknown resource class 'FOO'; known are VIPS, CONNECTIONS, ADDRESSES, BANDWIDTH_MBPS"),
        ({"capacity": {"VIPS": -2}}, "capacity.VIPS must be a total (an integer, -1 = unlimited), an object"),
        ({"capacity": {"VIPS": 10**13}}, "capacity.VIPS must be a total"),
        ({"capacity": {"VIPS": {}}}, "capacity.VIPS: total is missing."),
        ({"capacity": {"VIPS": {"total": 1, "used": 1}}}, "capacity.VIPS: unknown attribute 'used'; known are allocation_ratio,"),
        ({"capacity": {"VIPS": {"total": 1, "reserved": 2}}}, "capacity.VIPS.reserved must not be more than the total."),
        ({"capacity": {"VIPS": {"total": -1, "reserved": 2}}}, "nothing can be reserved of an unlimited total."),
        ({"capacity": {"VIPS": {"total": 1, "allocation_ratio": 0}}}, "allocation_ratio must be a number above 0 and up to 100."),
        ({"interfaces": [{}]}, "interfaces.0: name is missing."),
        ({"interfaces": [{"name": "a", "max_vlans": 4095}]}, "max_vlans must be an integer from 0 to 4094, or -1 for unlimited."),
        ({"interfaces": [{"name": "a"}, {"name": "a"}]}, "interfaces: every interface must have a name of its own."),
        ({"extra": {"tls": [{"private_key": SECRET}]}}, "extra.tls.private_key looks like a secret, and extra is not encrypted"),
        ({"extra": {"a": ["\x00"]}}, "extra.a must not contain NUL characters or lone surrogates."),
        ({"extra": nested(8)}, "must not be nested more than 16 deep."),
        ({"extra": nested(450)}, "must not be nested more than 16 deep."),
        ({"extra": {"a": [1, float("inf")]}}, "extra.a must not contain infinite numbers."),
        ({"management": {"weight": float("nan")}}, "management.weight must not contain infinite numbers."),
        ({"zone": "\ud800"}, "zone must be a string of at most 255 characters without NUL"),
        ({"status": "ONLINE"}, "status of a device is read-only."),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        build(**given)
    assert message in refused.value.message


def test_what_a_vendor_needs_may_be_nested_within_reason() -> None:
    assert build(extra=nested(7)).extra == nested(7)


@pytest.mark.parametrize("given", [None, [], "x", 7])
def test_attributes_must_be_an_object(given: Any) -> None:
    for check in (schema.check_new, schema.check_changes):
        with pytest.raises(InvalidRequest, match="device must be an object"):
            check(given)


@pytest.mark.parametrize(
    "management",
    [
        {"password": {"a": SECRET}},
        {"password": SECRET, "port": SECRET},
        {"password": SECRET, "user": [SECRET]},
        {"password": [SECRET]},
        {"password": SECRET * 10_000},
        {"password": f"{SECRET}\x00"},
        SECRET,
    ],
)
def test_an_error_never_repeats_a_value(management: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        build(management=management)
    assert SECRET not in f"{refused.value} {refused.value.kwargs}"


@pytest.mark.parametrize(
    "key", ["password", "enable_password", "Passwd", "passphrase", "secret", "client-secret", "apiToken", "key", "ssh_KEY"]
)
def test_keys_that_end_in_a_secrets_name_are_secrets(key: str) -> None:
    management = build(management={"address": "a", key: SECRET}).management
    assert dict(management.secret) == {key: SECRET}
    assert SECRET not in repr(management)
    assert management.parameters == {}


@pytest.mark.parametrize("key", ["keyboard", "secretary", "partition", "token_url", "passwords_max"])
def test_other_keys_are_the_vendors_parameters(key: str) -> None:
    management = build(management={key: "x"}).management
    assert (dict(management.parameters), dict(management.secret)) == ({key: "x"}, {})


def test_names_may_be_what_people_write() -> None:
    name = "Lüttich \"'; DROP TABLE devices;--\n负载均衡器 🦊"
    assert build(name=name).name == name


def test_a_device_is_described_without_its_secrets() -> None:
    device = build(management={"address": "a", "password": SECRET, "partition": "Common"})
    shown = attributes.describe(device, secret_set=True)
    assert SECRET not in str(shown)
    assert shown["management"] == {"address": "a", "port": None, "user": "", "partition": "Common", "secret_set": True}


def test_integers_that_came_as_floats_are_integers_again() -> None:
    device = build(management={"port": 443.0}, capacity={"VIPS": 7.0}, interfaces=[{"name": "a", "max_vlans": 3.0}])
    assert (repr(device.management.port), repr(device.capacities["VIPS"].total), repr(device.interfaces[0].max_vlans)) == (
        "443",
        "7",
        "3",
    )
