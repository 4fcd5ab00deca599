"""Servers that place at the same moment: as threads with nothing in common but the database, and as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lbaas_scheduler.db import placements
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.devices import Interface
from lbaas_scheduler.errors import NoValidDevice
from tests.database import configured
from tests.factories import add_devices, new_device, new_request
from tests.functional.placement import racer
from tests.functional.placement.conftest import drift, new_placer, used, used_own

SOAK = os.environ.get("LBAAS_TEST_SOAK") == "1"


def test_two_servers_race_200_creates_for_50_free_slots(database: Database, database_url: str) -> None:
    add_devices(database, *(new_device(f"d{number}", vips=10) for number in range(5)))
    outcomes = race(database_url, processes=2, creates=100, algorithm="least_loaded")
    assert Counter(outcome["placed"] for outcome in outcomes) == {True: 50, False: 150}
    for refused in (outcome for outcome in outcomes if not outcome["placed"]):
        assert sum(refused["dropped"].values()) == 5, refused
        assert set(refused["dropped"]) <= {"capacity.VIPS", "claim.lost"}
    assert [used(database, f"d{number}") for number in range(5)] == [10] * 5
    assert drift(database) == {}


@pytest.mark.parametrize("rounds", [pytest.param(3, id="short"), pytest.param(100, id="long", marks=pytest.mark.soak)])
def test_exactly_one_wins_the_last_slot(database: Database, database_url: str, rounds: int) -> None:
    if rounds > 3 and not SOAK:
        pytest.skip("set LBAAS_TEST_SOAK=1 to run at full length")
    for number in range(rounds):
        add_devices(database, new_device(f"d{number}", vips=1))
        winners = [it for it in together(database_url, 6, number) if it is not None]
        assert len(winners) == 1
        assert (used(database, f"d{number}"), drift(database)) == (1, {})


def together(database_url: str, servers: int, number: int) -> list[str | None]:
    def place(server: int) -> str | None:
        database = Database.open(configured(database_url))
        try:
            return new_placer(database).place(new_request(f"vip-{number}-{server}")).device_id
        except NoValidDevice:
            return None
        finally:
            database.dispose()

    with ThreadPoolExecutor(servers) as pool:
        return list(pool.map(place, range(servers)))


def test_vlans_and_vendors_own_classes_are_not_over_committed_either(database: Database) -> None:
    limits = {"capacities": {"CUSTOM_SSL_TPS": 12}, "interfaces": (Interface("eth0", 3), Interface("eth1", 2))}
    add_devices(database, new_device("a", vips=-1, **limits))
    placer = new_placer(database)

    def place(number: int) -> str | None:
        demand = {"VIPS": 1, "CUSTOM_SSL_TPS": 2}
        try:
            placer.place(new_request(f"vip-{number}", demand=demand, networks=(f"net-{number % 8}",)))
        except NoValidDevice:
            return None
        return f"net-{number % 8}"

    with ThreadPoolExecutor(4) as pool:
        placed = [it for it in pool.map(place, range(24)) if it]
    assert len(set(placed)) <= 5
    assert used_own(database, "a", "CUSTOM_SSL_TPS") == 2 * len(placed) <= 12
    assert (used(database, "a"), drift(database)) == (len(placed), {})
    assert len(placed) >= 5


def test_creates_and_deletes_at_once_leave_the_counters_true(database: Database) -> None:
    add_devices(database, *(new_device(f"d{number}", vips=5) for number in range(3)))
    placer = new_placer(database)

    def come_and_go(number: int) -> None:
        for turn in range(4):
            name = f"vip-{number}-{turn}"
            placer.place(new_request(name))
            if turn % 2:
                database.write(lambda conn, name=name: placements.release(conn, name))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, range(4)))
    assert sum(used(database, f"d{number}") for number in range(3)) == 8
    assert drift(database) == {}


def race(database_url: str, processes: int, creates: int, algorithm: str) -> list[dict[str, Any]]:
    """What became of each create, over all processes."""
    command = [sys.executable, "-m", racer.__name__, database_url, algorithm, str(creates)]
    running = [subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True) for number in range(processes)]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0] * processes
    return [outcome for output in outputs for outcome in json.loads(output)]
