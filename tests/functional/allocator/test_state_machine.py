"""Any order of operations, against a dictionary, on every store; with crashes before and after the commit."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule, run_state_machine_as_test

from lbaas_scheduler.allocator.core.drivers import Changes, StateDriver
from lbaas_scheduler.allocator.core.requests import Owner, Selector
from lbaas_scheduler.errors import (
    AlreadyDefined,
    NotAllocated,
    NotDefined,
    OutOfRange,
    Overlap,
    PoolBusy,
    PoolExhausted,
    StaleGeneration,
    ValueInUse,
)
from tests.allocator_side import STORES, Clock, new_allocator, opened, vlan, wipe

SOAK = os.environ.get("LBAAS_TEST_SOAK") == "1"
EXAMPLES = {"memory": 60, "sqlite": 15, "postgresql": 8, "mariadb": 8, "etcd": 8}
REST = 10

names = st.sampled_from(["a", "b"])
owners = st.sampled_from([f"n{number}" for number in range(6)])
crashes = st.sampled_from(["", "", "before", "after"])
ranges = st.tuples(st.integers(1, 10), st.integers(0, 4)).map(lambda it: (it[0], it[0] + it[1]))


class Crash(BaseException):
    """The process ends here."""


class Breaking(StateDriver):
    """Hands everything on, and dies at a commit when it is told to."""

    name = "breaking"

    def __init__(self, driver: StateDriver) -> None:
        self._driver = driver
        self.max_operations = driver.max_operations
        self.dies = ""

    def read(self, query: Any) -> Any:
        return self._driver.read(query)

    def keys(self, query: Any) -> Any:
        return self._driver.keys(query)

    def count(self, query: Any) -> int:
        return self._driver.count(query)

    def apply(self, changes: Changes) -> None:
        if self.dies == "before":
            raise Crash
        self._driver.apply(changes)
        if self.dies == "after":
            raise Crash

    def watch(self, query: Any, stop: Any, ready: Any) -> Any:
        return self._driver.watch(query, stop, ready)


class Machine(RuleBasedStateMachine):
    """The model: pools by name, values by pool and owner, resting values with their time."""

    store: StateDriver
    grants = Bundle("grants")

    @initialize()
    def begin(self) -> None:
        self.clock = Clock()
        self.breaking = Breaking(self.store)
        self.allocator = new_allocator(self.breaking, self.clock)
        self.pools: dict[str, tuple[tuple[int, int], int]] = {}
        self.taken: dict[tuple[str, str], dict[str, Any]] = {}
        self.resting: dict[int, Any] = {}

    def teardown(self) -> None:
        wipe(self.store)

    # --- pools --------------------------------------------------------------------------------------------------------------

    @rule(name=names, span=ranges, rest=st.sampled_from([0, REST]), crash=crashes)
    def define(self, name: str, span: tuple[int, int], rest: int, crash: str) -> None:
        outcome = self._try(self._do, crash, "define", Selector("vlan", name), self._config(span, rest))
        if name in self.pools:
            assert outcome is None if self.pools[name] == (span, rest) else outcome is AlreadyDefined
        elif self._overlaps(name, span):
            assert outcome is Overlap
        else:
            assert outcome is None
            self.pools[name] = (span, rest)

    @rule(name=names, span=ranges, rest=st.sampled_from([0, REST]), crash=crashes)
    def resize(self, name: str, span: tuple[int, int], rest: int, crash: str) -> None:
        outcome = self._try(self._do, crash, "redefine", Selector("vlan", name), self._config(span, rest))
        if name not in self.pools:
            assert outcome is NotDefined
            return
        if (span, rest) == self.pools[name]:
            assert outcome is None
            return
        self._sweep(name)
        outside = [value for value in self._in_pool(name) if not span[0] <= value <= span[1]]
        if outside:
            assert outcome is ValueInUse
        elif self._overlaps(name, span):
            assert outcome is Overlap
        else:
            assert outcome is None
            self.pools[name] = (span, rest)

    @rule(name=names, force=st.booleans(), crash=crashes)
    def undefine(self, name: str, force: bool, crash: str) -> None:
        outcome = self._try(self._do, crash, "undefine", Selector("vlan", name), force=force)
        if name not in self.pools:
            assert outcome is NotDefined
        elif not force and any(pool == name for pool, _ in self.taken):
            assert outcome is PoolBusy
        else:
            # Who asks again after the last commit of it is told that there is no such pool.
            assert outcome is None or (outcome is NotDefined and crash == "after")
            (lo, hi), _ = self.pools.pop(name)
            self.taken = {key: value for key, value in self.taken.items() if key[0] != name}
            self.resting = {value: due for value, due in self.resting.items() if not lo <= value <= hi}

    # --- values -------------------------------------------------------------------------------------------------------------

    @rule(
        target=grants,
        name=names,
        owner=owners,
        value=st.none() | st.integers(1, 14),
        dies=st.sampled_from(["", "", "before", "after"]),
    )
    def allocate(self, name: str, owner: str, value: int | None, dies: str) -> tuple[str, str]:
        self.breaking.dies = dies
        try:
            grant = self.allocator.allocate(vlan(owner, value, pool=name))
        except Crash:
            # Who comes after a crash asks again, and it must be as if it had been asked once.
            self.breaking.dies = ""
            self.allocator = new_allocator(self.breaking, self.clock)
            return self.allocate_now(name, owner, value)
        except (NotDefined, PoolExhausted, OutOfRange, ValueInUse) as error:
            self.breaking.dies = ""
            self._expect_refusal(name, owner, value, type(error))
            return (name, owner)
        self.breaking.dies = ""
        return self._granted(name, owner, value, grant)

    def allocate_now(self, name: str, owner: str, value: int | None) -> tuple[str, str]:
        try:
            grant = self.allocator.allocate(vlan(owner, value, pool=name))
        except (NotDefined, PoolExhausted, OutOfRange, ValueInUse) as error:
            self._expect_refusal(name, owner, value, type(error))
            return (name, owner)
        return self._granted(name, owner, value, grant)

    @rule(which=consumes(grants), crash=crashes)
    def release(self, which: tuple[str, str], crash: str) -> None:
        known = self.taken.get(which)
        if known is None:
            return
        if known["generation"] > 1:
            assert self._try(self.allocator.release, known["id"], known["generation"] - 1) is StaleGeneration
        if crash == "after":
            with pytest.raises(NotAllocated):
                self._do(crash, "release", known["id"], known["generation"])
        else:
            assert self._do(crash, "release", known["id"], known["generation"]) == 1
        self._freed(which)

    @rule(owner=owners, crash=crashes)
    def release_owner(self, owner: str, crash: str) -> None:
        mine = [key for key in self.taken if key[1] == owner]
        released = self._do(crash, "release_owner", Owner("network", owner))
        assert released == len(mine) or crash == "after"
        for key in mine:
            self._freed(key)

    @rule(seconds=st.integers(1, 2 * REST))
    def wait(self, seconds: int) -> None:
        self.clock.forward(seconds)

    @rule()
    def reconcile(self) -> None:
        report = self.allocator.reconcile(dry_run=False)
        assert (report.orphans, report.leaked, report.failed) == ([], [], [])
        self.resting = {value: due for value, due in self.resting.items() if due > self.clock.at}

    # --- what always holds ----------------------------------------------------------------------------------------------------

    @invariant()
    def the_store_is_the_model(self) -> None:
        if not hasattr(self, "allocator"):
            return
        found = {(grant.pool_id, grant.owner.id): grant.value for grant in self.allocator.list()}
        ids = {pool.name: pool.id for pool in self.allocator.pools()}
        assert ids.keys() == self.pools.keys()
        assert found == {(ids[name], owner): known["value"] for (name, owner), known in self.taken.items()}
        assert self.allocator.check() == []

    def _expect_refusal(self, name: str, owner: str, value: int | None, error: type[Exception]) -> None:
        if name not in self.pools:
            assert error is NotDefined
            return
        known = self.taken.get((name, owner))
        if known is not None:
            assert error is ValueInUse
            assert value not in (None, known["value"])
            return
        (lo, hi), _ = self.pools[name]
        if value is None:
            assert error is PoolExhausted
            assert set(range(lo, hi + 1)) <= self._occupied()
        elif not lo <= value <= hi:
            assert error is OutOfRange
        else:
            assert error is ValueInUse
            assert value in self._occupied()

    def _granted(self, name: str, owner: str, value: int | None, grant: Any) -> tuple[str, str]:
        known = self.taken.get((name, owner))
        (lo, hi), _ = self.pools[name]
        if known is not None:
            assert (grant.id, grant.value) == (known["id"], known["value"])
        else:
            assert value in (None, grant.value)
            assert lo <= grant.value <= hi
            assert grant.value not in self._occupied()
            self.resting.pop(grant.value, None)
            self.taken[name, owner] = {"id": grant.id, "value": grant.value, "generation": grant.generation}
        return (name, owner)

    def _freed(self, key: tuple[str, str]) -> None:
        known = self.taken.pop(key)
        rest = self.pools[key[0]][1]
        if rest:
            self.resting[known["value"]] = self.clock.at + timedelta(seconds=rest)

    def _occupied(self) -> set[int]:
        """Values that nobody can get now."""
        return {known["value"] for known in self.taken.values()} | {
            value for value, due in self.resting.items() if due > self.clock.at
        }

    def _in_pool(self, name: str) -> set[int]:
        (lo, hi), _ = self.pools[name]
        return {value for (pool, _), known in self.taken.items() if pool == name for value in [known["value"]]} | {
            value for value in self.resting if lo <= value <= hi
        }

    def _sweep(self, name: str) -> None:
        (lo, hi), _ = self.pools[name]
        self.resting = {v: due for v, due in self.resting.items() if due > self.clock.at or not lo <= v <= hi}

    def _overlaps(self, name: str, span: tuple[int, int]) -> bool:
        return any(lo <= span[1] and span[0] <= hi for other, ((lo, hi), _) in self.pools.items() if other != name)

    @staticmethod
    def _config(span: tuple[int, int], rest: int) -> dict[str, Any]:
        return {"ranges": f"{span[0]}-{span[1]}", "quarantine_seconds": rest}

    def _do(self, dies: str, name: str, *args: Any, **terms: Any) -> Any:
        """And once more after a crash, by a process that knows nothing of it."""
        self.breaking.dies = dies
        try:
            return getattr(self.allocator, name)(*args, **terms)
        except Crash:
            self.breaking.dies = ""
            self.allocator = new_allocator(self.breaking, self.clock)
            return getattr(self.allocator, name)(*args, **terms)
        finally:
            self.breaking.dies = ""

    @staticmethod
    def _try(work: Any, *args: Any, **terms: Any) -> type[Exception] | None:
        try:
            work(*args, **terms)
        except (AlreadyDefined, NotDefined, Overlap, PoolBusy, StaleGeneration, ValueInUse) as error:
            return type(error)
        return None


@pytest.mark.parametrize("store", STORES)
def test_any_order_of_operations_does_what_the_model_does(store, request, tmp_path):
    with opened(store, request, tmp_path) as driver:
        machine = type("Machine", (Machine,), {"store": driver})
        terms = settings(
            max_examples=EXAMPLES[store] * (10 if SOAK else 1),
            stateful_step_count=30,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(machine, settings=terms)
