"""IP addresses of one network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lbaas_scheduler.allocator.core.resource import Definition, Part, Resource
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Pool
from lbaas_scheduler.allocator.kinds import configs, inet
from lbaas_scheduler.allocator.kinds.subnet import scope_name
from lbaas_scheduler.errors import InvalidRequest

WORDS = ("cidr", "gateway", "ranges", "automatic", "reserved", "address_scope", "parent")

NOTHING = "none"


class Address(Resource):
    """``{"cidr": "10.1.1.0/24", "gateway": "10.1.1.254", "ranges": "10.1.1.10-10.1.1.99", "reserved": ["10.1.1.53"]}``.

    ``automatic``: ranges that those get an address of who ask for no certain one; "" = of all, ``none`` = of nowhere.

    The gateway and the reserved addresses are allocations as all others, so nothing else can get them. Two pools may share a
    network if their ranges are apart. ``parent`` names a pool of the same scope that this one is carved out of: the parent does
    not hand out its addresses meanwhile.
    """

    kind: ClassVar[str] = "address"
    plural: ClassVar[str] = "addresses"

    def define(self, pool: Pool, config: Mapping[str, Any]) -> Definition:
        configs.known_words(self.kind, config, WORDS)
        net = inet.network(self.kind, "cidr", config.get("cidr"))
        if net.prefixlen == net.max_prefixlen:
            raise configs.invalid(self.kind, f"cidr: {net} is a single address; give at most /{net.max_prefixlen - 1}")
        text = config.get("ranges", "")
        given = [] if text == "" else inet.ranges(self.kind, "ranges", text, net)
        parent = configs.name_or_none(self.kind, config, "parent")
        scope = configs.name(self.kind, config, "address_scope", scope_name(pool.scope))
        claims = Spans.of(given or [inet.span(net)])
        part = Part(
            domain=f"subnet:{pool.parent_allocation_id}/ip" if pool.parent_allocation_id else f"scope:{scope}/ip",
            numbers=Spans.of(given or [inet.hosts(net)]),
            claims=claims,
            exhausted="no addresses available",
            role="child" if parent else "alloc",
            automatic=self._automatic(config, net, Spans.of(given or [inet.hosts(net)])),
        )
        reserved = self._reserved(config, net)
        words = {
            "cidr": str(net),
            "gateway": next((str(inet.to_address(number)) for number, what in reserved.items() if what == "gateway"), ""),
            "ranges": inet.ranges_text(Spans.of(given)),
            "automatic": NOTHING if part.automatic == Spans() else inet.ranges_text(part.automatic or Spans()),
            "reserved": [str(inet.to_address(number)) for number, what in sorted(reserved.items()) if what != "gateway"],
            "address_scope": scope,
            "parent": parent,
        }
        return Definition(words, {"": part}, {number: what for number, what in reserved.items() if number in part.numbers})

    def parse(self, definition: Definition, value: Any) -> int:
        try:
            return inet.to_number(inet.parsed(value))
        except ValueError as error:
            raise InvalidRequest(
                f"Invalid type for address value: {value!r:.80}; give an IP address", value=repr(value)[:80]
            ) from error

    def show(self, number: int, prefix_len: int) -> str:
        return str(inet.to_address(number))

    def refusal(self, definition: Definition, number: int) -> str:
        return f"requested address not available - address:{inet.to_address(number)}"

    def _automatic(self, config: Mapping[str, Any], net: inet.Network, numbers: Spans) -> Spans | None:
        text = config.get("automatic", "")
        if text in ("", NOTHING):
            return Spans() if text else None
        spans = Spans.of(inet.ranges(self.kind, "automatic", text, net))
        if spans.minus(numbers):
            raise configs.invalid(self.kind, f"automatic: {text!r:.80} leaves the ranges of the pool")
        return spans

    def _reserved(self, config: Mapping[str, Any], net: inet.Network) -> dict[int, str]:
        """Number → what for."""
        listed = config.get("reserved", [])
        if not isinstance(listed, list | tuple):
            raise configs.invalid(self.kind, f"reserved is {listed!r:.80}; give a list of addresses")
        gateway = [config["gateway"]] if config.get("gateway", "") not in ("", None) else []
        usable, found = inet.hosts(net), {}
        for text, what in (*((text, "gateway") for text in gateway), *((text, "reserved") for text in listed)):
            number = inet.to_number(inet.address(self.kind, what, text))
            if not usable.lo <= number <= usable.hi:
                raise configs.invalid(self.kind, f"{what} {text} is no host of {net}")
            if number in found:
                raise configs.invalid(self.kind, f"{what} {text} is given twice")
            found[number] = what
        return found
