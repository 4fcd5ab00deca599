"""Whose an object is, and who may do what with it."""

from __future__ import annotations

from typing import Any

import pytest

from lbaas_scheduler import errors
from tests.functional.loadbalancer.lab import Lab, admin, tenant

NOUNS = ("vip", "pool", "member", "health_monitor")


def _one_of_each(lab: Lab) -> dict[str, dict[str, Any]]:
    pool = lab.pool()
    return {"pool": pool, "vip": lab.vip(pool), "member": lab.member(pool), "health_monitor": lab.monitor(pool)}


@pytest.mark.parametrize("noun", NOUNS)
def test_what_is_another_tenants_does_not_exist(lab: Lab, noun: str) -> None:
    shown = _one_of_each(lab)[noun]
    stranger = tenant("stranger")
    assert getattr(lab.plugin, f"get_{noun}s")(stranger) == []
    for call in (
        lambda: getattr(lab.plugin, f"get_{noun}")(stranger, shown["id"]),
        lambda: getattr(lab.plugin, f"update_{noun}")(stranger, shown["id"], {"admin_state_up": False}),
        lambda: getattr(lab.plugin, f"delete_{noun}")(stranger, shown["id"]),
    ):
        with pytest.raises(errors.NotFound):
            call()
    assert getattr(lab.plugin, f"get_{noun}")(lab.me, shown["id"])["admin_state_up"] is True


@pytest.mark.parametrize("noun", NOUNS)
def test_administrators_see_and_change_everything(lab: Lab, noun: str) -> None:
    shown = _one_of_each(lab)[noun]
    assert [each["id"] for each in getattr(lab.plugin, f"get_{noun}s")(admin())] == [shown["id"]]
    changed = getattr(lab.plugin, f"update_{noun}")(admin(), shown["id"], {"admin_state_up": False})
    assert (changed["tenant_id"], changed["admin_state_up"]) == ("tenant", False)


def test_only_administrators_create_for_others(lab: Lab) -> None:
    with pytest.raises(errors.InvalidRequest, match="administrator"):
        lab.pool(tenant_id="other")
    lab.me = admin()
    assert lab.pool(tenant_id="other")["tenant_id"] == "other"
    assert [each["tenant_id"] for each in lab.plugin.get_pools(tenant("other"))] == ["other"]
    assert lab.pool()["tenant_id"] == "operator"


def test_nobody_creates_for_nobody(lab: Lab) -> None:
    lab.me = tenant("")
    with pytest.raises(errors.InvalidRequest, match="tenant"):
        lab.pool()


def test_a_vip_belongs_to_its_pools_tenant_unless_an_administrator_says_otherwise(lab: Lab) -> None:
    pool = lab.pool()
    body = {"subnet_id": lab.subnet["id"], "protocol": "HTTP", "protocol_port": 80, "pool_id": pool["id"]}
    with pytest.raises(errors.PoolNotFound):
        lab.plugin.create_vip(tenant("stranger"), body)
    assert lab.plugin.create_vip(admin(), {**body, "tenant_id": "third"})["tenant_id"] == "third"


def test_a_vip_does_not_move_to_another_tenants_pool(lab: Lab) -> None:
    vip = lab.vip()
    lab.me = tenant("other")
    foreign = lab.pool()
    with pytest.raises(errors.PoolNotFound):
        lab.plugin.update_vip(tenant(), vip["id"], {"pool_id": foreign["id"]})


def test_the_owner_of_both_may_part_monitor_and_pool(lab: Lab) -> None:
    pool = lab.pool()
    monitor = lab.monitor(pool)
    lab.plugin.delete_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    assert lab.plugin.get_pool(lab.me, pool["id"])["health_monitors"] == []


def test_a_subnet_of_another_tenant_does_not_exist_unless_it_is_shared(lab: Lab) -> None:
    lab.me = tenant("other")
    with pytest.raises(errors.SubnetNotFound):
        lab.vip()
    lab.networks.update_network(admin(), lab.network["id"], {"shared": True})
    assert lab.vip()["address"] == "10.0.0.2"


@pytest.mark.parametrize("strange", ["x" * 300, "\0", "a b", "", "ü", "\ud800", None, 5])
def test_what_cannot_be_an_id_is_not_found(lab: Lab, strange: Any) -> None:
    for noun in NOUNS:
        with pytest.raises(errors.NotFound):
            getattr(lab.plugin, f"get_{noun}")(lab.me, strange)
