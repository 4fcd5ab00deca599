"""Many processes on one store, one of them killed every now and then.

``python -m tests.functional.allocator.chaos URL FOLDER PROCESSES OPERATIONS KILL_SECONDS`` prints, as JSON, what became of it.
Each process writes down what it is about to do and what it was told, so that what the store holds in the end can be judged.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lbaas_scheduler.allocator.core.drivers import StateDriver
from lbaas_scheduler.allocator.core.requests import Owner, Request
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.errors import Contention, NotAllocated, PoolExhausted, StaleGeneration, StoreUnavailable
from tests.allocator_side import new_allocator, open_store

MOST_HELD = 40
HOLD_SECONDS = 3_600

WARM_UP = 20
"""Operations before the first fork: what they load and compile, no life has to."""


class Journal:
    """Lines that outlive their writer."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *words: object) -> None:
        os.write(self._file, (json.dumps(words) + "\n").encode())


def main(url: str, folder: str, processes: str, operations: str, kill_seconds: str) -> None:
    chance = random.Random(os.environ.get("LBAAS_TEST_SEED", "1"))
    driver = open_store(url)
    _warm_up(driver)
    children: dict[int, int] = {}
    each = int(operations) // int(processes)
    kills, lives = 0, 0
    for number in range(int(processes)):
        children[_fork(driver, Path(folder), number, each, lives)] = number
        lives += 1
    began = last = time.monotonic()
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            number = children.pop(pid)
            if os.WIFSIGNALED(status):
                children[_fork(driver, Path(folder), number, each, lives)] = number
                lives += 1
            elif os.WEXITSTATUS(status):
                raise SystemExit(f"process {number} failed")
            continue
        if time.monotonic() - last > float(kill_seconds) and children:
            os.kill(chance.choice(sorted(children)), signal.SIGKILL)
            kills, last = kills + 1, time.monotonic()
        time.sleep(0.01)
    print(json.dumps({"kills": kills, "lives": lives, "seconds": time.monotonic() - began}))


def _warm_up(driver: StateDriver) -> None:
    """Leaves no value behind, and no connection that a child could share."""
    allocator, mine = new_allocator(driver), []
    for turn in range(WARM_UP):
        _act(allocator, Journal(Path(os.devnull)), random.Random(turn), mine, f"warm-up-{turn}")
    for id_, generation in mine:
        allocator.release(id_, generation)
    driver.close()
    gc.freeze()


def _fork(driver: StateDriver, folder: Path, number: int, operations: int, life: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _live(new_allocator(driver), folder / f"{number}.journal", number, operations, life)
        code = 0
    except BaseException as error:  # a forked child must not run on into its parent's code
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(code)
    return 0


def _live(allocator: ResourceAllocator, path: Path, number: int, operations: int, life: int) -> None:
    journal = Journal(path)
    chance = random.Random(f"{number}/{life}")
    past = list(_lines(path))
    mine = _take_over(allocator, journal, past, asks_again=chance.random() < 0.5)
    for turn in range(sum(1 for entry in past if entry[0] == "done"), operations):
        with contextlib.suppress(PoolExhausted, Contention, StoreUnavailable):
            _act(allocator, journal, chance, mine, f"{number}-{life}-{turn}")
        journal.note("done")


def _take_over(allocator: ResourceAllocator, journal: Journal, past: list[list[Any]], asks_again: bool) -> list[tuple[str, int]]:
    """What a former life was told that it has; and what it was about to do is done once more, or left to reconcile."""
    leaving, left = ({entry[1] for entry in past if entry[0] == word} for word in ("releasing", "released"))
    mine = [(entry[1], entry[4]) for entry in past if entry[0] == "got" and entry[1] not in leaving]
    with contextlib.suppress(PoolExhausted, Contention, StoreUnavailable):
        for entry in past:
            if entry[0] == "got" and entry[1] in leaving - left:
                _release(allocator, journal, entry[1], entry[4])
        if past and past[-1][0] == "asking" and asks_again:
            _ask(allocator, journal, mine, past[-1][1], past[-1][2])
    return mine


def _act(allocator: ResourceAllocator, journal: Journal, chance: random.Random, mine: list[tuple[str, int]], name: str) -> None:
    what = chance.random()
    if mine and (what < 0.5 or len(mine) > MOST_HELD):
        _release(allocator, journal, *mine.pop(chance.randrange(len(mine))))
    else:
        _ask(allocator, journal, mine, name, what)


def _release(allocator: ResourceAllocator, journal: Journal, id_: str, generation: int) -> None:
    journal.note("releasing", id_)
    with contextlib.suppress(NotAllocated, StaleGeneration):
        allocator.release(id_, generation)
    journal.note("released", id_)


def _ask(allocator: ResourceAllocator, journal: Journal, mine: list[tuple[str, int]], name: str, what: float) -> None:
    journal.note("asking", name, what)
    if what < 0.6:
        (held,) = allocator.hold([Request("vxlan", Owner("worker", name), "x")], HOLD_SECONDS)
        grants = [allocator.commit(held.id, held.generation)]
    elif what < 0.7:
        owners = [f"{name}.{place}" for place in range(4)]
        grants = allocator.allocate_many([Request("vlan", Owner("worker", owner), "v") for owner in owners])
    elif what < 0.8:
        request = Request("vlan", Owner("worker", name), "v", children=(Request("vxlan", Owner("worker", name), "x"),))
        grants = [allocator.allocate(request)]
    else:
        grants = [allocator.allocate(Request("vlan", Owner("worker", name), "v"))]
    for grant in grants:
        journal.note("got", grant.id, grant.kind, grant.value, grant.generation, grant.owner.id)
        mine.append((grant.id, grant.generation))


def entries(folder: Path) -> Iterator[list[Any]]:
    """All that was written down."""
    for path in folder.glob("*.journal"):
        yield from _lines(path)


def _lines(path: Path) -> Iterator[list[Any]]:
    for line in path.read_text().splitlines():
        with contextlib.suppress(json.JSONDecodeError):  # the last one of a life may be torn
            yield json.loads(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
