"""VLAN ids of a physical network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lbaas_scheduler.allocator.core.resource import Definition, Part, Resource
from lbaas_scheduler.allocator.core.states import Pool
from lbaas_scheduler.allocator.kinds import configs, ranges

FIRST, LAST = 1, 4094
"""0 and 4095 are reserved (IEEE 802.1Q, table 9-2)."""

WORDS = ("ranges", "physical_network")


class Vlan(Resource):
    """``{"ranges": "100-199, 300-399", "physical_network": "default"}``.

    A VLAN id is unique in its physical network, whoever's pool it comes from: ranges of two pools there must not overlap. The
    same id may serve two sites: give them different physical networks. ``ranges`` "" stands for all of 1-4094.
    """

    kind: ClassVar[str] = "vlan"
    plural: ClassVar[str] = "vlans"

    def define(self, pool: Pool, config: Mapping[str, Any]) -> Definition:
        configs.known_words(self.kind, config, WORDS)
        network = configs.name(self.kind, config, "physical_network", "default")
        text = config.get("ranges", "")
        # Not "or": 0 and [] stand for nothing.
        text = f"{FIRST}-{LAST}" if text == "" else text
        numbers = ranges.parse(self.kind, "ranges", text, FIRST, LAST)
        part = Part(domain_of(network), numbers, numbers, "no vlans available")
        return Definition({"ranges": ranges.written(numbers), "physical_network": network}, {"": part}, {})

    def parse(self, definition: Definition, value: Any) -> int:
        return ranges.number(self.kind, value)

    def show(self, number: int, prefix_len: int) -> int:
        return number

    def refusal(self, definition: Definition, number: int) -> str:
        return f"requested vlan not available - vlan:{number}"


def domain_of(physical_network: str) -> str:
    return f"physnet:{physical_network}/vlan"
