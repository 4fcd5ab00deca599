"""Which devices a tenant may have, and which are his."""

from __future__ import annotations

from typing import Any

import pytest
from oslo_config import cfg

from lbaas_scheduler.conf import devices as options
from lbaas_scheduler.devices.tenants import TenantDevices
from lbaas_scheduler.domain.devices import Device, Management
from lbaas_scheduler.errors import DeviceNotFound, InvalidRequest, NotAuthorized

NETWORKS = ["10.0.0.0/8", "2001:db8::/32"]


def tenants(types: list[str] | None = None, networks: list[str] | None = None) -> TenantDevices:
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[])
    conf.set_override("tenant_device_types", ["lb-virtual"] if types is None else types, "devices")
    conf.set_override("tenant_management_networks", NETWORKS if networks is None else networks, "devices")
    return TenantDevices(conf)


def asked(address: Any = "10.1.2.3", **attributes: Any) -> dict[str, Any]:
    return {"device_type": "lb-virtual", "management": {"address": address, "password": "x"}, **attributes}


def test_by_default_tenants_register_nothing():
    with pytest.raises(NotAuthorized, match="types that they may: none"):
        tenants(types=[]).accept("anne", asked())
    with pytest.raises(NotAuthorized, match="these are: none"):
        tenants(networks=[]).accept("anne", asked())


def test_a_tenants_device_is_his_and_private_whatever_he_leaves_out():
    made = tenants().accept("anne", asked(name="mine"))
    assert made == {**asked(name="mine"), "tenant_id": "anne", "shared": False}
    assert tenants().accept("anne", asked(tenant_id="anne", shared=False))["shared"] is False


@pytest.mark.parametrize("address", ["10.0.0.0", "10.255.255.255", "2001:db8::1", "2001:DB8:0:0::1"])
def test_addresses_inside_the_networks_are_taken(address: str):
    tenants().accept("anne", asked(address))


@pytest.mark.parametrize("address", ["11.0.0.1", "127.0.0.1", "169.254.169.254", "2001:db9::1", "::1", "0.0.0.0", "fe80::1"])  # noqa: S104
def test_addresses_outside_the_networks_are_refused_and_the_networks_named(address: str):
    with pytest.raises(NotAuthorized, match=r"these are: 10\.0\.0\.0/8, 2001:db8::/32"):
        tenants().accept("anne", asked(address))
    with pytest.raises(NotAuthorized):
        tenants().check_changes({"management": {"address": address}})


@pytest.mark.parametrize(
    "address",
    [
        *("localhost", "balancer.example.org", "", "10.0.0.1.nip.io", "10.0.0.1:80", "10.0.0.1/8", "010.0.0.1", "10.1"),
        *("0xa000001", "167772161", " 10.0.0.1", "10.0.0.1\n", "::ffff:10.0.0.1", "2001:db8::1%eth0", "[2001:db8::1]"),
    ],
)
def test_what_is_no_plain_address_is_refused_at_creation_and_at_every_change(address: str):
    for refused in (
        lambda: tenants().accept("anne", asked(address)),
        lambda: tenants().check_changes({"management": {"address": address}}),
    ):
        with pytest.raises(InvalidRequest, match=r"names are not looked up.*10\.0\.0\.0/8"):
            refused()


def test_a_change_that_leaves_the_address_alone_need_not_repeat_it():
    tenants().check_changes({"management": {"user": "root", "password": "x"}})
    for nothing in (None, {"address": None}):
        with pytest.raises(InvalidRequest, match=r"management\.address"):
            tenants().check_changes({"management": nothing})


@pytest.mark.parametrize("management", [None, {}, {"user": "root"}, {"password": "x"}])
def test_management_without_an_address_is_refused(management: Any):
    with pytest.raises(InvalidRequest, match=r"management\.address"):
        tenants().accept("anne", {"device_type": "lb-virtual", "management": management})


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("shared", True), ("agent_host", "agent-1"), ("extra", {"a": 1}), ("interfaces", [{"name": "eth1"}])],
)
def test_what_is_the_operators_is_refused_by_name(attribute: str, value: Any):
    with pytest.raises(NotAuthorized, match=attribute):
        tenants().accept("anne", asked(**{attribute: value}))
    with pytest.raises(NotAuthorized, match=attribute):
        tenants().check_changes({attribute: value})


def test_a_vendors_own_parameters_could_hide_an_address():
    with pytest.raises(NotAuthorized, match=r"management\.api_url"):
        tenants().check_changes({"management": {"address": "10.0.0.1", "api_url": "http://127.0.0.1/"}})


@pytest.mark.parametrize(
    ("tenant_id", "attributes"),
    [
        *(("anne", asked(tenant_id="bert")), (None, asked()), ("", asked())),
        *(("anne", {"name": "x"}), ("anne", []), ("anne", {"id": "x"})),
    ],
)
def test_nobody_registers_for_another_or_for_nobody_and_wrong_attributes_stay_wrong(tenant_id: str | None, attributes: Any):
    with pytest.raises(InvalidRequest):
        tenants().accept(tenant_id, attributes)


def device(**attributes: Any) -> Device:
    of = {"tenant_id": "anne", "shared": False, "device_type": "lb-virtual", "management": Management("10.1.2.3")}
    return Device(**{"id": "d1", "name": "mine", "service": "LoadBalancer", **of, **attributes})


def test_a_device_that_the_operator_dedicated_to_a_tenant_stays_the_operators():
    rules = tenants()
    rules.check_owner("anne", device())
    for other in (
        device(tenant_id="bert"),
        device(shared=True),
        device(tenant_id=None, shared=True),
        device(device_type="f5"),
        device(management=Management("192.0.2.1")),
        device(management=Management()),
    ):
        with pytest.raises(DeviceNotFound):
            rules.check_owner("anne", other)
    assert not rules.owns(None, device(tenant_id=None))


def test_networks_with_host_bits_and_what_is_no_network_are_refused_in_the_configuration():
    (kind,) = (option.type for option in options.OPTS if option.name == "tenant_management_networks")
    assert kind("10.0.0.0/8,2001:DB8::/32") == ["10.0.0.0/8", "2001:db8::/32"]
    for wrong in ("10.0.0.1/8", "10.0.0.0/33", "anywhere"):
        with pytest.raises(ValueError, match=wrong.partition("/")[0]):
            kind(wrong)
