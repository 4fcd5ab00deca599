"""Why a resource went where it went, or why it went nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MAX_REJECTIONS = 20
"""A trail names at most this many refused devices; beyond, it counts."""

MAX_CONSIDERED = 5
"""A trail names at most this many of the devices that would have done, best first."""

MAX_TOLD = 5
"""A sentence for an administrator names at most this many refused devices."""

SAYS_LITTLE = ("device_type", "hint", "excluded")
"""Codes of devices that were out of the question from the beginning: told last."""

_FULL = ("capacity.", "claim.", "network.", "dedicated")
_OUT_OF_SERVICE = ("device.", "agent.", "unexamined")

FIRST_EPOCH = 1
"""Of a resource's first deployment."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One device, refused. ``code`` is for programs (``capacity.VIPS``, ``trait.PROTOCOL_HTTPS``, ``zone``, ``agent.down``,
    ``device.draining``, ``handler.<type>``, ``claim.lost``); ``reason`` is a sentence for a person."""

    device_id: str
    device_name: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Considered:
    """One device that would have done. ``load``: fill of its fullest standard resource class in 1/10,000; ``weight``: how well it
    suits in the words of its handler, 0..100."""

    device_id: str
    device_name: str
    load: int
    weight: float
    connections: int | None = None
    """Open connections, as last reported; None = unknown, or nothing depended on it."""

    def described(self, measure: str = "") -> str:
        """For a person. ``measure``: the trail's; "" leaves out the connections, as nothing depended on them."""
        said = "" if not measure else "connections unknown, " if self.connections is None else f"{self.connections} connections, "
        return f"{self.device_name} ({self.load / 100:g} % full, {said}weight {self.weight:g})"


@dataclass(frozen=True, slots=True)
class Trail:
    """The decision's own account: bounded in size, stored with the placement."""

    algorithm: str = ""
    tenancy: str = ""
    rounds: int = 0
    examined: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Code → how many devices it dropped, the first one that applied."""
    rejections: tuple[Rejection, ...] = ()
    considered: tuple[Considered, ...] = ()
    """The devices that could have taken it, in the order of the algorithm's preference."""
    rule: str = ""
    """Name of the placement rule that applied; "" = none did."""
    measure: str = ""
    """By what devices counted as empty, if not by what is placed on them alone: ``reported`` or ``both``."""

    def to_document(self) -> dict[str, Any]:
        """As :func:`dataclasses.asdict` would, for JSON; but that copies each value deeply, on the path of every placement."""
        named = {
            "dropped": dict(self.dropped),
            "rejections": tuple(_document(it) for it in self.rejections),
            "considered": tuple(_document(it) for it in self.considered),
        }
        return {**_document(self), **named}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Trail:
        """The reverse of :meth:`to_document`, after a trip through JSON. What a newer server wrote beside it is left out."""
        named = {
            "rejections": tuple(Rejection(**_known(Rejection, it)) for it in document.get("rejections", ())),
            "considered": tuple(Considered(**_known(Considered, it)) for it in document.get("considered", ())),
        }
        return cls(**{**_known(cls, document), **named})

    def extended(self, rejections: Sequence[Rejection]) -> Trail:
        """The same with further rejections, within the bound."""
        if not rejections:
            return self
        counts = Counter(self.dropped)
        counts.update(rejection.code for rejection in rejections)
        return replace(self, dropped=dict(counts), rejections=(*self.rejections, *rejections)[:MAX_REJECTIONS])

    def summary(self) -> str:
        """One sentence: what dropped how many."""
        if not self.dropped:
            return "no device of the wanted types is registered."
        return ", ".join(f"{count} × {code}" for code, count in sorted(self.dropped.items())) + "."

    def told(self) -> str:
        """For an administrator: what dropped how many, and which device said what."""
        telling = sorted(self.rejections, key=lambda it: it.code in SAYS_LITTLE)[:MAX_TOLD]
        named = "; ".join(f"{it.device_name or it.device_id}: {it.reason}" for it in telling)
        more = "; …" if sum(self.dropped.values()) > len(telling) else ""
        return f"{self.summary()} {named}{more}" if named else self.summary()

    def for_tenants(self) -> str:
        """For somebody who must not learn which devices there are, or how many."""
        if any(code.startswith(_FULL) for code in self.dropped):
            return "none that suits it has room now; try again later, or ask your operator."
        if any(code.startswith(_OUT_OF_SERVICE) for code in self.dropped):
            return "none that suits it is in service now; try again later, or ask your operator."
        return "there is none that does what it asks for; ask for something else, or ask your operator."

    def why(self, device_id: str) -> str:
        """One sentence for a person: why it is this device and no other."""
        chosen = next((it for it in self.considered if it.device_id == device_id), None)
        others = [it.described(self.measure) for it in self.considered if it.device_id != device_id]
        by = {"reported": " by reported load", "both": " by placed and reported load"}.get(self.measure, "")
        picked = f"{self.algorithm}{by} took {chosen.described(self.measure) if chosen else device_id}"
        against = f" before {', '.join(others)}" if others else ""
        examined = f"{self.examined} device{'' if self.examined == 1 else 's'} examined"
        refused = f", refused: {self.summary().rstrip('.')}" if self.dropped else ""
        rule = f"; placement rule '{self.rule}' applied" if self.rule else ""
        return f"{picked}{against} ({examined}{refused}{rule})."


def _known(kind: type[Rejection | Considered | Trail], document: Mapping[str, Any]) -> dict[str, Any]:
    """What of the document is a field of the value."""
    return {name: document[name] for name in kind.__slots__ if name in document}


def _document(value: Rejection | Considered | Trail) -> dict[str, Any]:
    """The fields of a value, which are plain themselves."""
    return {name: getattr(value, name) for name in value.__slots__}


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a resource goes. ``score`` 0..100; ``epoch`` is that of the first deployment."""

    resource_id: str
    device_id: str
    device_name: str
    device_type: str
    agent_host: str
    score: float
    epoch: int
    trail: Trail
