"""An overdue VIP of the LoadBalancer service: the reconciler and the service's own states together."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import models
from lbaas_scheduler.devices.assignments import Assignments
from lbaas_scheduler.domain import clock
from lbaas_scheduler.plugins.casts import Caster
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.plugins.reconciler import Reconciler
from tests.database import configured, open_database
from tests.functional.loadbalancer.lab import Body, Lab
from tests.functional.registry.fleet import Bus


@pytest.fixture
def any_lab(database_url: str) -> Iterator[Lab]:
    lab = Lab(open_database(database_url))
    lab.furnish()
    yield lab
    lab.database.dispose()


def reconciler(lab: Lab, bus: Bus) -> Reconciler:
    conf = configured("sqlite://")
    caster = Caster(lab.database, bus, documents.load)
    return Reconciler(lab.database, caster, Assignments(lab.database, 600), lab.reports, conf)


def wait_too_long(lab: Lab) -> None:
    long_ago = clock.utcnow() - timedelta(seconds=301)
    late = sa.update(models.deployments).values(pending_since=long_ago, due_at=clock.utcnow())
    lab.database.write(lambda conn: conn.execute(late))


def states(lab: Lab, vip: Body, pool: Body, *members: Body) -> list[tuple[str, str]]:
    shown = [lab.plugin.get_vip(lab.me, vip["id"]), lab.plugin.get_pool(lab.me, pool["id"])]
    shown += [lab.plugin.get_member(lab.me, member["id"]) for member in members]
    return [(it["status"], it["status_description"] or "") for it in shown]


def test_it_and_all_that_waits_below_it_turn_error_with_the_cause_and_recover(any_lab: Lab) -> None:
    lab, bus = any_lab, Bus()
    pool = lab.pool()
    old = lab.member(pool)
    vip = lab.active_vip(pool)
    new = lab.member(pool, "10.1.0.2")
    lab.plugin.update_pool(lab.me, pool["id"], {"lb_method": "SOURCE_IP"})
    wait_too_long(lab)
    reconciler(lab, bus).run_once()
    cause = "The agent on host agent-1 has not confirmed the change within 300 s."
    assert states(lab, vip, pool, old, new) == [("ERROR", cause), ("ERROR", cause), ("ACTIVE", ""), ("ERROR", cause)]
    assert [(verb, vip_id) for verb, _, _, vip_id, _ in bus.sent] == [("update", vip["id"])]
    lab.confirm(vip["id"])
    assert states(lab, vip, pool, old, new) == [("ACTIVE", "")] * 4


def test_an_overdue_deletion_goes_on_waiting_and_says_for_what(any_lab: Lab) -> None:
    lab, bus = any_lab, Bus()
    vip = lab.active_vip()
    lab.plugin.delete_vip(lab.me, vip["id"])
    wait_too_long(lab)
    reconciler(lab, bus).run_once()
    shown = lab.plugin.get_vip(lab.me, vip["id"])
    assert shown["status"] == "PENDING_DELETE"
    assert shown["status_description"] == "The agent on host agent-1 has not confirmed the removal within 300 s."
    assert [(verb, vip_id) for verb, _, _, vip_id, _ in bus.sent] == [("delete", vip["id"])]
    assert lab.confirm(vip["id"], removed=True) == [vip["id"]]
