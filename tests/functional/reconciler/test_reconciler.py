"""Nothing gets stuck."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import deployments, models
from lbaas_scheduler.domain import clock
from lbaas_scheduler.errors import Unavailable
from lbaas_scheduler.plugins.reconciler import Reconciler
from tests.functional.reconciler.test_callbacks import RecordingReports
from tests.functional.registry.fleet import AGENT_DOWN_SECONDS, Fleet
from tests.rig.waiting import wait_for


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """A fleet with its reconciler, at work for long enough to trust what it sees, unless ``fresh``."""

    def __init__(self, fleet: Fleet, fresh: bool = False) -> None:
        self.fleet = fleet
        self.reports = RecordingReports()
        self.clock = Clock()
        self.reconciler = Reconciler(
            fleet.database, fleet.caster, fleet.assignments, self.reports, fleet.conf, monotonic=self.clock
        )
        if not fresh:
            self.clock.now += AGENT_DOWN_SECONDS

    def option(self, name: str, value: Any) -> None:
        self.fleet.conf.set_override(name, value, "scheduler")


@pytest.fixture
def server(fleet: Fleet) -> Server:
    return Server(fleet)


@pytest.fixture
def any_server(any_fleet: Fleet) -> Server:
    return Server(any_fleet)


def device_with(fleet: Fleet, *vips: str, host: str = "host-1") -> str:
    fleet.report(host)
    device_id = fleet.enrol(agent_host=None)
    for vip in vips:
        fleet.deploy(vip, device_id)
    return device_id


def age(fleet: Fleet, **columns: Any) -> None:
    """Set columns of all deployments."""
    fleet.database.write(lambda conn: conn.execute(sa.update(models.deployments).values(columns)))


def test_what_is_due_is_cast_again_and_then_not_before_its_deadline(any_server: Server) -> None:
    fleet = any_server.fleet
    device_with(fleet, "vip")
    any_server.reconciler.run_once()
    assert fleet.bus.casts() == [("create", "host-1", "vip")]
    any_server.reconciler.run_once()
    assert len(fleet.bus.sent) == 1


def test_the_pause_between_casts_doubles_up_to_the_longest(server: Server) -> None:
    fleet = server.fleet
    device_id = device_with(fleet, "vip")
    server.option("cast_deadline_seconds", 10)
    server.option("max_backoff_seconds", 60)
    pauses = []
    for _ in range(6):
        age(fleet, due_at=clock.utcnow())
        server.reconciler.run_once()
        due_at = fleet.row("vip", device_id).due_at
        assert due_at is not None
        pauses.append((due_at - clock.utcnow()).total_seconds())
    assert len(fleet.bus.sent) == 6
    for pause, expected in zip(pauses, [10, 20, 40, 60, 60, 60], strict=True):
        assert 0.75 * expected <= pause <= 1.25 * expected
    server.fleet.settle("vip", device_id)
    assert fleet.row("vip", device_id).attempts == 0


def test_what_is_settled_is_left_alone(server: Server) -> None:
    device_id = device_with(server.fleet, "vip")
    server.fleet.settle("vip", device_id)
    server.reconciler.run_once()
    assert server.fleet.bus.sent == []


def test_more_than_one_batch_is_cast_in_one_cycle(server: Server) -> None:
    vips = [f"vip-{number:02}" for number in range(25)]
    device_with(server.fleet, *vips)
    server.option("reconcile_batch_size", 10)
    server.reconciler.run_once()
    assert [vip_id for _, _, vip_id in server.fleet.bus.casts()] == vips


def test_several_servers_cast_each_due_vip_once(any_fleet: Fleet) -> None:
    vips = [f"vip-{number:02}" for number in range(40)]
    device_with(any_fleet, *vips)
    servers = [Server(Fleet(any_fleet.url)) for _ in range(3)]
    for server in servers:
        server.option("reconcile_batch_size", 5)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda server: server.reconciler.run_once(), servers))
    cast = sorted(vip_id for server in servers for _, _, vip_id in server.fleet.bus.casts())
    assert len(cast) == len(set(cast))
    Server(any_fleet).reconciler.run_once()
    assert sorted(cast + [vip_id for _, _, vip_id in any_fleet.bus.casts()]) == vips
    for server in servers:
        server.fleet.database.dispose()


def test_a_broker_that_is_away_does_not_count_as_a_try(server: Server) -> None:
    device_id = device_with(server.fleet, "vip")
    server.fleet.bus.away = True
    server.reconciler.run_once()
    row = server.fleet.row("vip", device_id)
    assert row.attempts == 0
    assert row.due_at is not None
    assert row.due_at <= clock.utcnow() + timedelta(seconds=server.fleet.conf.scheduler.reconcile_interval_seconds)
    server.fleet.bus.away = False
    age(server.fleet, due_at=clock.utcnow())
    server.reconciler.run_once()
    assert server.fleet.bus.casts() == [("create", "host-1", "vip")]


def test_a_poisoned_vip_is_tried_again_and_costs_no_other(server: Server) -> None:
    vips = [f"vip-{number:02}" for number in range(100)]
    device_with(server.fleet, *vips)
    server.fleet.poisoned = {"vip-07"}
    server.reconciler.run_once()
    assert len(server.fleet.bus.sent) == 99
    server.fleet.poisoned = set()
    age(server.fleet, due_at=clock.utcnow())
    server.reconciler.run_once()
    assert ("create", "host-1", "vip-07") in server.fleet.bus.casts()


def test_what_is_pending_for_too_long_is_reported_as_an_error_once_and_goes_on(any_server: Server) -> None:
    fleet = any_server.fleet
    device_id = device_with(fleet, "vip", "fresh")
    long_ago = clock.utcnow() - timedelta(seconds=301)
    late = (
        sa.update(models.deployments)
        .where(models.deployments.c.resource_id == "vip")
        .values(pending_since=long_ago, error="no route")
    )
    fleet.database.write(lambda conn: conn.execute(late))
    any_server.reconciler.run_once()
    any_server.reconciler.run_once()
    ((reported_device, result),) = any_server.reports.results
    assert (reported_device, result.vip_id, result.version) == (device_id, "vip", (1, 1))
    assert result.error == "The agent on host host-1 has not confirmed the change within 300 s. Last error: no route"
    row = fleet.row("vip", device_id)
    assert row.due_at is not None
    fleet.settle("vip", device_id)


def test_a_removal_that_takes_too_long_says_so(server: Server) -> None:
    device_with(server.fleet, "vip")
    server.fleet.database.write(lambda conn: deployments.mark_removal(conn, ["vip"], clock.utcnow()))
    age(server.fleet, pending_since=clock.utcnow() - timedelta(seconds=301))
    server.reconciler.run_once()
    ((_, result),) = server.reports.results
    assert result.error == "The agent on host host-1 has not confirmed the removal within 300 s."
    assert not result.removed


def test_a_vip_on_a_device_without_an_agent_names_that_as_the_cause(server: Server) -> None:
    device_id = server.fleet.enrol(agent_host="nowhere")
    server.fleet.deploy("vip", device_id)
    age(server.fleet, pending_since=clock.utcnow() - timedelta(seconds=301))
    server.reconciler.run_once()
    ((_, result),) = server.reports.results
    assert result.error == "No agent drives the device."


def test_an_overdue_vip_that_cannot_be_recorded_does_not_stop_the_others(server: Server) -> None:
    device_with(server.fleet, "vip-1", "vip-2")
    server.reports.broken = {"vip-1"}
    age(server.fleet, pending_since=clock.utcnow() - timedelta(seconds=301))
    server.reconciler.run_once()
    assert [it.vip_id for _, it in server.reports.results] == ["vip-2"]
    assert len(server.fleet.bus.sent) == 2


def test_a_dead_agents_vips_are_cast_to_the_one_that_takes_over(any_server: Server) -> None:
    fleet = any_server.fleet
    device_id = device_with(fleet, "vip")
    fleet.settle("vip", device_id)
    fleet.report("host-2")
    fleet.silence("host-1")
    any_server.reconciler.run_once()
    assert fleet.hosts() == {device_id: "host-2"}
    assert fleet.bus.casts() == [("create", "host-2", "vip")]
    assert {host for host, _ in fleet.bus.resynced} == {"host-1", "host-2"}
    assert fleet.open() == {device_id}


def test_two_reconcilers_that_see_one_dead_agent_move_and_cast_everything_once(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    ids = [any_fleet.enrol() for _ in range(6)]
    for number, device_id in enumerate(ids):
        any_fleet.deploy(f"vip-{number}", device_id)
        any_fleet.settle(f"vip-{number}", device_id)
    any_fleet.report("host-2")
    any_fleet.silence("host-1")
    servers = [Server(Fleet(any_fleet.url)) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda server: server.reconciler.run_once(), servers))
    # One of them may have looked for due rows before the other had committed the last move.
    servers[0].reconciler.run_once()
    cast = sorted(cast for server in servers for cast in server.fleet.bus.casts())
    assert cast == [("create", "host-2", f"vip-{number}") for number in range(6)]
    assert {any_fleet.row(f"vip-{number}", device_id).version.epoch for number, device_id in enumerate(ids)} == {2}
    for server in servers:
        server.fleet.database.dispose()


def test_right_after_a_start_nothing_is_moved(fleet: Fleet) -> None:
    server = Server(fleet, fresh=True)
    device_id = device_with(fleet)
    fleet.report("host-2")
    fleet.silence("host-1")
    server.reconciler.run_once()
    assert fleet.hosts() == {device_id: "host-1"}
    server.clock.now += AGENT_DOWN_SECONDS
    server.reconciler.run_once()
    assert fleet.hosts() == {device_id: "host-2"}


def test_the_first_agent_to_be_heard_after_an_outage_does_not_get_everything(server: Server) -> None:
    fleet = server.fleet
    for host in ("host-1", "host-2"):
        fleet.report(host)
    ids = [fleet.enrol() for _ in range(4)]
    before = fleet.hosts()
    fleet.silence("host-1", "host-2")
    server.reconciler.run_once()
    assert fleet.open() == set()
    fleet.report("host-1")
    server.reconciler.run_once()
    assert fleet.hosts() == before
    fleet.report("host-2")
    server.clock.now += AGENT_DOWN_SECONDS
    server.reconciler.run_once()
    assert (fleet.hosts(), fleet.open()) == (before, set(ids))


@pytest.mark.parametrize("ahead", [600.0, -600.0])
def test_a_server_whose_clock_is_wrong_says_so_once_judges_nobody_and_goes_on_casting(
    any_server: Server, caplog: pytest.LogCaptureFixture, ahead: float
) -> None:
    fleet, database_clock = any_server.fleet, clock.DatabaseClock()
    blind = Reconciler(
        *(fleet.database, fleet.caster, fleet.assignments, any_server.reports, fleet.conf),
        monotonic=any_server.clock,
        database_clock=database_clock,
    )
    any_server.clock.now += AGENT_DOWN_SECONDS
    device_id = device_with(fleet, "vip")
    fleet.report("host-2")
    fleet.silence("host-1")
    age(fleet, pending_since=clock.utcnow() - timedelta(hours=1))
    database_clock.set(clock.Measurement(0, 0, 0, ahead))
    for _ in range(2):
        blind.run_once()
    assert (fleet.hosts(), fleet.open(), any_server.reports.results) == ({device_id: "host-1"}, {device_id}, [])
    assert fleet.bus.casts() == [("create", "host-1", "vip")], "a try too many does no harm"
    assert caplog.text.count("it declares nobody dead") == 1
    any_server.reconciler.run_once()
    assert fleet.hosts() == {device_id: "host-2"}, "another server, whose clock is right, does"


def test_an_outage_of_the_database_is_logged_once_and_survived(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    device_with(server.fleet, "vip")
    caplog.set_level("INFO")

    def away(_work: Callable[..., Any]) -> Any:
        raise Unavailable(dependency="The database", reason="connection refused")

    with monkeypatch.context() as outage:
        outage.setattr(server.fleet.database, "read", away)
        outage.setattr(server.fleet.database, "write", away)
        for _ in range(5):
            server.reconciler.run_once()
    warnings = [record for record in caplog.records if "cast_again" in record.getMessage() and record.levelname == "WARNING"]
    assert len(warnings) == 1
    server.reconciler.run_once()
    assert "cast_again works again" in caplog.text
    assert server.fleet.bus.casts() == [("create", "host-1", "vip")]


def test_a_broken_step_does_not_stop_the_others(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    device_with(server.fleet, "vip")

    def broken() -> None:
        raise RuntimeError("a bug")

    for name in ("assign_waiting", "take_over", "refresh_all"):
        monkeypatch.setattr(server.fleet.assignments, name, broken)
    server.reconciler.run_once()
    assert server.fleet.bus.casts() == [("create", "host-1", "vip")]


def test_it_runs_in_a_thread_until_it_is_stopped(server: Server) -> None:
    device_with(server.fleet, "vip")
    server.option("reconcile_interval_seconds", 1)
    server.reconciler.start()
    wait_for(lambda: server.fleet.bus.sent, 20, "the cast")
    server.reconciler.stop()
    server.reconciler.stop()
    assert server.fleet.bus.casts() == [("create", "host-1", "vip")]


def test_a_claimed_row_is_nobody_elses(any_fleet: Fleet) -> None:
    device_with(any_fleet, "vip")
    now = clock.utcnow()

    def claim(_attempts: int) -> Any:
        return now + timedelta(seconds=60)

    first = any_fleet.database.write(lambda conn: deployments.claim_due(conn, now, 10, claim, random.Random(1)))
    second = any_fleet.database.write(lambda conn: deployments.claim_due(conn, now, 10, claim, random.Random(1)))
    assert ([row.resource_id for row in first], second) == (["vip"], [])


def test_progress_short_of_the_end_postpones_the_time_out(any_fleet: Fleet) -> None:
    device_id = device_with(any_fleet, "vip")
    age(any_fleet, pending_since=clock.utcnow() - timedelta(seconds=600))
    any_fleet.database.write(lambda conn: deployments.bump(conn, ["vip"], clock.utcnow()))
    before = clock.utcnow()
    version = any_fleet.row("vip", device_id).version._replace(revision=1)
    assert not any_fleet.database.write(lambda conn: deployments.settle(conn, "vip", device_id, version))
    row = any_fleet.row("vip", device_id)
    assert row.pending_since is not None
    assert row.pending_since >= before - timedelta(milliseconds=1)
    assert (row.applied_revision, row.version.revision) == (1, 2)


@pytest.mark.parametrize("version", [(0, 1), (2, 1), (1, 0), (1, 2)])
def test_only_the_desired_version_settles(fleet: Fleet, version: tuple[int, int]) -> None:
    device_id = device_with(fleet, "vip")
    before = fleet.row("vip", device_id)
    stale = before.version._replace(epoch=version[0], revision=version[1])
    assert not fleet.database.write(lambda conn: deployments.settle(conn, "vip", device_id, stale))
    assert not fleet.database.write(lambda conn: deployments.fail(conn, "vip", device_id, stale, "x", clock.utcnow()))
    assert fleet.row("vip", device_id) == before
