"""Placing, giving back and changing what a resource holds, on every database."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import device_load, placements
from lbaas_scheduler.db.models import device_networks, service_types
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Interface
from lbaas_scheduler.domain.requests import Verdict
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus
from lbaas_scheduler.domain.trail import Decision
from lbaas_scheduler.errors import InvalidRequest, NoValidDevice
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from tests.database import counted
from tests.factories import add_agent, add_devices, new_device, new_request
from tests.fakes import ScriptedHandler
from tests.functional.placement.conftest import (
    AGENT_DOWN_SECONDS,
    codes,
    drift,
    new_placer,
    snapshot,
    used,
    used_own,
)


def test_a_placed_resource_holds_what_it_demands(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", capacities={"CONNECTIONS": 100, "CUSTOM_SSL_TPS": 50}))
    decision = placer.place(new_request("vip", demand={"VIPS": 1, "CONNECTIONS": 30, "CUSTOM_SSL_TPS": 7}, networks=("net",)))
    assert (decision.device_id, decision.device_type, decision.agent_host) == ("a", "fake", "agent-1")
    assert (decision.score, decision.epoch, decision.trail.algorithm) == (50.0, 1, "least_loaded")
    assert (used(database, "a"), used(database, "a", "CONNECTIONS"), used_own(database, "a", "CUSTOM_SSL_TPS")) == (1, 30, 7)
    stored = database.read(lambda conn: placements.get(conn, "vip"))
    assert stored is not None
    assert (stored.device_id, stored.amounts["CONNECTIONS"], stored.networks) == ("a", 30, ("net",))
    assert stored.trail["examined"] == 1


def test_what_is_given_back_is_as_if_it_had_never_been(database: Database, placer: Placer) -> None:
    interfaces = (Interface("eth0", max_vlans=1),)
    add_devices(database, new_device("a", capacities={"CUSTOM_SSL_TPS": 50}, interfaces=interfaces))
    before = snapshot(database)
    for name in ("one", "two"):
        placer.place(new_request(name, demand={"VIPS": 1, "CUSTOM_SSL_TPS": 7}, networks=("net",)))
    assert snapshot(database) != before
    for name in ("one", "two"):
        assert database.write(lambda conn, name=name: placements.release(conn, name)) is True
    assert snapshot(database) == before


def test_giving_back_may_be_repeated_and_needs_no_placement(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a"))
    placer.place(new_request("vip"))
    assert [database.write(lambda conn: placements.release(conn, "vip")) for _ in range(3)] == [True, False, False]
    assert database.write(lambda conn: placements.release(conn, "never-placed")) is False
    assert used(database, "a") == 0


def test_a_full_device_opens_again_when_something_leaves(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", vips=1))
    placer.place(new_request("one"))
    with pytest.raises(NoValidDevice):
        placer.place(new_request("two"))
    database.write(lambda conn: placements.release(conn, "one"))
    assert placer.place(new_request("two")).device_id == "a"


def test_a_repeated_placement_of_the_same_resource_is_the_same_placement(database: Database, placer: Placer) -> None:
    """The answer to a COMMIT can get lost; the transaction is then repeated."""
    add_devices(database, new_device("a"), new_device("b"))
    first = placer.place(new_request("vip"))
    again = placer.place(new_request("vip"))
    assert (again.device_id, again.agent_host) == (first.device_id, "agent-1")
    assert used(database, "a") + used(database, "b") == 1


def test_what_belongs_to_the_placement_is_written_with_it(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a"))
    placer.place(new_request("vip"), within=write_marker)
    assert markers(database) == ["vip on a"]


def test_a_failure_of_what_belongs_to_the_placement_undoes_all_and_comes_out(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", capacities={"CUSTOM_SSL_TPS": 50}), new_device("b", capacities={"CUSTOM_SSL_TPS": 50}))
    before = snapshot(database)
    tried = []

    def fail(conn: sa.Connection, decision: Decision) -> None:
        write_marker(conn, decision)
        tried.append(decision.device_id)
        raise InvalidRequest(reason="no address is left")

    with pytest.raises(InvalidRequest, match="no address is left"):
        placer.place(new_request("vip", demand={"VIPS": 1, "CUSTOM_SSL_TPS": 1}, networks=("net",)), within=fail)
    assert len(tried) == 1
    assert (snapshot(database), markers(database)) == (before, [])
    assert database.read(lambda conn: placements.get(conn, "vip")) is None


def write_marker(conn: sa.Connection, decision: Decision) -> None:
    text = f"{decision.resource_id} on {decision.device_id}"
    conn.execute(sa.insert(service_types).values(id=decision.resource_id, name=text, enabled=True, created_at=utcnow()))


def markers(database: Database) -> list[str]:
    return list(database.read(lambda conn: conn.scalars(sa.select(service_types.c.name)).all()))


def test_nothing_that_could_be_wrong_with_a_device_goes_unnamed(database: Database) -> None:
    add_agent(database, "dead", heartbeat_at=utcnow() - timedelta(seconds=AGENT_DOWN_SECONDS + 1))
    add_agent(database, "resting", up=False)
    add_devices(
        database,
        new_device("full", vips=0),
        new_device("draining", admin_state=AdminState.DRAINING),
        new_device("disabled", admin_state=AdminState.DISABLED),
        new_device("offline", status=DeviceStatus.OFFLINE),
        new_device("untyped", device_type="other"),
        new_device("private", tenant_id="other", shared=False),
        new_device("far", zone="b"),
        new_device("firewall", service="Firewall"),
        new_device("refused", extra={"refuse": True}),
        new_device("excluded"),
    )
    add_devices(database, new_device("orphan"), agent=None)
    add_devices(database, new_device("silent"), agent="dead")
    add_devices(database, new_device("rested"), agent="resting")
    handler = ScriptedHandler(is_good=lambda device, _: Verdict(not device.device.extra, "is meshed elsewhere"))
    request = new_request(device_types=frozenset({"fake"}), zone="", exclude=frozenset({"excluded"}))
    with pytest.raises(NoValidDevice) as error:
        new_placer(database, handler).place(request)
    assert codes(error) == {
        "capacity.VIPS": 1,
        "device.draining": 1,
        "device.disabled": 1,
        "device.offline": 1,
        "device_type": 1,
        "tenancy": 1,
        "zone": 1,
        "agent.none": 1,
        "agent.down": 1,
        "agent.disabled": 1,
        "handler.fake": 1,
        "excluded": 1,
    }
    reasons = {it["device_id"]: it["reason"] for it in error.value.kwargs["trail"]["rejections"]}
    assert reasons["full"] == "has no room for 1 VIPS"
    assert reasons["refused"] == "is meshed elsewhere"
    assert reasons["silent"] == "its agent does not report"
    assert len(reasons) == 12
    assert "1 × capacity.VIPS" in error.value.message


def test_an_empty_fleet_is_a_reason_too(placer: Placer) -> None:
    with pytest.raises(NoValidDevice, match="no device of the wanted types is registered"):
        placer.place(new_request())


def test_a_large_fleet_is_counted_whole_and_named_in_part(database: Database, placer: Placer) -> None:
    add_devices(database, *(new_device(vips=0) for _ in range(50)))
    with pytest.raises(NoValidDevice) as error:
        placer.place(new_request())
    assert codes(error) == {"capacity.VIPS": 50}
    assert len(error.value.kwargs["trail"]["rejections"]) == 20


def test_devices_that_nobody_had_time_to_look_at_are_counted(database: Database) -> None:
    add_devices(database, *(new_device() for _ in range(5)))
    picky = new_placer(database, ScriptedHandler(is_good=lambda *_: Verdict.no("no")), page_size=1, max_rounds=2)
    with pytest.raises(NoValidDevice) as error:
        picky.place(new_request())
    assert codes(error) == {"handler.fake": 2, "unexamined": 3}


def test_a_device_of_a_new_class_is_seen_at_once_by_every_server(database: Database) -> None:
    servers = [new_placer(database), new_placer(database)]
    with pytest.raises(NoValidDevice):
        servers[1].place(new_request())
    add_devices(database, new_device("a", zone="a", vips=2))
    assert [server.place(new_request()).device_id for server in servers] == ["a", "a"]
    add_devices(database, new_device("b", zone="b", vips=100))
    assert [server.place(new_request()).device_id for server in servers] == ["b", "b"]


def test_networks_take_a_vlan_of_an_interface_once(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", interfaces=(Interface("eth0", 1), Interface("eth1", 1))))
    for networks in (("net-1",), ("net-1",), ("net-2", "net-1")):
        placer.place(new_request(networks=networks))
    assert wired(database) == {("net-1", "eth0", 3), ("net-2", "eth1", 1)}
    before = snapshot(database)
    with pytest.raises(NoValidDevice) as error:
        placer.place(new_request(networks=("net-1", "net-3")))
    assert codes(error) == {"network.vlans": 1}
    assert snapshot(database) == before


def test_a_whole_page_of_devices_without_a_vlan_left_does_not_hide_the_next_one(database: Database) -> None:
    add_devices(database, *(new_device(f"d{number:02}", interfaces=(Interface("eth0", 1),)) for number in range(33)))
    placer = new_placer(database, algorithm="first_available", page_size=32, max_rounds=2)
    for number in range(32):
        placer.place(new_request(device_hint=f"d{number:02}", networks=(f"net-{number}",)))
    before = snapshot(database)
    decision = placer.place(new_request("vip", networks=("net-x",)))
    assert (decision.device_id, decision.trail.rounds, dict(decision.trail.dropped)) == ("d32", 2, {"network.vlans": 32})
    assert decision.trail.rejections[0].reason == "has no VLAN left on any interface for a further network"
    database.write(lambda conn: placements.release(conn, "vip"))
    assert snapshot(database) == before
    # A network that is wired costs nothing more, and beyond the rounds nobody looks.
    assert new_placer(database, algorithm="wired").place(new_request(networks=("net-7",))).device_id == "d07"
    with pytest.raises(NoValidDevice) as error:
        new_placer(database, algorithm="first_available", page_size=32, max_rounds=1).place(new_request(networks=("net-y",)))
    assert codes(error) == {"network.vlans": 32, "unexamined": 1}


def test_a_device_without_registered_interfaces_takes_any_number_of_networks(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a"))
    placer.place(new_request(networks=tuple(f"net-{number}" for number in range(9))))
    assert len(wired(database)) == 9


def wired(database: Database) -> set[Any]:
    c = device_networks.c
    rows = database.read(lambda conn: conn.execute(sa.select(c.network_id, c.interface, c.vips)).all())
    return {tuple(row) for row in rows}


def test_a_placed_resource_may_demand_more_or_less(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", capacities={"CONNECTIONS": 100, "CUSTOM_SSL_TPS": 50}))
    placer.place(new_request("vip", demand={"VIPS": 1, "CONNECTIONS": 60}))
    assert adjust(database, {"VIPS": 1, "CONNECTIONS": 20, "CUSTOM_SSL_TPS": 50}) is None
    assert (used(database, "a", "CONNECTIONS"), used_own(database, "a", "CUSTOM_SSL_TPS")) == (20, 50)
    database.write(lambda conn: placements.release(conn, "vip"))
    assert (used(database, "a", "CONNECTIONS"), used_own(database, "a", "CUSTOM_SSL_TPS")) == (0, 0)


def test_a_change_that_does_not_fit_changes_nothing(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", capacities={"CONNECTIONS": 100, "CUSTOM_SSL_TPS": 50}))
    placer.place(new_request("vip", demand={"VIPS": 1, "CONNECTIONS": 60}))
    before = snapshot(database)
    assert adjust(database, {"VIPS": 1, "CONNECTIONS": 70, "CUSTOM_SSL_TPS": 51}) == "capacity.CUSTOM_SSL_TPS"
    assert adjust(database, {"VIPS": 1, "CONNECTIONS": 101}) == "capacity.CONNECTIONS"
    assert snapshot(database) == before


def test_a_draining_device_still_takes_changes_of_what_it_holds(database: Database, placer: Placer) -> None:
    add_devices(database, new_device("a", vips=1, capacities={"CONNECTIONS": 100}))
    placer.place(new_request("vip"))
    database.write(lambda conn: device_load.set_schedulable(conn, ["a"], False))
    assert adjust(database, {"VIPS": 1, "CONNECTIONS": 100}) is None


def adjust(database: Database, amounts: dict[str, int]) -> str | None:
    return database.write(lambda conn: placements.adjust(conn, "vip", amounts))


def test_load_spreads_evenly(database: Database, placer: Placer) -> None:
    add_devices(database, *(new_device(name) for name in "abcde"))
    spread = Counter(placer.place(new_request()).device_id for _ in range(40))
    assert set(spread.values()) == {8}
    assert drift(database) == {}


@pytest.mark.parametrize("algorithm", ["first_available", "chance", "least_loaded"])
def test_the_number_of_statements_does_not_depend_on_the_size_of_the_fleet(database: Database, algorithm: str) -> None:
    placer = new_placer(database, algorithm=algorithm, page_size=4)
    sent = {}
    for size in (1, 20, 40):
        add_devices(database, *(new_device(vips=1000, interfaces=(Interface("eth0"),)) for _ in range(size)))
        with counted(database) as statements:
            placer.place(new_request(networks=(f"net-{size}",)))
        sent[size] = [it for it in statements if not it.startswith("BEGIN") and not COLD.search(it)]
    # Page; claim, is it wired, wired interfaces, wire it, placement. The first one also reads the classes.
    assert [len(it) for it in sent.values()] == [7, 6, 6], sent


COLD = re.compile(r"\sFROM (devices|device_capacities)\s+WHERE|^SELECT device_load.device_id\s+FROM device_load")
"""What is cold about a device is read once: three statements for all new ones of a page and those that will be next."""
