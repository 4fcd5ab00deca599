"""Servers that race for the last slots and die while they do."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import counters
from lbaas_scheduler.db.models import agents, device_load, placements
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Interface
from tests.factories import add_devices, new_device, new_request
from tests.functional.placement import mortal
from tests.functional.placement.conftest import new_placer

SOAK = os.environ.get("LBAAS_TEST_SOAK") == "1"


@dataclass(frozen=True)
class Scale:
    """``free``: slots that are left in the fleet. One process dies every ``pause`` seconds, ``deaths`` times."""

    processes: int
    creates: int
    devices: int
    free: int
    pause: float
    deaths: int
    patience: float


SHORT = Scale(processes=3, creates=40, devices=6, free=50, pause=1.0, deaths=4, patience=120)
FULL = Scale(processes=8, creates=500, devices=50, free=1000, pause=1.0, deaths=60, patience=900)


class Crew:
    """Processes that place, each with its journal. A dead one is started again."""

    def __init__(self, url: str, scale: Scale, folder: Path) -> None:
        self._url = url
        self._scale = scale
        self._folder = folder
        self._running = [self._start(number) for number in range(scale.processes)]
        self.killed = 0

    def _start(self, number: int) -> subprocess.Popen[str]:
        arguments = [self._url, str(number), str(self._scale.creates), str(self._folder / f"{number}.journal")]
        return subprocess.Popen([sys.executable, "-m", mortal.__name__, *arguments], stderr=subprocess.PIPE, text=True)

    def work(self) -> None:
        """Until all have done all, with one death every ``pause`` seconds in between."""
        chance = random.Random(5)
        end = time.monotonic() + self._scale.patience
        next_death = time.monotonic() + self._scale.pause
        while alive := [number for number, process in enumerate(self._running) if process.poll() is None]:
            assert time.monotonic() < end, f"{len(alive)} are still at work"
            if self.killed < self._scale.deaths and time.monotonic() >= next_death:
                next_death += self._scale.pause
                self._kill(chance.choice(alive))
            time.sleep(0.02)
        for process in self._running:
            assert process.returncode == 0, process.stderr and process.stderr.read()

    def _kill(self, number: int) -> None:
        process = self._running[number]
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0), errors
        self.killed += process.returncode == -signal.SIGKILL
        self._running[number] = self._start(number)

    def end(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()

    def outcomes(self) -> list[dict[str, str]]:
        """Of each process: create → device, or "refused"."""
        return [_read(self._folder / f"{number}.journal") for number in range(self._scale.processes)]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("scale", [pytest.param(SHORT, id="short"), pytest.param(FULL, id="full", marks=pytest.mark.soak)])
def test_servers_that_die_while_they_race_neither_over_commit_nor_lose_a_slot(
    database: Database, database_url: str, scale: Scale, tmp_path: Path
) -> None:
    if scale is FULL and not SOAK:
        pytest.skip("set LBAAS_TEST_SOAK=1 to run at full length")
    furnish(database, scale)
    crew = Crew(database_url, scale, tmp_path)
    try:
        crew.work()
        outcomes = crew.outcomes()
    finally:
        crew.end()
    assert crew.killed >= min(scale.deaths, 2)
    check(database, scale, outcomes)


def furnish(database: Database, scale: Scale) -> None:
    """A fleet that is almost full: on each device as many slots are taken as are left in all, evenly."""
    # Nobody reports for it, and this may take minutes.
    alive = sa.update(agents).values(heartbeat_at=utcnow() + timedelta(days=1))
    database.write(lambda conn: conn.execute(alive))
    slots = 2 * scale.free // scale.devices
    wires = (Interface("eth0", 2), Interface("eth1", 2))
    limits = {"vips": slots, "capacities": {mortal.OWN_CLASS: 10_000}, "interfaces": wires}
    add_devices(database, *(new_device(f"d{number}", **limits) for number in range(scale.devices)))
    placer = new_placer(database, max_rounds=100)
    for number in range(slots * scale.devices - scale.free):
        placer.place(new_request(f"before-{number}"))


def check(database: Database, scale: Scale, outcomes: Sequence[dict[str, str]]) -> None:
    said = Counter(device for of_one in outcomes for device in of_one.values())
    refused = said.pop("refused", 0)
    assert [len(of_one) for of_one in outcomes] == [scale.creates] * scale.processes
    assert sum(said.values()) == scale.free, "a slot was lost, or given twice"
    assert refused == scale.processes * scale.creates - scale.free

    def read(conn: sa.Connection) -> None:
        c = device_load.c
        over = sa.select(c.device_id, c.vips_used, c.vips_max).where(c.vips_used != c.vips_max)
        assert conn.execute(over).all() == []
        stored = {row.resource_id: row.device_id for row in conn.execute(sa.select(placements))}
        for number, of_one in enumerate(outcomes):
            for turn, device in of_one.items():
                assert stored.get(f"vip-{number}-{turn}", "refused") == device

    database.read(read)
    assert counters.check(database) == []


def _read(journal: Path) -> dict[str, str]:
    return dict(line.split() for line in journal.read_text().splitlines())
