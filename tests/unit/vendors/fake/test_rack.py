"""Where fake devices stand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lbaas_scheduler.vendors.fake.rack import Call, FolderRack

CHANGES = 60


def test_agents_that_change_one_device_at_once_lose_none_of_their_changes(tmp_path: Path) -> None:
    # Each agent has a rack object of its own, as each is a process of its own.
    racks = [FolderRack(tmp_path) for _ in range(3)]

    def change(number: int) -> None:
        call = Call("apply", (str(number),))
        racks[number % len(racks)].change("device", lambda contents: contents.called(call))

    with ThreadPoolExecutor(len(racks)) as agents:
        list(agents.map(change, range(CHANGES)))
    seen = {call.vip_ids[0] for call in FolderRack(tmp_path).read("device").calls}
    assert seen == {str(number) for number in range(CHANGES)}
