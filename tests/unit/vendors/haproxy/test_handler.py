"""What the scheduler hears about a HAProxy device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Candidate, Device, Interface
from lbaas_scheduler.domain.loadbalancers import MonitorType, Vip
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.vendors.haproxy.handler import HaproxyHandler
from lbaas_scheduler.vendors.haproxy.networks import Network
from tests.unit.vendors.haproxy.documents import MONITOR, vip

DEVICE = Device("d1", "lab", "LoadBalancer", "haproxy", extra={"maxconn": 100})
HANDLER = HaproxyHandler(None)


def ask(resource: object, device: Device = DEVICE) -> ScheduleRequest:
    return ScheduleRequest("v1", device.service, "t", resource=resource)


def monitored(*changes: dict[str, object]) -> Vip:
    return vip(pool={"health_monitors": tuple(replace(MONITOR, **change) for change in changes)})


def test_ping_is_not_promised() -> None:
    assert traits.MONITOR_PING not in HANDLER.traits


@pytest.mark.parametrize("name", ["eth1", "br-front", "a.b_c", "x" * 15])
def test_a_device_in_a_namespace_reaches_networks_by_links_of_its_host(name: str) -> None:
    HANDLER.validate_device(replace(DEVICE, extra={"netns": True}, interfaces=(Interface(name),)))


@pytest.mark.parametrize(
    ("name", "kind", "more", "link"),
    [
        ("br-front", "flat", {}, "br-front"),
        ("eth1", "vlan", {"segment": 7}, "lbb"),
        ("eth1", "vxlan", {"vni": 2**24 - 1}, "lbb"),
    ],
)
def test_a_wiring_names_the_bridge(name: str, kind: str, more: dict[str, int], link: str) -> None:
    network = Network.of({"network_id": "n", "interface": name, "kind": kind, "segment": None, "vni": None} | more)
    assert network.bridge.startswith(link)
    assert len(network.bridge) <= 15


@pytest.mark.parametrize("extra", [{}, {"maxconn": 1}, {"nbthread": 64}, {"maxconn": 10_000_000, "nbthread": 1}])
def test_known_keys_in_their_range_are_accepted(extra: dict[str, int]) -> None:
    HANDLER.validate_device(replace(DEVICE, extra=extra))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"extra": {"bind": "0.0.0.0"}}, "'bind'.*maxconn, nbthread, netns"),  # noqa: S104 - it is refused
        ({"extra": {"netns": "yes"}}, "extra.netns: expected true or false"),
        ({"extra": {"netns": True}}, "interfaces: .* needs one"),
        ({"extra": {"netns": True}, "interfaces": (Interface("x" * 16),)}, "cannot be the name of a link"),
        ({"extra": {"netns": True}, "interfaces": (Interface("-n"),)}, "cannot be the name of a link"),
        ({"extra": {"netns": True}, "interfaces": (Interface("eth0; reboot"),)}, "cannot be the name of a link"),
        ({"extra": {"maxconn": -1}}, "extra.maxconn.*from 1 to 10000000"),
        ({"extra": {"nbthread": 1.5}}, "extra.nbthread.*from 1 to 64"),
        ({"traits": frozenset({"MONITOR_PING"})}, "MONITOR_PING"),
        ({"service": "FIREWALL"}, "LoadBalancer"),
        ({"device_type": "envoy"}, "'haproxy'"),
    ],
)
def test_a_refusal_names_what_is_wrong_and_what_would_be_right(changes: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        HANDLER.validate_device(replace(DEVICE, **changes))


def test_a_vendors_own_trait_is_no_concern_of_haproxy() -> None:
    HANDLER.validate_device(replace(DEVICE, traits=frozenset({"CUSTOM_FAST", "PROTOCOL_TCP"})))


def test_a_limit_above_the_devices_is_rejected_with_both_numbers() -> None:
    assert HANDLER.is_good(Candidate(DEVICE), ask(vip(connection_limit=100))).ok
    verdict = HANDLER.is_good(Candidate(DEVICE), ask(vip(connection_limit=101)))
    assert not verdict.ok
    assert "101" in verdict.reason
    assert "100" in verdict.reason


def test_monitors_must_share_their_rhythm() -> None:
    same = monitored({}, {"id": "h2", "type": MonitorType.TCP})
    assert HANDLER.is_good(Candidate(DEVICE), ask(same)).ok
    off = monitored({}, {"id": "h2", "delay": 60, "admin_state_up": False})
    assert HANDLER.is_good(Candidate(DEVICE), ask(off)).ok
    for change in ({"delay": 60}, {"timeout": 1}, {"max_retries": 1}):
        verdict = HANDLER.is_good(Candidate(DEVICE), ask(monitored({}, {"id": "h2", **change})))
        assert (verdict.ok, "same" in verdict.reason) == (False, True)


def test_a_resource_that_is_no_vip_is_left_to_traits_and_capacity() -> None:
    assert HANDLER.is_good(Candidate(DEVICE), ask(None)).ok
