"""Moves: the segment on the target comes before the source's goes, and the address stays."""

from __future__ import annotations

from lbaas_scheduler.allocator.core.requests import Selector
from lbaas_scheduler.domain.moves import MoveState
from tests.functional.fleet.lab import TENANT
from tests.functional.networks.site import Site, vlan


def _values(site: Site, *devices: str) -> list[list[int]]:
    found = {pool.name for pool in site.plant.parts.allocator.pools("vlan")}
    return [[grant.value for grant in site.segments(name)] if f"{site.ids[name]}/eth1" in found else [] for name in devices]


def _two_devices(site: Site) -> tuple[str, str]:
    site.add("one", vlan(vlans="100-199"))
    site.add("two", vlan(vlans="200-299"))
    subnet = site.network()
    return subnet, site.vip_in(subnet, on="one")


def _addresses(site: Site, subnet_id: str) -> list[str]:
    grants = site.plant.parts.allocator.list(Selector("address", subnet_id))
    return [grant.value for grant in grants if grant.owner.type == "vip"]


def test_a_moving_vip_has_both_segments_until_it_has_left(any_site: Site) -> None:
    site = any_site
    subnet, vip = _two_devices(site)
    address = site.balancers.get_vip(TENANT, vip)["address"]
    site.agents.silent.add(site.ids["two"])
    site.move(vip, "two")
    assert _values(site, "one", "two") == [[100], [200]]
    site.agents.silent.clear()
    site.make_due()
    site.settle()
    assert site.last_move(vip).state is MoveState.DONE
    assert site.wiring(vip, "two")["segment"] == 200
    assert _values(site, "one", "two") == [[], [200]]
    assert site.balancers.get_vip(TENANT, vip)["address"] == address
    assert _addresses(site, subnet) == [address]
    site.delete(vip)
    assert (_values(site, "one", "two"), _addresses(site, subnet), site.wired()) == ([[], []], [], 0)


def test_a_move_that_fails_gives_the_targets_segment_back(site: Site) -> None:
    subnet, vip = _two_devices(site)
    site.agents.broken[site.ids["two"]] = "no"
    site.move(vip, "two")
    site.agents.work()
    site.settle()
    assert site.last_move(vip).state is MoveState.FAILED
    assert _values(site, "one", "two") == [[100], []]
    assert len(_addresses(site, subnet)) == 1


def test_what_stays_on_the_source_keeps_its_segment(site: Site) -> None:
    subnet, vip = _two_devices(site)
    other = site.vip_in(subnet, on="one")
    site.move(vip, "two")
    site.settle()
    assert _values(site, "one", "two") == [[100], [200]]
    site.move(other, "two")
    site.settle()
    assert _values(site, "one", "two") == [[], [200]]


def test_an_evacuated_device_keeps_no_segment(site: Site) -> None:
    subnet, vip = _two_devices(site)
    vips = [vip, *(site.vip_in(subnet, on="one") for _ in range(2)), site.vip_in(site.network(), on="one")]
    assert _values(site, "one") == [[100, 101]]
    site.mover.evacuate(site.ids["one"])
    site.settle(12)
    assert [site.agents.holders(each) for each in vips] == [[site.ids["two"]]] * 4
    assert _values(site, "one", "two") == [[], [200, 201]]


def test_a_vip_that_is_deleted_on_its_way_leaves_nothing_on_either_device(site: Site) -> None:
    subnet, vip = _two_devices(site)
    site.agents.silent.add(site.ids["two"])
    site.move(vip, "two")
    site.agents.silent.clear()
    site.balancers.delete_vip(TENANT, vip)
    site.make_due()
    site.settle()
    assert (_values(site, "one", "two"), _addresses(site, subnet), site.wired()) == ([[], []], [], 0)
