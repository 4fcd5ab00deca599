"""VXLAN network identifiers, each with the local VLAN that a bridge on the hosts knows it by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lbaas_scheduler.allocator.core.drivers import Query, Txn
from lbaas_scheduler.allocator.core.requests import Request
from lbaas_scheduler.allocator.core.resource import Definition, Part, Resource
from lbaas_scheduler.allocator.core.spans import Spans
from lbaas_scheduler.allocator.core.states import Allocation, Claim, Pool
from lbaas_scheduler.allocator.kinds import configs, ranges, vlan
from lbaas_scheduler.errors import InvalidConfig, InvalidRequest

LAST = 2**24 - 1
"""24 bits (RFC 7348, section 5); 0 is kept for "none"."""

PAIRED_LAST, PAIRED_WIDTH = 65_535, 16_001
"""With a local VLAN for each VNI, wider ranges could never be used; the bounds are those of the seed's lineage."""

LOCAL = "local"
"""Name of the part with the local VLANs."""

WORDS = ("range", "underlay", "local_vlan", "local_vlans", "local_network", "capacity_check")


class Vxlan(Resource):
    """``{"range": "10000-13999", "underlay": "default", "local_vlan": "shared", "capacity_check": "full"}``.

    :``local_vlan``: ``shared``: a VNI has one local VLAN, the same on every host; ``per_host``: one for each host that a request
        names; ``none``: hosts need none, and the range may go up to 2^24 − 1.
    :``local_vlans``: the range they come from, ``1-4094``.
    :``local_network``: the physical network whose VLANs they share a switch with. "" = none: they never meet an uplink's VLANs.
    :``capacity_check``: ``full``: the range must not be wider than the local VLANs that are left; ``lazy``: found out when they
        run out; ``off``: as lazy, and other pools' checks do not count this one either.
    """

    kind: ClassVar[str] = "vxlan"
    plural: ClassVar[str] = "vxlans"

    def define(self, pool: Pool, config: Mapping[str, Any]) -> Definition:
        configs.known_words(self.kind, config, WORDS)
        words = {
            "range": config.get("range", ""),
            "underlay": configs.name(self.kind, config, "underlay", "default"),
            "local_vlan": configs.choice(self.kind, config, "local_vlan", ("shared", "per_host", "none"), "shared"),
            "local_vlans": config.get("local_vlans", f"{vlan.FIRST}-{vlan.LAST}"),
            "local_network": configs.name_or_none(self.kind, config, "local_network"),
            "capacity_check": configs.choice(self.kind, config, "capacity_check", ("full", "lazy", "off"), "full"),
        }
        numbers = parse_range(words["range"], paired=words["local_vlan"] != "none")
        main = Part(f"underlay:{words['underlay']}/vni", numbers, numbers, "no vxlans available")
        parts = {"": main} | _local_part(words)
        words["range"] = ranges.written(numbers)
        if LOCAL in parts:
            words["local_vlans"] = ranges.written(parts[LOCAL].numbers)
        return Definition(words, parts, {})

    def parse(self, definition: Definition, value: Any) -> int:
        return ranges.number(self.kind, value)

    def parse_returned(self, definition: Definition, value: Any) -> int:
        """``{"vxlan": 10000, "vlan": 1}`` as well: the pair that was given. One cannot choose the VLAN, but say which it was."""
        if isinstance(value, Mapping) and set(value) == {"vxlan", "vlan"}:
            value = value["vxlan"]
        if isinstance(value, bool) or not isinstance(value, int):
            text = f"Invalid type for vxlan-vlan pair: {value!r:.80}; give a whole number, or vxlan and vlan"
            raise InvalidRequest(text, value=repr(value)[:80])
        return ranges.number(self.kind, value)

    def show(self, number: int, prefix_len: int) -> int:
        return number

    def refusal(self, definition: Definition, number: int) -> str:
        if number < definition.main.numbers.items[0].lo:
            return "requested vxlan is out of range"
        return "requested vxlan not available"

    def parts_of(self, definition: Definition, request: Request) -> tuple[str, ...]:
        policy = definition.config["local_vlan"]
        return (LOCAL,) if policy == "shared" or (policy == "per_host" and request.host) else ()

    def check(self, txn: Txn, pool: Pool, definition: Definition) -> None:
        """Each VNI of the range must find a local VLAN, whatever the other pools of the same VLANs hand out."""
        if definition.config["local_vlan"] != "shared" or definition.config["capacity_check"] != "full":
            return
        local = definition.parts[LOCAL]
        claims = [stored.state for stored in txn.read(Query(Claim, prefix=(local.domain,)))]
        others = [claim for claim in claims if claim.pool_id != pool.id]
        vlans = Spans.of((int(claim.lo, 16), int(claim.hi, 16)) for claim in others if claim.role == "alloc")
        promised = sum(_promised(txn, pool_id) for pool_id in sorted({claim.pool_id for claim in others if claim.role == LOCAL}))
        free = max(0, local.numbers.minus(vlans).size - promised)
        wanted = definition.main.numbers.size
        if free < wanted:
            text = f"Available free local vlans ({free}) is less than possible vxlans ({wanted})"
            raise InvalidConfig(text, kind=self.kind, free=free, wanted=wanted)


def parse_range(text: Any, *, paired: bool) -> Spans:
    """The one range of a pool.

    :param paired: whether each VNI takes a local VLAN.
    :raises InvalidConfig: no range, more than one, or too wide.
    """
    numbers = ranges.parse("vxlan", "range", text, 1, PAIRED_LAST if paired else LAST)
    if "," in text:
        raise configs.invalid("vxlan", f"range: {text!r:.80} is more than one; define a pool for each")
    if paired and numbers.size > PAIRED_WIDTH:
        raise configs.invalid(
            "vxlan", f"range: {text} is {numbers.size} wide; {PAIRED_WIDTH} is the most, unless local_vlan is none"
        )
    return numbers


def _local_part(words: Mapping[str, Any]) -> dict[str, Part]:
    policy, network = words["local_vlan"], words["local_network"]
    if policy == "none":
        return {}
    numbers = ranges.parse("vxlan", "local_vlans", words["local_vlans"], vlan.FIRST, vlan.LAST)
    if policy == "per_host":
        # Every host has its own; nobody else can claim them.
        return {LOCAL: Part("host:{host}/lvlan", numbers, Spans(), "no local vlans available")}
    domain = vlan.domain_of(network) if network else f"underlay:{words['underlay']}/lvlan"
    return {LOCAL: Part(domain, numbers, numbers, "no local vlans available", role=LOCAL)}


def _promised(txn: Txn, pool_id: str) -> int:
    """How many of the local VLANs another pool may want."""
    found = txn.first(Pool, "uid", pool_id)
    if found is None or found.state.config["capacity_check"] == "off":
        return 0
    if found.state.config["capacity_check"] == "full":
        return parse_range(found.state.config["range"], paired=True).size
    taken = txn.read(Query(Allocation, "in", (pool_id,)))
    return sum(1 for stored in taken if stored.state.part == LOCAL)
