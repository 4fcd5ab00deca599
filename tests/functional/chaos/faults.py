"""What breaks, when and for how long: drawn from a seed before the run starts, and done by a thread while it goes on."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tests.functional.chaos.links import Mode
from tests.functional.chaos.site import BROKER, DATABASE, ETCD, Site

KILL = "kill"
STOP = "stop"
TERMINATE = "terminate"
CUT = "cut"
BLACK_HOLE = "black hole"
SLOW = "slow"
LOSE_COMMITS = "reset before commits"
LOSE_ANSWERS = "reset after commits"
DISK_FULL = "disk full"
BROKER_ALARM = "broker's disk full"
CLOCK = "clock skew"

MODES = {
    CUT: Mode.CUT,
    BLACK_HOLE: Mode.SILENT,
    SLOW: Mode.SLOW,
    LOSE_COMMITS: Mode.LOSES_COMMITS,
    LOSE_ANSWERS: Mode.LOSES_ANSWERS,
}

WEIGHTS = {
    KILL: 4,
    STOP: 3,
    TERMINATE: 2,
    CUT: 3,
    BLACK_HOLE: 3,
    SLOW: 2,
    LOSE_COMMITS: 2,
    LOSE_ANSWERS: 3,
    DISK_FULL: 1,
    BROKER_ALARM: 1,
    CLOCK: 2,
}
"""How often which kind is drawn."""

SERVICES_SHARE = 0.2
"""Of the kills, stops and terminations, those that hit broker, database or etcd, and not a process of the product."""

SHORTEST, LONGEST = 1.5, 12.0
PAUSE = (0.5, 5.0)
"""Seconds between the beginnings of two faults; they overlap."""

ORDERLY = (0, 128 + signal.SIGTERM)
"""Exit codes of a process that was told to end: the second one where it had only just started, and catches no signals yet."""

OFFSETS = (-600, -120, -30, 30, 120, 600)
"""Seconds by which a clock is wrong."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that breaks.

    :ivar at: seconds from the start of the run.
    :ivar lasts: seconds.
    :ivar target: a process, a service, or ``process to service``.
    """

    at: float
    lasts: float
    kind: str
    target: str
    offset: int = 0

    def __str__(self) -> str:
        by = f" by {self.offset:+d} s" if self.offset else ""
        return f"{self.kind}{by}: {self.target}, for {self.lasts:.1f} s"


def targets(site: Site) -> Mapping[str, Collection[str]]:
    """Kind → what it can hit here; kinds that nothing can be hit by are left out."""
    links = sorted(site.links())
    final = [name for name in links if name.endswith((DATABASE, ETCD))]
    processes = sorted(site.processes)
    found = {
        **dict.fromkeys((KILL, STOP, TERMINATE), processes),
        **dict.fromkeys((CUT, BLACK_HOLE, SLOW), links),
        **dict.fromkeys((LOSE_COMMITS, LOSE_ANSWERS), final),
        DISK_FULL: ["devices"] if site.bounded_disk else [],
        BROKER_ALARM: [BROKER],
        CLOCK: processes,
    }
    return {kind: names for kind, names in found.items() if names}


def draw(seed: str, seconds: float, possible: Mapping[str, Collection[str]], services: Collection[str]) -> list[Fault]:
    """The faults of a run, in the order in which they begin. The same for the same arguments.

    One target is hit by one fault at a time.
    """
    chance = random.Random(f"{seed}/faults")
    kinds = list(possible)
    free_at: dict[str, float] = {}
    found: list[Fault] = []
    at = chance.uniform(*PAUSE)
    while at < seconds:
        kind = chance.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
        of_service = kind in (KILL, STOP, TERMINATE) and chance.random() < SERVICES_SHARE
        target = chance.choice(sorted(services if of_service else possible[kind]))
        lasts = min(chance.uniform(SHORTEST, LONGEST), seconds - at + SHORTEST)
        offset = chance.choice(OFFSETS) if kind == CLOCK else 0
        if free_at.get(target, 0) <= at:
            found.append(Fault(round(at, 1), round(lasts, 1), kind, target, offset))
            free_at[target] = at + lasts + 1
        at += chance.uniform(*PAUSE)
    return found


class Nemesis:
    """Does what was drawn, each fault in a thread of its own: some take their time, such as a broker that starts.

    :ivar log: what really happened, when, and how requests fared meanwhile.
    """

    def __init__(self, site: Site, faults: Collection[Fault]) -> None:
        self.log: list[str] = []
        self.failed: list[str] = []
        self._site = site
        self._began = 0.0
        self._turns: dict[str, threading.Lock] = {fault.target: threading.Lock() for fault in faults}
        self._threads = [threading.Thread(target=self._run, args=(it,), name=str(it), daemon=True) for it in faults]

    def start(self, began: float) -> None:
        """:param began: by the monotonic clock; the start of the run."""
        self._began = began
        for thread in self._threads:
            thread.start()

    def finish(self, timeout: float) -> None:
        """Returns when everything is whole again."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), f"does not end: {thread.name}"
        assert not self.failed, self.failed

    def note(self, text: str) -> None:
        self.log.append(f"{time.monotonic() - self._began:7.1f} s  {text}")

    def _run(self, fault: Fault) -> None:
        try:
            time.sleep(max(0.0, self._began + fault.at - time.monotonic()))  # when, and not a wait for something
            with self._turns[fault.target]:
                self._strike(fault)
        except Exception as error:
            self.failed.append(f"{fault}: {type(error).__name__}: {error}")

    def _strike(self, fault: Fault) -> None:
        self.note(f"begin {fault}")
        before = self._seen()
        self._do(fault, begins=True)
        time.sleep(fault.lasts)  # how long, and not a wait for something
        self._do(fault, begins=False)
        self.note(f"end   {fault.kind}: {fault.target}; meanwhile {dict(self._seen() - before) or 'nothing'}")

    def _seen(self) -> Counter[str]:
        answers = {f"{status or 'no answer'}": count for status, count in self._site.http.counts.copy().items()}
        broken = sum(link.broken for link in self._site.links().values())
        return Counter({**answers, "connections broken": broken})

    def _do(self, fault: Fault, *, begins: bool) -> None:
        if fault.kind in MODES:
            self._site.links()[fault.target].mode = MODES[fault.kind] if begins else Mode.OPEN
        elif fault.kind == DISK_FULL:
            self._fill_disk(begins)
        elif fault.kind == CLOCK:
            self._site.processes[fault.target].clock.write_text(f"{fault.offset if begins else 0}\n")
        elif fault.kind == BROKER_ALARM:
            self._alarm(begins)
        elif fault.target in self._site.processes:
            self._hit_process(fault, begins)
        else:
            self._hit_service(fault, begins)

    def _hit_process(self, fault: Fault, begins: bool) -> None:
        process = self._site.processes[fault.target]
        if fault.kind == STOP:
            (process.pause if begins else process.go_on)()
        elif not begins:
            process.wanted = True
            process.daemon.start()
        else:
            process.wanted = False
            if fault.kind == KILL:
                process.daemon.kill()
            elif (code := process.daemon.stop()) not in ORDERLY:
                process.ends.append(f"{fault.target} was told to end and did so with exit code {code}")

    def _hit_service(self, fault: Fault, begins: bool) -> None:
        service = self._site.stores.services()[fault.target]
        if fault.kind == STOP:
            service.daemon.signal_group(signal.SIGSTOP if begins else signal.SIGCONT)
        elif not begins:
            service.start()
        elif fault.kind == TERMINATE:
            service.stop()
        else:
            service.kill()

    def _fill_disk(self, begins: bool) -> None:
        path = self._site.rack / "filler"
        if not begins:
            path.unlink(missing_ok=True)
            return
        with suppress(OSError), path.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def _alarm(self, begins: bool) -> None:
        self._site.stores.broker.control("set_disk_free_limit", "1000GB" if begins else "10MB")


def ended_by_itself(site: Site) -> list[str]:
    """Processes that should run and do not, though nobody ended them."""
    return [
        f"{process.name} ended by itself: {process.daemon.tail(5)}"
        for process in site.processes.values()
        if process.wanted and not process.daemon.running
    ]


__all__ = ["Fault", "Nemesis", "draw", "ended_by_itself", "targets"]
