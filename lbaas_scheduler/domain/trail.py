"""Why a resource went where it went, or why it went nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MAX_REJECTIONS = 20
"""A trail names at most this many devices; beyond, it counts."""

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
class Trail:
    """The decision's own account: bounded in size, stored with the placement."""

    algorithm: str = ""
    tenancy: str = ""
    rounds: int = 0
    examined: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Code → how many devices it dropped, the first one that applied."""
    rejections: tuple[Rejection, ...] = ()

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Trail:
        """The reverse of :func:`dataclasses.asdict`, after a trip through JSON."""
        return cls(**{**document, "rejections": tuple(Rejection(**it) for it in document["rejections"])})

    def extended(self, rejections: Sequence[Rejection]) -> Trail:
        """The same with further rejections, within the bound."""
        counts = Counter(self.dropped)
        counts.update(rejection.code for rejection in rejections)
        return replace(self, dropped=dict(counts), rejections=(*self.rejections, *rejections)[:MAX_REJECTIONS])

    def summary(self) -> str:
        """One sentence: what dropped how many."""
        if not self.dropped:
            return "no device of the wanted types is registered."
        return ", ".join(f"{count} × {code}" for code, count in sorted(self.dropped.items())) + "."


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
