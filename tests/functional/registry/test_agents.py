"""Agents report, are looked at, and go."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import models
from lbaas_scheduler.domain import clock
from lbaas_scheduler.errors import AgentNotFound, Conflict, InvalidRequest
from tests.functional.registry.fleet import AGENT_DOWN_SECONDS, Fleet


def count_writes(fleet: Fleet) -> list[str]:
    sent: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if "UPDATE agents" in statement or "INSERT INTO agents" in statement:
            sent.append(statement)

    sa.event.listen(fleet.database.engine, "before_cursor_execute", note)
    return sent


def test_first_reports_of_one_agent_at_two_servers_make_one_agent(any_fleet: Fleet) -> None:
    servers = [Fleet(any_fleet.url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda server: server.report("host-1", first=True), servers))
    assert [agent["host"] for agent in any_fleet.agents.list()] == ["host-1"]
    assert len(any_fleet.raw(models.agent_drivers)) == 1
    for server in servers:
        server.database.dispose()


def test_an_agent_is_shown_as_v1_clients_know_it(fleet: Fleet) -> None:
    fleet.report("host-1", ["fake", "haproxy"])
    (shown,) = fleet.agents.list()
    assert shown == fleet.agents.get(shown["id"])
    assert {
        key: shown[key]
        for key in ("agent_type", "binary", "topic", "host", "admin_state_up", "alive", "description", "configurations")
    } == {
        "agent_type": "Loadbalancer agent",
        "binary": "lbaas-scheduler-agent",
        "topic": "lbaas_scheduler_agent",
        "host": "host-1",
        "admin_state_up": True,
        "alive": True,
        "description": "",
        "configurations": {"device_drivers": ["fake", "haproxy"], "devices": 0},
    }
    fleet.silence("host-1")
    assert fleet.agents.get(shown["id"])["alive"] is False
    assert [it["host"] for it in fleet.agents.list({"alive": ["False"]})] == ["host-1"]
    assert fleet.agents.list({"host": ["host-2"]}) == []
    with pytest.raises(InvalidRequest, match="Unknown filter 'colour'"):
        fleet.agents.list({"colour": ["red"]})


@pytest.mark.parametrize(
    "configurations",
    [{}, None, "x", {"device_drivers": None}, {"device_drivers": "haproxy"}, {"device_drivers": [1]}, {"device_drivers": [""]}],
)
def test_a_report_without_a_driver_list_harms_nobody_else(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, configurations: object
) -> None:
    fleet.agents.report({"host": "broken", "configurations": configurations})
    fleet.report("host-1")
    device_id = fleet.enrol()
    assert "the agent on broken has no list" in caplog.text
    assert fleet.hosts() == {device_id: "host-1"}
    assert [agent["host"] for agent in fleet.agents.list()] == ["broken", "host-1"]


@pytest.mark.parametrize("state", [None, [], "x", {}, {"host": None}, {"host": ""}, {"host": 7}, {"host": "h" * 256}])
def test_a_report_from_nobody_is_ignored(fleet: Fleet, caplog: pytest.LogCaptureFixture, state: object) -> None:
    fleet.agents.report(state)
    assert "without a host name is ignored" in caplog.text
    assert fleet.agents.list() == []


@pytest.mark.parametrize("started_at", ["yesterday", 7, None, "2020-01-01T00:00:00", "2999-01-01T00:00:00+00:00"])
def test_an_odd_time_in_a_report_is_no_reason_to_refuse_it(fleet: Fleet, started_at: object) -> None:
    fleet.agents.report(
        {"host": "host-1", "configurations": {"device_drivers": ["fake"]}, "started_at": started_at, "sent_at": started_at}
    )
    assert fleet.agents.list()[0]["alive"] is True


def test_a_report_counts_from_its_arrival_whatever_the_clock_of_its_host_says(any_fleet: Fleet) -> None:
    for host, ago in (("right", 0), ("behind", 7200), ("ahead", -7200)):
        any_fleet.report(host, ago=ago)
    heard = [agent["heartbeat_timestamp"] for agent in any_fleet.agents.list()]
    assert {agent["host"]: agent["alive"] for agent in any_fleet.agents.list()} == {"ahead": True, "behind": True, "right": True}
    assert max(heard) < (clock.utcnow() + timedelta(seconds=1)).isoformat()
    any_fleet.silence("behind", "ahead")
    assert [agent["host"] for agent in any_fleet.agents.list() if agent["alive"]] == ["right"], (
        "no clock makes a dead agent live on"
    )


def test_an_agent_whose_clock_is_set_back_lives_on(fleet: Fleet) -> None:
    fleet.report("host-1", ago=-3600)
    fleet.silence("host-1")
    fleet.report("host-1")
    assert fleet.agents.list()[0]["alive"] is True


def test_agents_are_heard_at_once_after_the_databases_clock_was_set_back(
    any_fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = clock.utcnow()
    monkeypatch.setattr(clock, "utcnow", lambda: began + timedelta(hours=1))
    fleet = Fleet(any_fleet.url)
    fleet.report("host-1")
    monkeypatch.setattr(clock, "utcnow", lambda: began)
    fleet.agents = fleet.new_directory(lambda: time.monotonic() + AGENT_DOWN_SECONDS)
    fleet.report("host-1")
    fleet.report("host-2")
    assert {agent["host"]: agent["heartbeat_timestamp"] for agent in fleet.agents.list()} == {
        host: began.isoformat() for host in ("host-1", "host-2")
    }
    monkeypatch.setattr(clock, "utcnow", lambda: began + timedelta(seconds=AGENT_DOWN_SECONDS + 1))
    assert {agent["alive"] for agent in fleet.agents.list()} == {False}
    fleet.database.dispose()


def test_a_report_that_was_overtaken_by_a_newer_one_changes_nothing(fleet: Fleet) -> None:
    fleet.report("host-1", ["fake", "haproxy"])
    fleet.report("host-1", ["fake"], ago=5)
    assert fleet.agents.list()[0]["configurations"]["device_drivers"] == ["fake", "haproxy"]


def test_two_agents_of_one_name_are_pointed_out_once_and_restarts_are_none(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    early, late, latest = (f"2012-11-30T00:00:0{second}+00:00" for second in (1, 2, 3))
    for started_at in (early, early, late, late, latest):
        fleet.report("restarted", started_at=started_at)
    fleet.report("restarted", started_at=late, ago=5)  # one that was under way for long
    fleet.report("clock-set-back", started_at=late)
    for _ in range(3):
        fleet.report("clock-set-back", started_at=early)
    assert "call themselves" not in caplog.text
    for started_at in (early, late, early, late, early, late):
        fleet.report("shared", started_at=started_at)
    assert caplog.text.count("Two agents call themselves shared") == 1


def test_of_a_storm_of_reports_only_few_are_written(fleet: Fleet) -> None:
    fleet.report("host-1", first=True)
    written = count_writes(fleet)
    for _ in range(50):
        fleet.report("host-1")
    assert written == []
    fleet.report("host-1", ["fake", "haproxy"])
    assert len(written) == 1


def test_an_agent_is_told_when_an_administrator_disables_it_and_only_then(fleet: Fleet) -> None:
    fleet.report("host-1")
    agent_id = fleet.agent_id("host-1")
    assert fleet.agents.update(agent_id, {"description": "rack 4"})["description"] == "rack 4"
    fleet.agents.update(agent_id, {"admin_state_up": True})
    assert fleet.bus.updated == []
    assert fleet.agents.update(agent_id, {"admin_state_up": False})["admin_state_up"] is False
    assert fleet.bus.updated == [("host-1", False)]
    fleet.bus.away = True
    assert fleet.agents.update(agent_id, {"admin_state_up": True})["admin_state_up"] is True


@pytest.mark.parametrize(
    "changes", [{"host": "x"}, {"admin_state_up": "yes"}, {"description": 7}, {"description": "x" * 256}, [1]]
)
def test_a_wrong_change_of_an_agent_is_refused(fleet: Fleet, changes: object) -> None:
    fleet.report("host-1")
    with pytest.raises(InvalidRequest):
        fleet.agents.update(fleet.agent_id("host-1"), changes)  # type: ignore[arg-type]


def test_an_agent_goes_only_when_its_devices_have_somewhere_to_go(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    device_id = any_fleet.enrol()
    agent_id = any_fleet.agent_id("host-1")
    with pytest.raises(Conflict, match=r"drives 1 device\(s\) that no other live agent can take"):
        any_fleet.agents.delete(agent_id)
    assert any_fleet.hosts() == {device_id: "host-1"}
    any_fleet.report("host-2")
    any_fleet.agents.delete(agent_id)
    assert any_fleet.hosts() == {device_id: "host-2"}
    assert any_fleet.open() == {device_id}
    assert ("host-1", device_id) in any_fleet.bus.resynced
    with pytest.raises(AgentNotFound):
        any_fleet.agents.get(agent_id)
    with pytest.raises(AgentNotFound):
        any_fleet.agents.delete(agent_id)
