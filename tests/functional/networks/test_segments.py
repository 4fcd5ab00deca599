"""Segments of networks on the interfaces of devices: shared by the VIPs of a network, given back with the last one."""

from __future__ import annotations

import pytest

from lbaas_scheduler.allocator.core.requests import Selector
from lbaas_scheduler.errors import InvalidRequest, NotDefined, NoValidDevice
from tests.allocator_side import empty
from tests.functional.fleet.lab import ADMIN
from tests.functional.networks.site import Site, vlan, vxlan


def test_vips_of_a_network_share_a_segment_that_goes_with_the_last_one(any_site: Site) -> None:
    site = any_site
    site.add("lb", vlan(vlans="100-199", physical_network="rack"))
    subnet, other = site.network(), site.network()
    first, second, third = site.vip_in(subnet), site.vip_in(subnet), site.vip_in(other)
    assert [grant.value for grant in site.segments("lb")] == [100, 101]
    wiring = site.wiring(first, "lb")
    assert wiring == site.wiring(second, "lb")
    assert {name: wiring[name] for name in wiring if name != "network_id"} == {
        "interface": "eth1",
        "kind": "vlan",
        "segment": 100,
        "vni": None,
        "physical_network": "rack",
        "gateway_ip": "10.9.0.1",
    }
    assert site.wiring(third, "lb")["segment"] == 101
    site.delete(first)
    assert [grant.value for grant in site.segments("lb")] == [100, 101]
    site.delete(second)
    assert [grant.value for grant in site.segments("lb")] == [101]
    site.delete(third)
    assert (site.segments("lb"), site.wired()) == ([], 0)
    assert site.wiring(site.vip_in(other), "lb")["segment"] == 100


def test_what_vips_have_stays_theirs_in_a_store_that_knows_nothing_of_them(any_site: Site) -> None:
    site = any_site
    site.add("lb", vlan(vlans="100-199"))
    subnet = site.network()
    there = [site.vip_in(subnet), site.vip_in(site.network())]
    empty(site.database)
    new = [site.vip_in(subnet), site.vip_in(site.network())]
    addresses = {grant.owner.id: grant.value for grant in site.plant.parts.allocator.list(Selector("address", subnet))}
    assert (addresses[there[0]], addresses[new[0]]) == ("10.9.0.2", "10.9.0.3")
    assert [grant.value for grant in site.segments("lb")] == [100, 101, 102]
    for vip in (*there, *new):
        site.delete(vip)
    assert [grant.owner.type for grant in site.plant.parts.allocator.list()] == ["pool"] * 2


def test_an_interface_carries_as_many_networks_as_it_may(site: Site) -> None:
    site.add("lb", vlan(max_vlans=1), vlan("eth2", vlans="7-7"))
    subnets = [site.network() for _ in range(3)]
    vips = [site.vip_in(subnet) for subnet in subnets[:2]]
    assert [(site.wiring(vip, "lb")["interface"], site.wiring(vip, "lb")["segment"]) for vip in vips] == [
        ("eth1", 1),
        ("eth2", 7),
    ]
    assert site.registry.get(site.ids["lb"]).interfaces[1].max_vlans == 1
    with pytest.raises(NoValidDevice):
        site.vip_in(subnets[2])
    site.vip_in(subnets[0])
    site.delete(vips[1])
    assert site.wiring(site.vip_in(subnets[2]), "lb")["segment"] == 7


def test_a_vlan_network_has_its_own_tag_on_the_wire_and_nobody_else_has_it(site: Site) -> None:
    site.add("lb", vlan(vlans="100-102"))
    subnet = site.network(network_type="vlan", segmentation_id=100)
    assert site.wiring(site.vip_in(subnet), "lb")["segment"] == 100
    assert site.wiring(site.vip_in(site.network()), "lb")["segment"] == 101
    for tag in (100, 101, 103):
        with pytest.raises(NoValidDevice) as caught:
            site.vip_in(site.network(network_type="vlan", physical_network="other", segmentation_id=tag))
        assert caught.value.message.startswith("No device can take")
    assert len(site.segments("lb")) == 2
    assert site.wired() == 2


def test_a_vxlan_has_a_local_vlan_on_each_device(site: Site) -> None:
    site.add("lb", vxlan(vlans="5-9"))
    subnet = site.network(network_type="vxlan", segmentation_id=70_000)
    wiring = site.wiring(site.vip_in(subnet), "lb")
    assert (wiring["kind"], wiring["segment"], wiring["vni"]) == ("vxlan", 5, 70_000)
    with pytest.raises(NoValidDevice):
        site.vip_in(site.network())
    site.add("mixed", vxlan(), {"name": "br-flat"})
    assert site.wiring(site.vip_in(site.network()), "mixed")["interface"] == "br-flat"
    assert site.wiring(site.vip_in(subnet, on="mixed"), "mixed")["interface"] == "eth1"


def test_another_device_is_tried_where_one_cannot_be_wired(site: Site) -> None:
    site.add("one", vlan(vlans="100-102"))
    site.add("two", vlan(vlans="200-300"))
    subnet = site.network(network_type="vlan", segmentation_id=250)
    assert site.wiring(site.vip_in(subnet), "two")["segment"] == 250
    assert site.wired() == 1


def test_a_flat_interface_needs_no_segment(site: Site) -> None:
    site.add("lb", {"name": "br-front"})
    wiring = site.wiring(site.vip_in(site.network()), "lb")
    assert (wiring["interface"], wiring["kind"], wiring["segment"]) == ("br-front", "flat", None)
    assert site.plant.parts.allocator.pools("vlan") == []


def test_changed_ids_of_an_interface_count_from_the_next_network_on(site: Site) -> None:
    site.add("lb", vlan(vlans="100-199"))
    subnet = site.network()
    site.vip_in(subnet)
    site.registry.update(site.ids["lb"], {"interfaces": [vlan(vlans="300-399")]})
    assert site.wiring(site.vip_in(subnet), "lb")["segment"] == 100
    assert site.wiring(site.vip_in(site.network()), "lb")["segment"] == 300


def test_a_device_that_is_removed_leaves_no_pool_behind(site: Site) -> None:
    device_id = site.add("lb", vlan())
    vip = site.vip_in(site.network())
    site.delete(vip)
    devices = site.plant.plugins[0]
    devices.delete_device(ADMIN, device_id)  # type: ignore[attr-defined]
    with pytest.raises(NotDefined):
        site.segments("lb")


@pytest.mark.parametrize(
    ("interface", "words"),
    [
        (vlan(vlans="0-9"), "leaves 1-4094"),
        (vlan(vlans="9"), "is no range"),
        (vlan(vlans="1-9, 5-20"), "overlap"),
        (vlan(vlans="1-9", max_vlans=10), "less than its max_vlans"),
        ({"name": "eth1", "vlans": "1-9"}, "is flat"),
        ({"name": "eth1", "kind": "gre"}, "flat, vlan or vxlan"),
    ],
)
def test_a_wrong_interface_is_refused(site: Site, interface: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        site.add("lb", interface)
