"""Devices come, change and go."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import device_load, devices, models, placements, sched_classes
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.devices.secrets import Vault, generate_key
from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.statuses import DeviceStatus
from lbaas_scheduler.errors import (
    ConfigurationError,
    DeviceInUse,
    DeviceNotFound,
    DriverError,
    InvalidRequest,
    StaleGeneration,
    UnknownDeviceType,
)
from lbaas_scheduler.sdk.handlers import DeviceHandler
from tests.factories import new_request
from tests.functional.registry.fleet import KEY, SERVICE, Fleet

PASSWORD = "hunter2-ever-so-secret"
MANAGEMENT = {"address": "192.0.2.1", "port": 443, "user": "root", "password": PASSWORD, "api_token": "t0ken", "region": "north"}


class Strict(DeviceHandler):
    """Does as it is told when it is asked to check a device; keeps what it was shown."""

    device_type = "strict"
    traits = frozenset({traits.PROTOCOL_TCP, traits.PROTOCOL_HTTP})

    def __init__(self, verdict: Any = None) -> None:
        self.verdict = verdict
        self.seen: list[Device] = []

    def validate_device(self, device: Device) -> None:
        self.seen.append(device)
        if callable(self.verdict):
            self.verdict(device)


def strict_fleet(fleet: Fleet, verdict: Any = None) -> tuple[Registry, Strict]:
    handler = Strict(verdict)
    registry = Registry(fleet.database, {(SERVICE, "strict"): handler}, fleet.vault, fleet.assignments, 0.5)
    return registry, handler


def place(fleet: Fleet, device_id: str, resource_id: str = "vip") -> None:
    """What a placement leaves behind."""
    request = new_request(resource_id)
    values = {
        "resource_id": request.resource_id,
        "role": "current",
        "service": SERVICE,
        "device_id": device_id,
        "tenant_id": request.tenant_id,
        "amounts": {"VIPS": 1},
        "score": 1.0,
        "trail": {},
        "created_at": utcnow(),
    }
    fleet.database.write(lambda conn: conn.execute(sa.insert(models.placements).values(values)))


def test_a_device_is_stored_whole_and_read_back_the_same(any_fleet: Fleet) -> None:
    attributes = {
        "device_type": "fake",
        "name": 'Lastverteiler "Nord"\n负载均衡器',
        "description": "rack 4",
        "form": "physical",
        "tenant_id": "tenant-1",
        "shared": False,
        "zone": "north",
        "management": MANAGEMENT,
        "capabilities": ["PROTOCOL_HTTP", "CUSTOM_GPU"],
        "capacity": {"VIPS": {"total": 10, "reserved": 2, "allocation_ratio": 2.0}, "CONNECTIONS": 1000, "CUSTOM_CERTS": 5},
        "interfaces": [{"name": "eth0", "max_vlans": 8, "physical_network": "physnet1"}],
        "extra": {"weight": 7},
    }
    enrolled = any_fleet.registry.enrol(attributes)
    read = any_fleet.registry.get(enrolled.id)
    assert read == enrolled
    assert (read.name, read.zone, read.tenant_id, read.shared) == (attributes["name"], "north", "tenant-1", False)
    assert read.traits == {"PROTOCOL_HTTP", "CUSTOM_GPU"}
    assert read.capacities["VIPS"].limit == 16
    shown = any_fleet.registry.describe(enrolled.id)
    assert shown["usage"] == {
        "VIPS": {"used": 0, "limit": 16},
        "CONNECTIONS": {"used": 0, "limit": 1000},
        "CUSTOM_CERTS": {"used": 0, "limit": 5},
    }
    row = any_fleet.load(enrolled.id)
    assert (row.vips_max, row.connections_max, row.addresses_max, row.bandwidth_mbps_max) == (16, 1000, -1, -1)
    assert (row.schedulable, row.open, row.rank) == (0, 0, 0)


def test_what_is_not_said_has_sensible_defaults(fleet: Fleet) -> None:
    device = fleet.registry.get(fleet.enrol())
    assert (device.service, device.shared, device.tenant_id, device.admin_state, device.form) == (
        SERVICE,
        True,
        None,
        "enabled",
        "virtual",
    )
    assert device.traits == traits.STANDARD
    assert {name: it.total for name, it in device.capacities.items()} == {"VIPS": -1}
    assert fleet.registry.get(fleet.enrol(tenant_id="t")).shared is False


def test_secrets_are_sealed_and_never_come_back(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    device_id = fleet.enrol(management=MANAGEMENT)
    shown = fleet.registry.describe(device_id)
    assert shown["management"] == {"address": "192.0.2.1", "port": 443, "user": "root", "region": "north", "secret_set": True}
    stored = fleet.registry.stored(device_id)
    assert fleet.vault.open(stored.secret) == {"password": PASSWORD, "api_token": "t0ken"}
    everything = f"{shown} {fleet.raw(models.devices)} {fleet.registry.list()} {caplog.text}"
    assert PASSWORD not in everything
    assert "t0ken" not in everything


def test_secrets_stay_unless_they_are_named_and_go_with_null(fleet: Fleet) -> None:
    device_id = fleet.enrol(management=MANAGEMENT)
    fleet.registry.update(device_id, {"management": {"address": "192.0.2.2"}})
    stored = fleet.registry.stored(device_id)
    assert stored.device.management.address == "192.0.2.2"
    assert fleet.vault.open(stored.secret) == {"password": PASSWORD, "api_token": "t0ken"}
    fleet.registry.update(device_id, {"management": {"password": "new", "api_token": None}})
    assert fleet.vault.open(fleet.registry.stored(device_id).secret) == {"password": "new"}
    fleet.registry.update(device_id, {"management": None})
    assert fleet.registry.stored(device_id).secret == ""


def test_a_change_of_one_key_leaves_the_others_as_they_are(fleet: Fleet) -> None:
    capacity = {"VIPS": 5, "CUSTOM_SLOTS": {"total": 9, "reserved": 1}}
    device_id = fleet.enrol(management=MANAGEMENT, capacity=capacity, extra={"weight": 1, "latency_seconds": 2})
    fleet.registry.update(device_id, {"management": {"password": "new"}, "capacity": {"VIPS": 7}, "extra": {"weight": 3}})
    shown = fleet.registry.describe(device_id)
    assert shown["management"] == {"address": "192.0.2.1", "port": 443, "user": "root", "region": "north", "secret_set": True}
    assert fleet.vault.open(fleet.registry.stored(device_id).secret) == {"password": "new", "api_token": "t0ken"}
    assert {name: it["limit"] for name, it in shown["usage"].items()} == {"VIPS": 7, "CUSTOM_SLOTS": 8}
    assert shown["extra"] == {"weight": 3, "latency_seconds": 2}


def test_null_removes_one_key_and_null_for_the_object_removes_all(fleet: Fleet) -> None:
    device_id = fleet.enrol(
        management=MANAGEMENT, capacity={"VIPS": 5, "CUSTOM_SLOTS": 9}, extra={"weight": 1, "latency_seconds": 2}
    )
    nulls = {"management": {"port": None, "user": None, "region": None, "password": None}, "capacity": {"CUSTOM_SLOTS": None}}
    fleet.registry.update(device_id, {**nulls, "extra": {"weight": None}})
    shown = fleet.registry.describe(device_id)
    assert shown["management"] == {"address": "192.0.2.1", "port": None, "user": "", "secret_set": True}
    assert fleet.vault.open(fleet.registry.stored(device_id).secret) == {"api_token": "t0ken"}
    assert (shown["usage"].keys(), shown["extra"]) == ({"VIPS"}, {"latency_seconds": 2})
    fleet.registry.update(device_id, {"management": None, "capacity": {"VIPS": None}, "extra": None})
    shown = fleet.registry.describe(device_id)
    assert shown["management"] == {"address": "", "port": None, "user": "", "secret_set": False}
    assert (shown["capacity"]["VIPS"]["total"], shown["extra"]) == (-1, {})


def test_the_vendor_checks_a_device_with_its_secrets(fleet: Fleet) -> None:
    registry, handler = strict_fleet(fleet)
    enrolled = registry.enrol({"device_type": "strict", "management": MANAGEMENT})
    assert handler.seen[0].management.secret == {"password": PASSWORD, "api_token": "t0ken"}
    assert enrolled.management.secret == {}
    registry.update(enrolled.id, {"zone": "south"})
    assert handler.seen[1].management.secret == {"password": PASSWORD, "api_token": "t0ken"}


def test_a_vendors_refusal_reaches_the_caller_without_the_secret(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(device: Device) -> None:
        raise InvalidRequest(f"password {device.management.secret['password']} is too short")

    registry, _ = strict_fleet(fleet, refuse)
    with pytest.raises(InvalidRequest, match=r"password \*\*\* is too short") as refused:
        registry.enrol({"device_type": "strict", "management": MANAGEMENT})
    assert PASSWORD not in f"{refused.value.kwargs} {caplog.text}"
    assert registry.list() == []


def test_a_vendors_bug_is_an_error_that_keeps_the_secret(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    def crash(device: Device) -> None:
        raise RuntimeError(device.management.secret["password"])

    registry, _ = strict_fleet(fleet, crash)
    with pytest.raises(DriverError) as failed:
        registry.enrol({"device_type": "strict", "management": MANAGEMENT})
    assert "RuntimeError" in caplog.text
    assert PASSWORD not in f"{failed.value.kwargs} {caplog.text}"


def test_a_vendor_that_hangs_is_given_up(fleet: Fleet) -> None:
    released = threading.Event()
    registry, _ = strict_fleet(fleet, lambda _device: released.wait(30))
    begun = time.monotonic()
    with pytest.raises(DriverError, match="did not answer"):
        registry.enrol({"device_type": "strict"})
    assert time.monotonic() - begun < 10
    released.set()


def test_a_device_can_be_taken_out_of_service_without_its_handler_and_key(fleet: Fleet) -> None:
    fleet.report("host-1")
    device_id = fleet.enrol(management=MANAGEMENT)
    assert fleet.open() == {device_id}
    poorer = Registry(fleet.database, {}, Vault([]), fleet.assignments)
    poorer.update(device_id, {"admin_state": "draining", "description": "broken"})
    assert fleet.open() == set()
    assert poorer.get(device_id).admin_state == "draining"
    with pytest.raises(UnknownDeviceType):
        poorer.update(device_id, {"zone": "south"})


def test_an_unknown_type_is_refused_with_those_that_are_known(fleet: Fleet) -> None:
    with pytest.raises(UnknownDeviceType, match="Unknown device type 'cisco' for service LoadBalancer; loaded: fake"):
        fleet.enrol(device_type="cisco")
    with pytest.raises(UnknownDeviceType, match="loaded: none"):
        fleet.enrol(service="Firewall")


def test_secrets_without_a_key_are_refused_with_the_way_out(fleet: Fleet) -> None:
    registry = Registry(fleet.database, {(SERVICE, "strict"): Strict()}, Vault([]), fleet.assignments)
    with pytest.raises(ConfigurationError, match="lbaas-scheduler-manage keys generate"):
        registry.enrol({"device_type": "strict", "management": {"password": PASSWORD}})
    assert registry.enrol({"device_type": "strict", "management": {"address": "192.0.2.1"}})


def test_keys_are_rotated_in_the_database(fleet: Fleet) -> None:
    device_id = fleet.enrol(management={"password": PASSWORD})
    before = fleet.registry.stored(device_id).secret
    new = generate_key()
    both = Registry(fleet.database, {}, Vault([new, KEY]), fleet.assignments)
    assert both.rotate_secrets() == 1
    after = fleet.registry.stored(device_id).secret
    assert after != before
    assert Vault([new]).open(after) == {"password": PASSWORD}


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({"management": {"address": "192.0.2.2"}}, True),
        ({"management": {"address": "192.0.2.1", "password": "new"}}, True),
        ({"extra": {"weight": 3}}, True),
        ({"interfaces": [{"name": "eth0"}]}, True),
        ({"management": {"address": "192.0.2.1"}, "extra": {}}, False),
        ({"name": "new", "zone": "north", "capacity": {"VIPS": 5}, "admin_state": "draining"}, False),
    ],
)
def test_what_is_on_a_device_is_applied_anew_when_drivers_see_it_change(
    fleet: Fleet, changes: dict[str, Any], again: bool
) -> None:
    device_id = fleet.enrol(management={"address": "192.0.2.1", "password": PASSWORD})
    fleet.deploy("vip", device_id)
    fleet.settle("vip", device_id)
    fleet.registry.update(device_id, changes)
    row = fleet.row("vip", device_id)
    assert (row.version, row.due_at is not None) == ((1, 2) if again else (1, 1), again)


def test_what_cannot_change_is_refused(fleet: Fleet) -> None:
    device_id = fleet.enrol()
    for name, value in {"service": "x", "device_type": "x", "tenant_id": "x"}.items():
        with pytest.raises(InvalidRequest, match=f"{name} of a device cannot be changed"):
            fleet.registry.update(device_id, {name: value})
    with pytest.raises(InvalidRequest, match="status of a device is read-only"):
        fleet.registry.update(device_id, {"status": "ONLINE"})


def test_a_change_of_an_old_generation_is_refused(fleet: Fleet) -> None:
    device_id = fleet.enrol()
    changed = fleet.registry.update(device_id, {"name": "first"}, generation=0)
    assert changed.generation == 1
    with pytest.raises(StaleGeneration):
        fleet.registry.update(device_id, {"name": "second"}, generation=0)
    assert fleet.registry.get(device_id).name == "first"


def test_concurrent_changes_of_different_attributes_all_survive(any_fleet: Fleet) -> None:
    device_id = any_fleet.enrol()
    servers = [Fleet(any_fleet.url) for _ in range(3)]
    changes = [{"name": "name"}, {"zone": "zone"}, {"description": "description"}]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda pair: pair[0].registry.update(device_id, pair[1]), zip(servers, changes, strict=True)))
    device = any_fleet.registry.get(device_id)
    assert (device.name, device.zone, device.description, device.generation) == ("name", "zone", "description", 3)
    for server in servers:
        server.database.dispose()


def test_less_capacity_than_is_used_makes_a_device_full_and_more_opens_it_again(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    device_id = any_fleet.enrol(capacity={"VIPS": 10})
    used = sa.update(models.device_load).ordered_values(
        *device_load.derived_values({"VIPS": sa.literal(5)}), (models.device_load.c.vips_used, 5)
    )
    any_fleet.database.write(lambda conn: conn.execute(used))
    assert (any_fleet.load(device_id).open, any_fleet.load(device_id).rank) == (1, 5000)
    any_fleet.registry.update(device_id, {"capacity": {"VIPS": 3}})
    assert (any_fleet.load(device_id).open, any_fleet.load(device_id).rank) == (0, 10_000)
    any_fleet.registry.update(device_id, {"capacity": {"VIPS": 6, "CONNECTIONS": 0}})
    # Full of CONNECTIONS: last in the order of load, and still open for those that demand none.
    assert (any_fleet.load(device_id).open, any_fleet.load(device_id).rank) == (1, 10_000)
    any_fleet.registry.update(device_id, {"capacity": {"CONNECTIONS": None}})
    assert (any_fleet.load(device_id).open, any_fleet.load(device_id).rank) == (1, 8333)


@pytest.mark.parametrize(("used", "limit", "rank"), [(199_999, 200_000, 9_999), (1, 3, 3_333), (2, 3, 6_666), (7, -1, 0)])
def test_a_rank_is_rounded_down_on_every_database(any_fleet: Fleet, used: int, limit: int, rank: int) -> None:
    device_id = any_fleet.enrol(capacity={"CONNECTIONS": limit})
    counted = sa.update(models.device_load).values(connections_used=used)
    any_fleet.database.write(lambda conn: conn.execute(counted))
    any_fleet.registry.update(device_id, {"description": "computes it anew"})
    assert any_fleet.load(device_id).rank == rank


def test_a_class_that_is_used_stays_with_a_limit_of_nothing(fleet: Fleet) -> None:
    device_id = fleet.enrol(capacity={"CUSTOM_CERTS": 5, "CUSTOM_LICENCES": 5})
    used = sa.update(models.device_capacities).where(models.device_capacities.c.resource_class == "CUSTOM_CERTS").values(used=2)
    fleet.database.write(lambda conn: conn.execute(used))
    fleet.registry.update(device_id, {"capacity": {"VIPS": 4, "CUSTOM_CERTS": None, "CUSTOM_LICENCES": None}})
    assert fleet.registry.describe(device_id)["usage"] == {
        "CUSTOM_CERTS": {"used": 2, "limit": 0},
        "VIPS": {"used": 0, "limit": 4},
    }


def test_a_device_that_carries_something_is_not_removed(any_fleet: Fleet) -> None:
    device_id = any_fleet.enrol(management={"password": PASSWORD}, capacity={"CUSTOM_CERTS": 5})
    any_fleet.report("host-1")
    assert any_fleet.open() == {device_id}
    place(any_fleet, device_id, "vip-1")
    place(any_fleet, device_id, "vip-2")
    with pytest.raises(DeviceInUse, match=r"still carries 2 placement\(s\)"):
        any_fleet.registry.remove(device_id)
    assert any_fleet.open() == {device_id}
    any_fleet.database.write(lambda conn: [placements.release(conn, vip) for vip in ("vip-1", "vip-2")])
    any_fleet.registry.remove(device_id)
    for table in (models.devices, models.device_load, models.device_capacities, models.device_agents):
        assert any_fleet.raw(table) == [], table.name
    with pytest.raises(DeviceNotFound):
        any_fleet.registry.remove(device_id)


def test_a_device_whose_last_vip_has_not_been_confirmed_gone_is_not_removed(fleet: Fleet) -> None:
    device_id = fleet.enrol()
    fleet.deploy("vip", device_id)
    with pytest.raises(DeviceInUse, match="still carries 1"):
        fleet.registry.remove(device_id)


def test_a_claim_and_a_removal_at_once_never_both_succeed(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    other = Fleet(any_fleet.url)

    def claim(device_id: str) -> bool:
        def work(conn: sa.Connection) -> bool:
            load = models.device_load
            taken = sa.update(load).where(load.c.device_id == device_id, load.c.open == 1).values(vips_used=load.c.vips_used + 1)
            if not conn.execute(taken).rowcount:
                return False
            request = new_request(f"vip-of-{device_id}"[:36])
            columns = {"device_id": device_id, "service": SERVICE, "tenant_id": "t", "score": 0.0, "trail": {}, "role": "current"}
            conn.execute(
                sa.insert(models.placements).values(
                    resource_id=request.resource_id, amounts={"VIPS": 1}, created_at=utcnow(), **columns
                )
            )
            return True

        return other.database.write(work)

    def remove(device_id: str) -> bool:
        try:
            any_fleet.registry.remove(device_id)
        except DeviceInUse:
            return False
        return True

    for _ in range(12):
        device_id = any_fleet.enrol()
        with ThreadPoolExecutor(2) as pool:
            claimed, removed = pool.submit(claim, device_id), pool.submit(remove, device_id)
            assert claimed.result() is not removed.result()
    other.database.dispose()


def test_alike_devices_share_one_class_even_when_enrolled_at_once(any_fleet: Fleet) -> None:
    servers = [Fleet(any_fleet.url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda server: server.enrol(zone="north"), servers))
    stored = any_fleet.database.read(lambda conn: devices.by_ids_stored(conn, ids))
    assert len({it.class_id for it in stored.values()}) == 1
    assert len(any_fleet.database.read(sched_classes.all)) == 1
    any_fleet.registry.update(ids[0], {"capabilities": ["PROTOCOL_TCP"]})
    assert len(any_fleet.database.read(sched_classes.all)) == 2
    assert any_fleet.load(ids[0]).class_id == any_fleet.registry.stored(ids[0]).class_id
    for server in servers:
        server.database.dispose()


def test_monitoring_closes_and_opens_a_device(any_fleet: Fleet) -> None:
    any_fleet.report("host-1")
    device_id = any_fleet.enrol()
    assert any_fleet.registry.set_status(device_id, DeviceStatus.OFFLINE, "no answer")
    assert any_fleet.open() == set()
    assert any_fleet.registry.describe(device_id)["status_description"] == "no answer"
    assert not any_fleet.registry.set_status(device_id, DeviceStatus.OFFLINE, "no answer")
    assert any_fleet.registry.set_status(device_id, DeviceStatus.ONLINE)
    assert any_fleet.open() == {device_id}


def test_devices_are_listed_by_filter_and_page(fleet: Fleet) -> None:
    north = sorted(fleet.enrol(zone="north", name=f"n{number}") for number in range(3))
    south = fleet.enrol(zone="south", tenant_id="t")
    assert [it.id for it in fleet.registry.list({"zone": ["north"]})] == north
    assert [it.id for it in fleet.registry.list({"zone": ["south", "west"], "shared": ["false"]})] == [south]
    assert [it.id for it in fleet.registry.list({"tenant_id": [None]})] == north
    assert [it.id for it in fleet.registry.list({"zone": ["north"]}, marker=north[0], limit=1)] == north[1:2]
    with pytest.raises(InvalidRequest, match="Unknown filter 'colour'"):
        fleet.registry.list({"colour": ["red"]})
    with pytest.raises(InvalidRequest, match="Filter shared must be true or false"):
        fleet.registry.list({"shared": ["maybe"]})
