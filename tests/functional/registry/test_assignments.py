"""Which agent drives which device."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import device_agents, models
from lbaas_scheduler.devices.assignments import Move
from lbaas_scheduler.errors import Conflict
from tests.functional.registry.fleet import Fleet


def per_host(fleet: Fleet) -> Counter[str]:
    return Counter(fleet.hosts().values())


def writes(fleet: Fleet) -> list[str]:
    """Statements that change something, from now on."""
    sent: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.lstrip().upper().startswith(("SELECT", "PRAGMA", "BEGIN")):
            sent.append(statement)

    sa.event.listen(fleet.database.engine, "before_cursor_execute", note)
    return sent


def test_new_devices_are_spread_over_the_agents_that_report_their_type(any_fleet: Fleet) -> None:
    for host in ("host-1", "host-2"):
        any_fleet.report(host)
    any_fleet.report("host-3", ["haproxy"])
    ids = {any_fleet.enrol() for _ in range(6)}
    assert per_host(any_fleet) == {"host-1": 3, "host-2": 3}
    assert any_fleet.open() == ids


def test_a_device_without_an_agent_waits_closed_until_one_reports(any_fleet: Fleet) -> None:
    device_id = any_fleet.enrol()
    any_fleet.report("host-1", ["haproxy"])
    assert any_fleet.hosts() == {}
    assert any_fleet.open() == set()
    any_fleet.report("host-2", first=True)
    assert any_fleet.hosts() == {device_id: "host-2"}
    assert any_fleet.open() == {device_id}
    assert any_fleet.bus.resynced == [("host-2", device_id)]


def test_a_pinned_device_waits_for_its_host_and_stays_there(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    device_id = any_fleet.enrol(agent_host="host-2")
    assert any_fleet.hosts() == {}
    any_fleet.report("host-2")
    assert any_fleet.hosts() == {device_id: "host-2"}
    any_fleet.silence("host-2")
    assert any_fleet.assignments.take_over() == []
    assert any_fleet.assignments.refresh_all() == 1
    assert any_fleet.hosts() == {device_id: "host-2"}
    assert any_fleet.open() == set()
    any_fleet.report("host-2")
    assert any_fleet.open() == {device_id}


def test_a_pinned_device_whose_agent_cannot_drive_it_is_closed(fleet: Fleet) -> None:
    fleet.report("host-1", ["haproxy"])
    device_id = fleet.enrol(agent_host="host-1")
    assert fleet.hosts() == {device_id: "host-1"}
    assert fleet.open() == set()


def test_pinning_a_device_moves_it_with_all_that_is_on_it(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    device_id = any_fleet.enrol()
    any_fleet.deploy("vip", device_id)
    any_fleet.settle("vip", device_id)
    any_fleet.report("host-2")
    any_fleet.registry.update(device_id, {"agent_host": "host-2"})
    row = any_fleet.row("vip", device_id)
    assert any_fleet.hosts() == {device_id: "host-2"}
    assert (row.version.epoch, row.version.revision, row.applied_revision, row.attempts) == (2, 1, 0, 0)
    assert row.due_at is not None
    assert any_fleet.open() == {device_id}


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("host-2", "the agent on host-2 is dead: its last report arrived at 20"),
        ("host-3", "the agent on host-3 has no driver for devices of type fake"),
        ("host-4", "no agent has ever reported from host-4"),
    ],
)
def test_pinning_a_device_to_an_agent_that_cannot_take_it_is_refused_and_changes_nothing(
    any_fleet: Fleet, host: str, why: str
) -> None:
    any_fleet.report("host-1")
    device_id = any_fleet.enrol()
    any_fleet.deploy("vip", device_id)
    any_fleet.settle("vip", device_id)
    any_fleet.report("host-2")
    any_fleet.silence("host-2")
    any_fleet.report("host-3", ["haproxy"])
    before = any_fleet.row("vip", device_id), any_fleet.registry.get(device_id)
    with pytest.raises(Conflict, match=f"stays with the agent on host-1, since {why}"):
        any_fleet.registry.update(device_id, {"agent_host": host, "name": "renamed"})
    assert (any_fleet.row("vip", device_id), any_fleet.registry.get(device_id)) == before
    assert (any_fleet.hosts(), any_fleet.open()) == ({device_id: "host-1"}, {device_id})


def test_a_pin_that_nobody_else_is_in_the_way_of_may_name_a_host_that_is_yet_to_come(fleet: Fleet) -> None:
    waiting = fleet.enrol()
    fleet.registry.update(waiting, {"agent_host": "host-1"})
    fleet.report("host-1")
    assert fleet.hosts() == {waiting: "host-1"}
    fleet.silence("host-1")
    fleet.registry.update(waiting, {"agent_host": None})
    fleet.registry.update(waiting, {"agent_host": "host-1"})
    assert fleet.hosts() == {waiting: "host-1"}, "its agent is dead, and is the one that has what is on it"


@pytest.mark.parametrize("drivers", [["fake"], ["haproxy"]])
def test_a_pinned_device_that_serves_elsewhere_goes_home_only_to_a_live_agent_with_its_driver(
    any_fleet: Fleet, drivers: list[str]
) -> None:
    """As after a restored backup, or a pin that was set when its agent was well."""
    any_fleet.report("host-1")
    device_id = any_fleet.enrol()
    any_fleet.report("host-2", drivers)
    pinned = sa.update(models.devices).values(agent_host="host-2")
    any_fleet.database.write(lambda conn: conn.execute(pinned))
    if drivers == ["fake"]:
        any_fleet.silence("host-2")
    assert any_fleet.assignments.take_over() == []
    any_fleet.registry.update(device_id, {"name": "renamed"})
    assert any_fleet.hosts() == {device_id: "host-1"}
    any_fleet.report("host-2")
    assert any_fleet.assignments.take_over() == [Move(device_id, "host-1", "host-2")]


def test_a_dead_agents_devices_go_to_live_ones_spread_and_once_each(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    ids = [any_fleet.enrol() for _ in range(10)]
    for number, device_id in enumerate(ids):
        any_fleet.deploy(f"vip-{number}", device_id)
        any_fleet.settle(f"vip-{number}", device_id)
    any_fleet.report("host-2")
    any_fleet.report("host-3")
    any_fleet.silence("host-1")
    moves = any_fleet.assignments.take_over()
    assert {move.old_host for move in moves} == {"host-1"}
    assert len(moves) == 10
    assert per_host(any_fleet) == {"host-2": 5, "host-3": 5}
    assert {any_fleet.row(f"vip-{number}", device_id).version.epoch for number, device_id in enumerate(ids)} == {2}
    assert any_fleet.open() == set(ids)
    assert any_fleet.assignments.take_over() == []
    any_fleet.report("host-1")
    assert any_fleet.assignments.take_over() == []


def test_several_servers_that_see_one_dead_agent_move_each_device_once(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    ids = [any_fleet.enrol() for _ in range(8)]
    for device_id in ids:
        any_fleet.deploy(f"v-{device_id}"[:36], device_id)
    for host in ("host-2", "host-3"):
        any_fleet.report(host)
    any_fleet.silence("host-1")
    servers = [Fleet(any_fleet.url) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        moves = [move for found in pool.map(lambda server: server.assignments.take_over(), servers) for move in found]
    assert sorted(move.device_id for move in moves) == sorted(ids)
    bindings = any_fleet.database.read(lambda conn: device_agents.by_devices(conn, ids))
    assert {binding.epoch for binding in bindings.values()} == {2}
    assert {any_fleet.row(f"v-{device_id}"[:36], device_id).version.epoch for device_id in ids} == {2}
    assert "host-1" not in any_fleet.hosts().values()
    for server in servers:
        server.database.dispose()


def test_without_a_spare_agent_the_old_binding_stays_and_the_device_closes(fleet: Fleet) -> None:
    fleet.report("host-1")
    fleet.report("host-2", ["haproxy"])
    device_id = fleet.enrol()
    fleet.deploy("vip", device_id)
    fleet.silence("host-1")
    assert fleet.assignments.take_over() == []
    assert fleet.assignments.refresh_all() == 1
    assert (fleet.hosts(), fleet.open()) == ({device_id: "host-1"}, set())
    assert fleet.row("vip", device_id).version.epoch == 1
    fleet.report("host-1")
    assert fleet.open() == {device_id}


def test_what_waits_for_want_of_an_agent_goes_on_with_the_first_that_appears(any_fleet: Fleet) -> None:
    """Any agent may drive any device of its types: only a pin says that it must be this one."""
    any_fleet.report("host-1")
    free, pinned = any_fleet.enrol(), any_fleet.enrol(agent_host="host-1")
    for device_id in (free, pinned):
        any_fleet.deploy(f"on-{device_id}"[:36], device_id)
        any_fleet.settle(f"on-{device_id}"[:36], device_id)
    any_fleet.silence("host-1")
    assert any_fleet.assignments.take_over() == []
    any_fleet.assignments.refresh_all()
    assert any_fleet.open() == set()
    any_fleet.report("host-2", first=True)
    assert any_fleet.assignments.take_over() == [Move(free, "host-1", "host-2")]
    assert any_fleet.open() == {free}
    parked, moved = (any_fleet.row(f"on-{device_id}"[:36], device_id) for device_id in (pinned, free))
    assert (parked.version.epoch, parked.due_at) == (1, None)
    assert moved.version.epoch == 2
    assert moved.due_at is not None, "the new agent is told of what is on the device"


def test_devices_that_nobody_can_take_do_not_stand_in_the_way_of_others(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lbaas_scheduler.devices.assignments.BATCH", 2)
    fleet.report("host-1")
    ids = [fleet.enrol() for _ in range(5)]
    other_type = sa.update(models.devices).where(models.devices.c.id.in_(sorted(ids)[:3])).values(device_type="rare")
    fleet.database.write(lambda conn: conn.execute(other_type))
    fleet.report("host-2")
    fleet.silence("host-1")
    assert sorted(move.device_id for move in fleet.assignments.take_over()) == sorted(ids)[3:]


def test_an_administrators_disabling_an_agent_moves_nothing_and_closes_its_devices(fleet: Fleet) -> None:
    fleet.report("host-1")
    device_id = fleet.enrol()
    fleet.report("host-2")
    fleet.agents.update(fleet.agent_id("host-1"), {"admin_state_up": False})
    assert fleet.open() == set()
    assert fleet.bus.updated == [("host-1", False)]
    fleet.silence("host-1")
    assert fleet.assignments.take_over() == []
    assert fleet.hosts() == {device_id: "host-1"}
    fleet.report("host-1")
    assert fleet.open() == set()
    fleet.agents.update(fleet.agent_id("host-1"), {"admin_state_up": True})
    assert fleet.open() == {device_id}


def test_a_disabled_agent_gets_no_devices(fleet: Fleet) -> None:
    fleet.report("host-1")
    fleet.report("host-2")
    fleet.agents.update(fleet.agent_id("host-1"), {"admin_state_up": False})
    for _ in range(4):
        fleet.enrol()
    assert per_host(fleet) == {"host-2": 4}


def test_an_agent_that_no_longer_reports_a_type_hands_its_devices_over(fleet: Fleet) -> None:
    fleet.report("host-1")
    device_id = fleet.enrol()
    fleet.report("host-2")
    fleet.report("host-1", ["haproxy"])
    assert fleet.open() == set()
    assert fleet.assignments.take_over() == [Move(device_id, "host-1", "host-2")]
    assert fleet.open() == {device_id}


def test_an_agent_without_a_driver_list_keeps_its_devices_for_when_it_has_one_again(fleet: Fleet) -> None:
    fleet.report("host-1")
    device_id = fleet.enrol()
    fleet.report("host-2")
    fleet.report("host-1", [])
    assert fleet.open() == set()
    assert fleet.assignments.take_over() == []
    fleet.report("host-1")
    assert fleet.open() == {device_id}


def test_a_healthy_fleet_costs_no_write(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    for _ in range(3):
        any_fleet.enrol()
    sent = writes(any_fleet)
    assert any_fleet.assignments.assign_waiting() == []
    assert any_fleet.assignments.take_over() == []
    assert any_fleet.assignments.refresh_all() == 0
    assert sent == []
