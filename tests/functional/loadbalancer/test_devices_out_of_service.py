"""A device that takes nothing new still serves, changes and lets go of what it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import models, schedulable
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.errors import NotFound, NoValidDevice
from tests.functional.loadbalancer.lab import DEVICE, Lab

OUT_OF_SERVICE: Mapping[str, tuple[sa.Table, Mapping[str, Any]]] = {
    "draining": (models.devices, {"admin_state": "draining"}),
    "disabled": (models.devices, {"admin_state": "disabled"}),
    "offline": (models.devices, {"status": "OFFLINE"}),
    "syncing": (models.devices, {"status": "SYNCING"}),
    "agent disabled": (models.agents, {"admin_state_up": False}),
}


@pytest.mark.parametrize("how", OUT_OF_SERVICE)
def test_what_is_on_it_can_be_changed_and_deleted_and_gives_its_capacity_back(lab: Lab, how: str) -> None:
    vip = lab.active_vip()
    pool = lab.plugin.get_pool(lab.me, vip["pool_id"])
    put_out_of_service(lab, how)
    with pytest.raises(NoValidDevice):
        lab.vip()

    lab.member(pool)
    changed = lab.plugin.update_vip(lab.me, vip["id"], {"connection_limit": 7})
    assert changed["status"] == "PENDING_UPDATE"
    lab.confirm(vip["id"])
    assert lab.plugin.get_vip(lab.me, vip["id"])["status"] == "ACTIVE"

    lab.plugin.delete_vip(lab.me, vip["id"])
    assert lab.caster.casts[-1] == [vip["id"]]
    assert lab.confirm(vip["id"], removed=True) == [vip["id"]]
    with pytest.raises(NotFound):
        lab.plugin.get_vip(lab.me, vip["id"])
    assert (lab.used(), lab.count(models.placements), lab.count(models.deployments)) == (0, 0, 0)


def test_a_pool_that_failed_under_one_vip_takes_another(lab: Lab) -> None:
    pool = lab.pool()
    vip = lab.vip(pool)
    lab.confirm(vip["id"], object_errors={pool["id"]: "no licence"})
    assert lab.plugin.get_pool(lab.me, pool["id"])["status"] == "ERROR"
    lab.plugin.delete_vip(lab.me, vip["id"])
    lab.confirm(vip["id"], removed=True)
    again = lab.active_vip(lab.plugin.get_pool(lab.me, pool["id"]))
    assert again["status"] == "ACTIVE"
    assert lab.plugin.get_pool(lab.me, pool["id"])["status"] == "ACTIVE"
    assert lab.used() == 1


def put_out_of_service(lab: Lab, how: str) -> None:
    table, values = OUT_OF_SERVICE[how]
    lab.database.write(lambda conn: conn.execute(sa.update(table).values(**values)))
    lab.database.write(lambda conn: schedulable.refresh(conn, utcnow().replace(year=2000), [DEVICE]))
