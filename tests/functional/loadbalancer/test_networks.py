"""The local registry of networks, and the addresses that it gives."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.allocator.core.requests import Owner, Request, Selector
from lbaas_scheduler.sdk.networks import Reservation
from tests.functional.loadbalancer.lab import Body, Lab, addresses, admin, tenant


def _subnet(lab: Lab, cidr: str = "10.5.0.0/28", **attributes: Any) -> Body:
    return lab.networks.create_subnet(lab.me, {"network_id": lab.network["id"], "cidr": cidr, **attributes})


def _take(lab: Lab, subnet: Body, address: str | None = None, owner: str = "") -> str:
    owner = owner or f"vip-{lab.count(addresses)}"
    reservation = lab.connector.prepare(lab.me, subnet["id"], address, owner)
    return lab.database.write(lambda conn: lab.connector.bind(conn, reservation))


def test_a_subnet_has_its_defaults(lab: Lab) -> None:
    subnet = _subnet(lab)
    expected = {
        "tenant_id": "tenant",
        "name": "",
        "cidr": "10.5.0.0/28",
        "ip_version": 4,
        "gateway_ip": "10.5.0.1",
        "allocation_pools": [{"start": "10.5.0.1", "end": "10.5.0.14"}],
        "shared": False,
    }
    assert {name: subnet[name] for name in expected} == expected
    assert lab.networks.get_subnet(lab.me, subnet["id"]) == subnet
    assert subnet["id"] in lab.networks.get_network(lab.me, lab.network["id"])["subnets"]
    assert lab.networks.get_subnets(lab.me, filters={"cidr": "10.5.0.0/28"}, fields=["id"]) == [{"id": subnet["id"]}]


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"cidr": "10.5.0.1/28"}, "host bits set; did you mean 10.5.0.0/28"),
        ({"cidr": "10.5.0.0/33"}, "is no network"),
        ({"cidr": "web"}, "network like"),
        ({"gateway_ip": "10.6.0.1"}, "not a usable address"),
        ({"gateway_ip": "10.5.0.0"}, "not a usable address"),
        ({"gateway_ip": "2001:db8::1"}, "not a usable address"),
        ({"allocation_pools": [{"start": "10.5.0.9", "end": "10.5.0.2"}]}, "ends before it starts"),
        ({"allocation_pools": [{"start": "10.5.0.9", "end": "10.5.0.20"}]}, "beyond"),
        ({"allocation_pools": [{"start": "10.5.0.0", "end": "10.5.0.2"}]}, "beyond"),
        ({"allocation_pools": [{"start": "::1", "end": "10.5.0.2"}]}, "IPv4"),
        ({"allocation_pools": [{"start": "10.5.0.5", "end": "10.5.0.9"}, {"start": "10.5.0.2", "end": "10.5.0.5"}]}, "overlap"),
        ({"allocation_pools": [{"start": "x", "end": "10.5.0.2"}]}, "address"),
        ({"allocation_pools": "10.5.0.2"}, "allocation_pools"),
        ({"network_id": "00000000-0000-0000-0000-000000000000"}, "could not be found"),
        ({"colour": "red"}, "unrecognized"),
    ],
)
def test_a_wrong_subnet_is_refused_with_what_would_be_right(lab: Lab, attributes: Body, words: str) -> None:
    with pytest.raises(errors.LBaaSError, match=words):
        _subnet(lab, **{"cidr": "10.5.0.0/28"} | attributes)
    assert len(lab.networks.get_subnets(lab.me)) == 1


def test_subnets_of_a_network_do_not_overlap(lab: Lab) -> None:
    with pytest.raises(errors.Conflict, match="overlaps"):
        _subnet(lab, "10.0.0.128/25")
    _subnet(lab, "2001:db8::/64")


def test_a_subnet_in_use_cannot_be_deleted(lab: Lab) -> None:
    pool = lab.pool()
    with pytest.raises(errors.SubnetInUse, match="1 pools"):
        lab.networks.delete_subnet(lab.me, lab.subnet["id"])
    vip = lab.active_vip(pool)
    lab.plugin.delete_vip(lab.me, vip["id"])
    lab.plugin.delete_pool(lab.me, pool["id"])
    with pytest.raises(errors.SubnetInUse, match="1 VIPs"):
        lab.networks.delete_subnet(lab.me, lab.subnet["id"])
    with pytest.raises(errors.Conflict, match="1 subnet"):
        lab.networks.delete_network(lab.me, lab.network["id"])
    lab.confirm(vip["id"], removed=True)
    lab.networks.delete_subnet(lab.me, lab.subnet["id"])
    lab.networks.delete_network(lab.me, lab.network["id"])
    assert lab.networks.get_networks(lab.me) == []


def test_the_lowest_free_address_is_given(lab: Lab) -> None:
    subnet = _subnet(lab)
    assert [_take(lab, subnet) for _ in range(3)] == ["10.5.0.2", "10.5.0.3", "10.5.0.4"]
    lab.database.write(lambda conn: lab.connector.release(conn, "vip-1"))
    assert _take(lab, subnet, owner="again") == "10.5.0.3"


def test_the_gateway_is_never_given_wherever_it_lies(lab: Lab) -> None:
    pools = [{"start": "10.5.0.3", "end": "10.5.0.5"}, {"start": "10.5.0.9", "end": "10.5.0.9"}]
    subnet = _subnet(lab, gateway_ip="10.5.0.4", allocation_pools=pools)
    assert [_take(lab, subnet) for _ in range(3)] == ["10.5.0.3", "10.5.0.5", "10.5.0.9"]
    with pytest.raises(errors.IpAddressGenerationFailure):
        _take(lab, subnet)


def test_an_address_beyond_the_allocation_pools_may_be_asked_for(lab: Lab) -> None:
    subnet = _subnet(lab, allocation_pools=[{"start": "10.5.0.3", "end": "10.5.0.5"}])
    assert _take(lab, subnet, "10.5.0.9") == "10.5.0.9"


@pytest.mark.parametrize("cidr", ["10.5.0.0/31", "10.5.0.0/32", "2001:db8:5::/127", "2001:db8:5::/128"])
def test_the_smallest_subnets_can_be_used_to_the_last_address(lab: Lab, cidr: str) -> None:
    subnet = _subnet(lab, cidr, gateway_ip=None)
    count = 1 if cidr.endswith(("/32", "/128")) else 2
    assert len({_take(lab, subnet) for _ in range(count)}) == count
    with pytest.raises(errors.IpAddressGenerationFailure):
        _take(lab, subnet)


def test_release_is_repeatable(lab: Lab) -> None:
    subnet = _subnet(lab)
    _take(lab, subnet, owner="mine")
    for _ in range(2):
        lab.database.write(lambda conn: lab.connector.release(conn, "mine"))
    assert lab.count(addresses) == 0


@pytest.mark.parametrize("address", [None, "10.5.0.7"])
def test_racing_for_addresses_nobody_gets_anothers(any_lab: Lab, address: str | None) -> None:
    lab = any_lab
    subnet = _subnet(lab)
    given: list[str] = []
    failed: list[Exception] = []
    start = threading.Barrier(16)

    def race(number: int) -> None:
        reservation = Reservation(f"vip-{number}", subnet["id"], lab.network["id"], subnet["cidr"], "port", address or "")
        start.wait()
        try:
            given.append(lab.database.write(lambda conn: lab.connector.bind(conn, reservation)))
        except errors.LBaaSError as error:
            failed.append(error)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    expected = 13 if address is None else 1
    assert len(given) == len(set(given)) == lab.count(addresses) == expected
    wanted = errors.IpAddressGenerationFailure if address is None else errors.IpAddressInUse
    assert [type(error) for error in failed] == [wanted] * (16 - expected)


def test_networks_of_others_do_not_exist_unless_shared(lab: Lab) -> None:
    stranger = tenant("stranger")
    with pytest.raises(errors.NetworkNotFound):
        lab.networks.get_network(stranger, lab.network["id"])
    assert lab.networks.get_networks(stranger) == lab.networks.get_subnets(stranger) == []
    with pytest.raises(errors.NotAuthorized):
        lab.networks.update_network(lab.me, lab.network["id"], {"shared": True})
    lab.networks.update_network(admin(), lab.network["id"], {"shared": "true"})
    assert [each["id"] for each in lab.networks.get_networks(stranger)] == [lab.network["id"]]
    assert [each["id"] for each in lab.networks.get_subnets(stranger)] == [lab.subnet["id"]]
    for call in (
        lambda: lab.networks.update_network(stranger, lab.network["id"], {"name": "mine"}),
        lambda: lab.networks.delete_network(stranger, lab.network["id"]),
        lambda: lab.networks.delete_subnet(stranger, lab.subnet["id"]),
        lambda: lab.networks.create_subnet(stranger, {"network_id": lab.network["id"], "cidr": "10.8.0.0/24"}),
    ):
        with pytest.raises(errors.NotAuthorized):
            call()


def test_a_vlan_network_needs_its_tag(lab: Lab) -> None:
    body = {"name": "v", "network_type": "vlan", "physical_network": "core"}
    for wrong in ({}, {"segmentation_id": 4095}, {"segmentation_id": 0}):
        with pytest.raises(errors.InvalidRequest, match="segmentation_id"):
            lab.networks.create_network(admin(), {**body, **wrong})
    assert lab.networks.create_network(admin(), {**body, "segmentation_id": "100"})["segmentation_id"] == 100


def test_a_subnet_may_be_renamed_and_its_pools_changed(lab: Lab) -> None:
    subnet = _subnet(lab)
    pools = [{"start": "10.5.0.9", "end": "10.5.0.10"}]
    changed = lab.networks.update_subnet(lab.me, subnet["id"], {"name": "n", "allocation_pools": pools})
    assert (changed["name"], changed["allocation_pools"]) == ("n", pools)
    assert _take(lab, subnet) == "10.5.0.9"
    with pytest.raises(errors.InvalidRequest):
        lab.networks.update_subnet(lab.me, subnet["id"], {"cidr": "10.6.0.0/24"})


def test_what_an_operator_allocates_in_a_subnet_is_nobody_elses_and_keeps_it(lab: Lab) -> None:
    subnet = _subnet(lab)
    pool = Selector("address", subnet["id"])
    lab.allocator.allocate(Request("address", Owner("router", "r1"), pool.name, value="10.5.0.2"))
    assert _take(lab, subnet, owner="one") == "10.5.0.3"
    with pytest.raises(errors.IpAddressInUse):
        _take(lab, subnet, "10.5.0.2", owner="two")
    lab.database.write(lambda conn: lab.connector.release(conn, "one"))
    with pytest.raises(errors.SubnetInUse, match="1 allocated address"):
        lab.networks.delete_subnet(lab.me, subnet["id"])
    assert lab.networks.get_subnet(lab.me, subnet["id"])["id"] == subnet["id"]
    lab.allocator.release_owner(Owner("router", "r1"))
    lab.networks.delete_subnet(lab.me, subnet["id"])
    with pytest.raises(errors.NotDefined):
        lab.allocator.usage(pool)


def test_networks_may_have_the_same_addresses(lab: Lab) -> None:
    subnet = _subnet(lab)
    network = lab.networks.create_network(lab.me, {"name": "other"})
    other = lab.networks.create_subnet(lab.me, {"network_id": network["id"], "cidr": "10.5.0.0/28"})
    assert _take(lab, subnet, owner="one") == _take(lab, other, owner="two") == "10.5.0.2"


def test_a_subnet_without_a_pool_gets_one_with_its_first_vip(lab: Lab) -> None:
    """Of a store that was changed, or rows that came from elsewhere."""
    subnet = _subnet(lab)
    lab.allocator.undefine(Selector("address", subnet["id"]))
    assert _take(lab, subnet) == "10.5.0.2"
    assert lab.allocator.usage(Selector("address", subnet["id"])).allocated == "10.5.0.1-10.5.0.2"


@pytest.mark.parametrize(
    ("cidr", "words"),
    [
        ("0.0.0.0/0", "every address"),
        ("::/0", "every address"),
        ("::ffff:0:0/96", "IPv4"),
        ("0.1.0.0/24", "'this network'"),
        ("169.254.7.0/24", "link-local addresses"),
        ("224.0.0.0/24", "multicast addresses in it .224.0.0.0/4., which no host can have"),
        ("128.0.0.0/1", "link-local addresses"),
        ("255.255.255.0/24", "reserved addresses"),
        ("::/120", "the unspecified address"),
        ("fe80::/64", "link-local addresses"),
        ("ff02::/16", "multicast addresses"),
    ],
)
def test_a_network_that_is_none_is_refused(lab: Lab, cidr: str, words: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=words):
        _subnet(lab, cidr)
