"""What is sent to agents after a commit."""

from __future__ import annotations

import pytest

from lbaas_scheduler.db import deployments, device_agents
from lbaas_scheduler.devices.assignments import Move
from lbaas_scheduler.domain import clock
from lbaas_scheduler.plugins import casts
from lbaas_scheduler.sdk.conformance import documents
from tests.functional.registry.fleet import Fleet


def test_a_new_vip_is_created_a_known_one_updated_and_one_to_go_deleted(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    device_id = any_fleet.enrol()
    for vip in ("new", "known", "going", "settled"):
        any_fleet.deploy(vip, device_id)
    for vip in ("known", "settled"):
        any_fleet.settle(vip, device_id)
    any_fleet.database.write(lambda conn: deployments.bump(conn, ["known"], clock.utcnow()))
    any_fleet.database.write(lambda conn: deployments.mark_removal(conn, ["going"], clock.utcnow()))
    assert any_fleet.caster.cast(["new", "known", "going", "settled", "unheard-of"]) == set()
    assert any_fleet.bus.casts() == [("create", "host-1", "new"), ("delete", "host-1", "going"), ("update", "host-1", "known")]
    versions = {vip_id: version for _, _, _, vip_id, version in any_fleet.bus.sent}
    assert versions == {"new": (1, 1), "known": (1, 2), "going": (1, 2)}


def test_only_the_agent_of_the_device_is_told(fleet: Fleet) -> None:
    for host in ("host-1", "host-2", "host-3"):
        fleet.report(host)
    ids = [fleet.enrol() for _ in range(3)]
    for device_id in ids:
        fleet.deploy(f"v{device_id}"[:36], device_id)
    fleet.caster.cast([f"v{device_id}"[:36] for device_id in ids])
    hosts = fleet.hosts()
    assert {(host, device_id) for _, host, device_id, _, _ in fleet.bus.sent} == {(host, key) for key, host in hosts.items()}


def test_a_device_without_an_agent_makes_its_vips_wait_and_no_others(fleet: Fleet) -> None:
    lonely = fleet.enrol(agent_host="nowhere")
    fleet.report("host-1")
    device_id = fleet.enrol()
    fleet.deploy("waiting", lonely)
    fleet.deploy("vip", device_id)
    assert fleet.caster.cast(["waiting", "vip"]) == set()
    assert fleet.bus.casts() == [("create", "host-1", "vip")]
    assert fleet.row("waiting", lonely).due_at is not None


def test_one_poisoned_vip_never_stops_ninety_nine(fleet: Fleet) -> None:
    fleet.report("host-1")
    device_id = fleet.enrol()
    vips = [f"vip-{number:02}" for number in range(100)]
    for vip in vips:
        fleet.deploy(vip, device_id)
    fleet.poisoned = {"vip-42"}
    assert fleet.caster.cast(vips) == set()
    assert [vip_id for _, _, vip_id in fleet.bus.casts()] == [vip for vip in vips if vip != "vip-42"]
    assert fleet.bus.together == [20, 20, 20, 20, 19]


def test_large_pools_go_in_messages_of_a_size_that_brokers_take(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"vip-0": 5, "vip-1": 3, "vip-2": 20, "vip-3": 1, "vip-4": 9, "vip-5": 1}
    fleet.report("host-1")
    device_id = fleet.enrol()
    for vip in sizes:
        fleet.deploy(vip, device_id)
    made = {vip: documents.vip(id=vip, port=80, members=(documents.member(),) * size) for vip, size in sizes.items()}
    monkeypatch.setattr(fleet.caster, "_load_vips", lambda _, ids: {vip: made[vip] for vip in ids})
    monkeypatch.setattr(casts, "MAX_MEMBERS_PER_MESSAGE", 10)
    assert fleet.caster.cast(list(sizes)) == set()
    assert [vip for _, _, vip in fleet.bus.casts()] == list(sizes)
    assert fleet.bus.together == [2, 2]  # and two by themselves


def test_a_broker_that_is_away_is_noticed_once_and_what_waits_is_told(fleet: Fleet) -> None:
    fleet.report("host-1")
    device_id = fleet.enrol()
    for vip in ("one", "two"):
        fleet.deploy(vip, device_id)
    fleet.bus.away = True
    assert fleet.caster.cast(["one", "two"]) == {"one", "two"}
    fleet.caster.announce([Move(device_id, "host-1", "host-2")])
    assert not fleet.caster.tell_of(device_id, "host-1")
    assert (fleet.bus.sent, fleet.bus.resynced) == ([], [])


def test_both_agents_learn_of_a_move(fleet: Fleet) -> None:
    fleet.caster.announce([Move("device", "host-1", "host-2"), Move("other", None, "host-3")])
    assert fleet.bus.resynced == [("host-2", "device"), ("host-1", "device"), ("host-3", "other")]


def test_a_vip_that_moves_is_sent_to_both_devices(fleet: Fleet) -> None:
    fleet.report("host-1")
    source, target = fleet.enrol(), fleet.enrol()
    fleet.deploy("vip", source)
    fleet.database.write(lambda conn: deployments.mark_removal(conn, ["vip"], clock.utcnow(), device_id=source))
    fleet.deploy("vip", target)
    fleet.caster.cast(["vip"])
    assert {(verb, device_id) for verb, _, device_id, _, _ in fleet.bus.sent} == {("delete", source), ("create", target)}
    assert len(fleet.database.read(lambda conn: device_agents.by_devices(conn, [source, target]))) == 2
