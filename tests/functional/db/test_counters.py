"""Counters that drifted from the placements are found, and repaired on request."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import counters, placements
from lbaas_scheduler.db.counters import Drift, Key
from lbaas_scheduler.db.models import device_capacities, device_load, device_networks
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import capacity
from lbaas_scheduler.domain.devices import Candidate, Device, Interface
from lbaas_scheduler.domain.trail import Decision, Trail
from tests import factories
from tests.database import open_database

DEMAND = {capacity.VIPS: 1, capacity.CONNECTIONS: 100, "CUSTOM_SLICES": 2}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = open_database(database_url)
    factories.add_agent(database)
    yield database
    database.dispose()


@pytest.fixture
def device(database: Database) -> Device:
    device = factories.new_device(
        "lb-1", capacities={capacity.CONNECTIONS: 1000, "CUSTOM_SLICES": 20}, interfaces=(Interface("eth0", max_vlans=4),)
    )
    other = factories.new_device("lb-2", capacities={capacity.CONNECTIONS: 1000, "CUSTOM_SLICES": 20})
    factories.add_devices(database, device, other)
    for number in range(3):
        place(database, device, f"vip-{number}")
    place(database, other, "vip-other")
    return device


def place(database: Database, device: Device, resource_id: str) -> None:
    request = factories.new_request(resource_id, demand=DEMAND, networks=("net-a",))
    decision = Decision(resource_id, device.id, device.name, device.device_type, "agent-1", 50.0, 1, Trail())

    def work(conn: sa.Connection) -> None:
        assert placements.claim(conn, request, Candidate(device)) is None
        placements.insert(conn, request, decision)

    database.write(work)


def load_of(database: Database) -> dict[str, int]:
    row = sa.select(device_load).where(device_load.c.device_id == "lb-1")
    return dict(database.read(lambda conn: conn.execute(row).mappings().one()))


def break_load(**values: int) -> sa.Update:
    return sa.update(device_load).where(device_load.c.device_id == "lb-1").values(**values)


def break_slices(**values: int) -> sa.Update:
    own = sa.and_(device_capacities.c.device_id == "lb-1", device_capacities.c.resource_class == "CUSTOM_SLICES")
    return sa.update(device_capacities).where(own).values(**values)


STRAY_NETWORK = sa.insert(device_networks).values(network_id="net-x", device_id="lb-1", interface="eth0", vips=7)
LOST_NETWORK = sa.delete(device_networks).where(device_networks.c.device_id == "lb-1")

DAMAGES = [
    (break_load(vips_used=9), Drift(Key("lb-1", "class", "VIPS"), 9, 3)),
    (break_load(connections_used=0), Drift(Key("lb-1", "class", "CONNECTIONS"), 0, 300)),
    (break_load(bandwidth_mbps_used=5), Drift(Key("lb-1", "class", "BANDWIDTH_MBPS"), 5, 0)),
    (break_slices(used=1), Drift(Key("lb-1", "class", "CUSTOM_SLICES"), 1, 6)),
    (STRAY_NETWORK, Drift(Key("lb-1", "network", "net-x"), 7, 0)),
    (LOST_NETWORK, Drift(Key("lb-1", "network", "net-a"), 0, 3)),
    (break_load(rank=1), Drift(Key("lb-1", "derived", "rank"), 1, 3000)),
    (break_load(open=0), Drift(Key("lb-1", "derived", "open"), 0, 1)),
]


@pytest.mark.usefixtures("device")
def test_counters_that_placements_made_do_not_drift(database: Database) -> None:
    assert counters.check(database) == []


@pytest.mark.usefixtures("device")
def test_every_kind_of_damage_is_found_told_and_repaired(database: Database) -> None:
    """In one test: a database per damage would take minutes."""
    before = load_of(database)
    for damage, drift in DAMAGES:
        database.write(lambda conn, damage=damage: conn.execute(damage))  # type: ignore[misc]

        assert drift in counters.check(database), damage
        assert drift in counters.check(database, repair=True)
        assert counters.check(database) == []
        assert load_of(database) == before
    wired = sa.select(device_networks.c.interface, device_networks.c.vips).where(device_networks.c.device_id == "lb-1")
    assert database.read(lambda conn: conn.execute(wired).all()) == [("eth0", 3)]


@pytest.mark.usefixtures("device")
def test_looking_alone_changes_nothing(database: Database) -> None:
    database.write(lambda conn: conn.execute(break_load(vips_used=9)))
    counters.check(database)
    assert load_of(database)["vips_used"] == 9


def test_a_drift_is_a_sentence() -> None:
    assert str(Drift(Key("lb-1", "class", "VIPS"), 9, 3)) == "device lb-1: class VIPS is 9, should be 3"


def test_a_busy_fleet_is_no_drift(database: Database, device: Device) -> None:
    """Placements come and go meanwhile; what is under way must not be taken for drift, let alone be repaired."""

    def come_and_go(worker: int) -> None:
        for number in range(15):
            place(database, device, f"busy-{worker}-{number}")
            database.write(lambda conn, key=f"busy-{worker}-{number}": placements.release(conn, key))  # type: ignore[misc]

    with ThreadPoolExecutor(3) as threads:
        busy = [threads.submit(come_and_go, worker) for worker in range(3)]
        while not all(done.done() for done in busy):
            assert database.write(lambda conn: counters.examine(conn, "lb-1", repair=True)) == []
        for done in busy:
            done.result()
    assert load_of(database)["vips_used"] == 3
