"""Slots of a rack, counted from 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lbaas_scheduler.allocator.core.resource import Definition, Part, Resource
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Pool
from lbaas_scheduler.allocator.kinds import configs, ranges
from lbaas_scheduler.errors import InvalidRequest

LAST = 999


class Slot(Resource):
    """``{"first": 0, "last": 41, "rack": "7"}``. A value is a number; slot 0 is a slot as any other."""

    kind: ClassVar[str] = "slot"
    plural: ClassVar[str] = "slots"
    pick: ClassVar[str] = "lowest"

    def define(self, pool: Pool, config: Mapping[str, Any]) -> Definition:
        configs.known_words(self.kind, config, ("first", "last", "rack"))
        first, last = config.get("first", 0), config.get("last", LAST)
        if not all(isinstance(number, int) for number in (first, last)) or not 0 <= first <= last <= LAST:
            raise configs.invalid(self.kind, f"first and last are {first!r} and {last!r}; give whole numbers from 0 to {LAST}")
        rack = configs.name(self.kind, config, "rack", "1")
        numbers = Spans.of([(first, last)])
        part = Part(f"rack:{rack}/slot", numbers, numbers, "no slots available")
        return Definition({"first": first, "last": last, "rack": rack}, {"": part}, {})

    def parse(self, definition: Definition, value: Any) -> int:
        number = ranges.number(self.kind, value)
        if number > LAST:
            raise InvalidRequest(f"{number} is no slot; the last one is {LAST}")
        return number

    def show(self, number: int, prefix_len: int) -> int:
        return number
