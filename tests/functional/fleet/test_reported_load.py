"""VIPs go where devices say that they have little to do."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from lbaas_scheduler.db import device_reports
from lbaas_scheduler.db.fleet_models import device_reports as table
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import VipStats
from lbaas_scheduler.plugins.device_scheduler.plugin import DeviceSchedulerPlugin
from lbaas_scheduler.rpc.codec import to_document
from tests.functional.fleet.lab import ADMIN, Lab


def choose_by(lab: Lab, measure: str) -> None:
    """From now on, by the service type that VIPs get."""
    [default] = lab.service_types.list({"default": [True]})
    lab.service_types.update(default.id, {"options": {"algorithm": "least_loaded", "options": {"least_loaded_by": measure}}})


def test_vips_go_where_the_fewest_connections_are_open(any_lab: Lab) -> None:
    lab = any_lab
    on_a = [lab.vip(on="a"), lab.vip(on="a"), lab.vip(on="a")]
    on_b, on_c = lab.vip(on="b"), lab.vip(on="c")
    # Agents' statistics of all VIPs on a device are summed up. What VIPs have that are not there does not count.
    few = {vip_id: to_document(VipStats(active_connections=10)) for vip_id in on_a}
    lab.callbacks.report_stats(None, "host-a", lab.ids["a"], few | {on_b: to_document(VipStats(active_connections=5000))})
    lab.stats(on_b, "b", active_connections=100)
    choose_by(lab, "reported")
    # Nothing is known of c yet: it must not be favoured.
    assert lab.home(lab.vip()) == "a"
    lab.stats(on_c, "c", active_connections=40)
    lab.stats(on_c, "c", active_connections=20)
    chosen = lab.vip()
    assert lab.home(chosen) == "c"
    scheduler = next(it for it in lab.plant.plugins if isinstance(it, DeviceSchedulerPlugin))
    why = scheduler.explain(ADMIN, chosen)["why"]
    assert why.startswith("least_loaded by reported load took c (10 % full, 20 connections, weight 50) before a (")
    choose_by(lab, "placed")
    chosen = lab.vip()
    assert lab.home(chosen) == "b"
    assert " connections" not in scheduler.explain(ADMIN, chosen)["why"]


def test_what_is_out_of_date_counts_for_nothing(lab: Lab) -> None:
    for name in ("a", "b", "c"):
        lab.stats(lab.vip(on=name), name, active_connections={"a": 1, "b": 50, "c": 60}[name])
    aged = sa.update(table).where(table.c.device_id == lab.ids["a"]).values(reported_at=utcnow() - timedelta(seconds=61))
    lab.database.write(lambda conn: conn.execute(aged))
    choose_by(lab, "reported")
    assert lab.home(lab.vip()) == "b"


def test_what_a_device_says_itself_counts_before_what_its_agent_says(lab: Lab) -> None:
    for name, connections in {"a": 1, "b": 2, "c": 3}.items():
        lab.stats(lab.vip(on=name), name, active_connections=connections)
    lab.change("a", counters={"active_connections": 500})
    lab.change("b", counters={"active_connections": 400})
    lab.check_all()
    said = lab.database.read(lambda conn: device_reports.connections(conn, list(lab.ids.values()), utcnow() - timedelta(60)))
    assert {lab.name(device_id): count for device_id, count in said.items()} == {"a": 500, "b": 400, "c": 3}
    choose_by(lab, "reported")
    assert lab.home(lab.vip()) == "c"
    # One that does not answer has said nothing; its agent has.
    lab.change("b", offline=True)
    lab.check_all()
    since = utcnow() - timedelta(seconds=60)
    assert lab.database.read(lambda conn: device_reports.connections(conn, [lab.ids["b"]], since)) == {lab.ids["b"]: 2}


def test_a_report_of_a_device_that_is_gone_is_no_error(any_lab: Lab) -> None:
    any_lab.database.write(lambda conn: device_reports.record(conn, "gone", 5, utcnow()))
    assert any_lab.database.read(lambda conn: conn.execute(sa.select(table)).all()) == []
