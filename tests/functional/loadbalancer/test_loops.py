"""No pool is accepted whose members lead back to its own VIP, in whatever order the objects come."""

from __future__ import annotations

from functools import partial

import pytest

from lbaas_scheduler import errors
from lbaas_scheduler.db.models import members, vips
from tests.database import counted
from tests.functional.loadbalancer.lab import DEVICE, Body, Lab, tenant
from tests.functional.loadbalancer.test_races import at_once


def at(lab: Lab, host: int, pool: Body | None = None, **attributes: object) -> Body:
    return lab.vip(pool, address=f"10.0.0.{host}", **attributes)


def names(lab: Lab, pool: Body, host: int, port: int = 80) -> Body:
    """A member that is the VIP at this address and port."""
    return lab.member(pool, f"10.0.0.{host}", protocol_port=port)


def test_a_member_that_is_its_own_vip_is_refused(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    at(lab, 5, pool)
    with pytest.raises(errors.LeadsBack, match="leads back to VIP"):
        names(lab, pool, 5)
    assert lab.count(members) == 0


def test_a_vip_that_is_a_member_of_its_own_pool_is_refused(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    names(lab, pool, 5)
    with pytest.raises(errors.LeadsBack):
        at(lab, 5, pool)
    assert (lab.count(vips), lab.used(), lab.plugin.get_pool(lab.me, pool["id"])["vip_id"]) == (0, 0, None)
    assert at(lab, 6, pool)["address"] == "10.0.0.6"


def test_a_vip_does_not_move_to_a_pool_that_leads_back_to_it(any_lab: Lab) -> None:
    lab = any_lab
    vip, other = at(lab, 5), lab.pool()
    names(lab, other, 5)
    with pytest.raises(errors.LeadsBack):
        lab.plugin.update_vip(lab.me, vip["id"], {"pool_id": other["id"]})
    assert lab.plugin.get_vip(lab.me, vip["id"])["pool_id"] == vip["pool_id"]


def test_a_member_does_not_move_to_the_pool_of_the_vip_that_it_is(any_lab: Lab) -> None:
    lab = any_lab
    pool, other = lab.pool(), lab.pool()
    at(lab, 5, pool)
    member = names(lab, other, 5)
    with pytest.raises(errors.LeadsBack):
        lab.plugin.update_member(lab.me, member["id"], {"pool_id": pool["id"]})
    assert lab.plugin.get_member(lab.me, member["id"])["pool_id"] == other["id"]


def test_a_ring_of_three_vips_is_refused_whichever_closes_it(any_lab: Lab) -> None:
    lab = any_lab
    pools = [lab.pool() for _ in range(3)]
    at(lab, 5, pools[0])
    at(lab, 6, pools[1])
    names(lab, pools[0], 6)
    names(lab, pools[1], 7)
    names(lab, pools[2], 5)
    with pytest.raises(errors.LeadsBack):
        at(lab, 7, pools[2])


def test_vips_one_behind_the_other_are_accepted(any_lab: Lab) -> None:
    lab = any_lab
    front, back = lab.pool(), lab.pool()
    at(lab, 5, front)
    at(lab, 6, back)
    assert names(lab, front, 6)["address"] == "10.0.0.6"
    lab.member(back, "10.0.0.5", protocol_port=8080)  # its address, and somebody else's port


def test_the_same_addresses_of_another_tenant_elsewhere_are_no_ring(any_lab: Lab) -> None:
    """Two tenants may use the same numbers on networks that no router joins."""
    lab = any_lab
    pool = lab.pool()
    at(lab, 5, pool)
    names(lab, pool, 6)
    lab.add_device("elsewhere")
    lab.only("elsewhere")
    lab.me = tenant("stranger")
    network = lab.networks.create_network(lab.me, {"name": "theirs"})
    subnet = lab.networks.create_subnet(lab.me, {"network_id": network["id"], "cidr": "10.0.0.0/24"})
    theirs = lab.pool(subnet_id=subnet["id"])
    names(lab, theirs, 5)
    assert at(lab, 6, theirs, subnet_id=subnet["id"])["address"] == "10.0.0.6"


def test_a_ring_over_two_tenants_on_one_device_is_refused(any_lab: Lab) -> None:
    lab = any_lab
    pool = lab.pool()
    at(lab, 5, pool)
    names(lab, pool, 9)
    lab.me = tenant("stranger")
    network = lab.networks.create_network(lab.me, {"name": "theirs"})
    subnet = lab.networks.create_subnet(lab.me, {"network_id": network["id"], "cidr": "10.0.0.0/24"})
    theirs = lab.pool(subnet_id=subnet["id"])
    names(lab, theirs, 5)
    with pytest.raises(errors.LeadsBack):
        at(lab, 9, theirs, subnet_id=subnet["id"])
    assert lab.used(device_id=DEVICE) == 1


def test_a_ring_that_two_close_at_once_is_not_closed(any_lab: Lab) -> None:
    lab = any_lab
    for first in range(10, 60, 10):
        front, back = lab.pool(), lab.pool()
        at(lab, first, front)
        at(lab, first + 1, back)
        made, refused = at_once(partial(names, lab, front, first + 1), partial(names, lab, back, first))
        assert (len(made), [type(error) for error in refused]) == (1, [errors.LeadsBack])


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1"])
def test_a_member_on_the_devices_own_host_is_refused(any_lab: Lab, address: str) -> None:
    lab = any_lab
    pool = lab.pool()
    member = lab.member(pool, address)
    with pytest.raises(errors.LeadsToHost):
        lab.vip(pool)
    lab.plugin.delete_member(lab.me, member["id"])
    lab.vip(pool)
    with pytest.raises(errors.LeadsToHost):
        lab.member(pool, address)


def test_a_vip_on_loopback_may_have_members_there(lab: Lab) -> None:
    """A laboratory on one host."""
    subnet = lab.networks.create_subnet(lab.me, {"network_id": lab.network["id"], "cidr": "127.0.0.0/24"})
    pool = lab.pool(subnet_id=subnet["id"])
    lab.member(pool, "127.0.0.1")
    assert lab.vip(pool, subnet_id=subnet["id"])["status"] == "PENDING_CREATE"


def test_the_way_of_a_long_row_of_vips_costs_no_more_statements_than_that_of_two(lab: Lab) -> None:
    def cost(length: int, first: int) -> int:
        pools = [lab.pool() for _ in range(length)]
        for place, pool in enumerate(pools):
            at(lab, first + place, pool)
        for place, pool in reversed(list(enumerate(pools[1:-1], 1))):
            names(lab, pool, first + place + 1)
        with counted(lab.database) as statements:
            names(lab, pools[0], first + 1)
        return len(statements)

    assert cost(3, 10) == cost(20, 50)
