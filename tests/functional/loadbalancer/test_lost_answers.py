"""A connection that breaks with the COMMIT: nobody knows whether it happened, and the work is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db.exception import DBConnectionError

from lbaas_scheduler.db.models import deployments, health_monitors, members, placements, pool_monitors, pools, vips
from lbaas_scheduler.errors import NotFound
from tests.functional.loadbalancer.lab import Lab, addresses


@contextmanager
def lost_answer(lab: Lab) -> Iterator[None]:
    """The first commit inside happens, and is answered by a broken connection."""
    original = lab.database._write_once
    left = [1]

    def write_once(work: Callable[[Any], Any]) -> Any:
        answer = original(work)
        if left:
            left.pop()
            raise DBConnectionError(sa.exc.OperationalError("COMMIT", {}, Exception("gone away")))
        return answer

    lab.database._write_once = write_once  # type: ignore[method-assign]
    yield
    lab.database._write_once = original  # type: ignore[method-assign]
    assert left == []


def test_a_vip_is_made_once(lab: Lab) -> None:
    pool = lab.pool()
    with lost_answer(lab):
        vip = lab.vip(pool)
    assert lab.plugin.get_pool(lab.me, pool["id"])["vip_id"] == vip["id"]
    assert lab.caster.casts == [[vip["id"]]]
    counts = [lab.count(table) for table in (vips, addresses, placements, deployments)]
    assert (counts, lab.used()) == ([1, 1, 1, 1], 1)


@pytest.mark.parametrize("noun", ["pool", "member", "monitor"])
def test_everything_else_is_made_once(lab: Lab, noun: str) -> None:
    pool = lab.pool()
    make = {"pool": lab.pool, "member": lambda: lab.member(pool), "monitor": lab.monitor}[noun]
    table = {"pool": pools, "member": members, "monitor": health_monitors}[noun]
    before = lab.count(table)
    with lost_answer(lab):
        made = make()
    assert made["id"]
    assert lab.count(table) == before + 1


def test_a_removal_is_done_once(lab: Lab) -> None:
    lab.vip()
    vip = lab.active_vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    with lost_answer(lab):
        lab.confirm(vip["id"], removed=True)
    assert lab.used() == 1


def test_an_association_is_made_once(lab: Lab) -> None:
    pool, monitor = lab.pool(), lab.monitor()
    with lost_answer(lab):
        lab.plugin.create_pool_health_monitor(lab.me, monitor["id"], pool["id"])
    assert lab.count(pool_monitors) == 1


def test_a_deletion_that_finds_nothing_when_it_is_repeated_has_succeeded(lab: Lab) -> None:
    pool = lab.pool()
    member, monitor = lab.member(pool), lab.monitor(pool)
    for delete, table in (
        (lambda: lab.plugin.delete_pool_health_monitor(lab.me, monitor["id"], pool["id"]), pool_monitors),
        (lambda: lab.plugin.delete_health_monitor(lab.me, monitor["id"]), health_monitors),
        (lambda: lab.plugin.delete_member(lab.me, member["id"]), members),
        (lambda: lab.plugin.delete_pool(lab.me, pool["id"]), pools),
    ):
        with lost_answer(lab):
            delete()
        assert lab.count(table) == 0
        with pytest.raises(NotFound):
            delete()


def test_a_vip_that_no_device_has_anything_of_goes_once(lab: Lab) -> None:
    vip = lab.vip()
    lab.database.write(lambda conn: conn.execute(deployments.delete()))
    with lost_answer(lab):
        lab.plugin.delete_vip(lab.me, vip["id"])
    assert (lab.count(vips), lab.count(addresses), lab.count(placements), lab.used()) == (0, 0, 0, 0)
