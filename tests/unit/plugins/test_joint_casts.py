"""Callers whose VIPs are cast together."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from lbaas_scheduler.plugins.joint_casts import JointCaster
from tests.rig.waiting import wait_for


class SlowCaster:
    """Whoever calls is held until the door opens."""

    def __init__(self) -> None:
        self.door = threading.Event()
        self.calls: list[list[str]] = []

    def cast(self, vip_ids: Collection[str]) -> None:
        self.calls.append(sorted(vip_ids))
        assert self.door.wait(10)


def test_one_who_is_alone_is_served_at_once() -> None:
    caster = SlowCaster()
    caster.door.set()
    joint = JointCaster(caster)
    joint.cast(["a"])
    joint.cast(["b", "c"])
    joint.cast([])
    assert caster.calls == [["a"], ["b", "c"]]


def test_those_who_come_meanwhile_are_served_together_and_return_after_that() -> None:
    caster = SlowCaster()
    joint = JointCaster(caster)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(joint.cast, ["first"])
        wait_for(lambda: caster.calls, 10, "the first to be served")
        others = [threads.submit(joint.cast, [f"vip-{number}"]) for number in range(6)]
        wait_for(lambda: len(joint._waiting) == 6, 10, "the others to wait")
        assert not any(each.done() for each in (first, *others))
        caster.door.set()
        for each in (first, *others):
            each.result(10)
    assert caster.calls == [["first"], [f"vip-{number}" for number in range(6)]]
