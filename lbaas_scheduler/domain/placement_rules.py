"""Rules by which administrators steer placements: data, not code. The first rule that matches shapes the request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True, slots=True)
class Subject:
    """What rules look at: the resource that is to be placed. "" and None = it has none, or none yet."""

    tenant_id: str
    network_id: str = ""
    subnet_id: str = ""
    protocol: str = ""
    port: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """Every condition that is given must hold; of the values of one condition, one. Without conditions everything matches.

    ``ports``: first and last of each range. ``names``: globs (``*``, ``?``, ``[abc]``), in the case that they are written in.
    """

    tenants: frozenset[str] = frozenset()
    networks: frozenset[str] = frozenset()
    subnets: frozenset[str] = frozenset()
    protocols: frozenset[str] = frozenset()
    ports: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()

    def fits(self, subject: Subject) -> bool:
        """Whether all conditions hold. What the subject does not have meets no condition about it."""
        port = subject.port
        return (
            (not self.tenants or subject.tenant_id in self.tenants)
            and (not self.networks or subject.network_id in self.networks)
            and (not self.subnets or subject.subnet_id in self.subnets)
            and (not self.protocols or subject.protocol in self.protocols)
            and (not self.ports or (port is not None and any(low <= port <= high for low, high in self.ports)))
            and (not self.names or any(fnmatchcase(subject.name, glob) for glob in self.names))
        )


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """Rules of a service are tried in the order of ``position``, then of ``name``.

    ``wishes``: fields of a :class:`~lbaas_scheduler.domain.requests.ScheduleRequest`.
    """

    id: str
    name: str
    service: str
    position: int = 0
    description: str = ""
    enabled: bool = True
    match: Match = field(default_factory=Match)
    wishes: Mapping[str, Any] = field(default_factory=dict)


def first_match(rules: Iterable[PlacementRule], subject: Subject) -> PlacementRule | None:
    """The first enabled rule that fits. ``rules``: in their order."""
    return next((rule for rule in rules if rule.enabled and rule.match.fits(subject)), None)


def shaped(wishes: Mapping[str, Any], rule: PlacementRule | None) -> dict[str, Any]:
    """The wishes of a service type with those of a rule. Traits and options add up; of all else the rule's word counts."""
    if rule is None:
        return dict(wishes)
    result: dict[str, Any] = {**wishes, "rule": rule.name}
    for name, value in rule.wishes.items():
        before = result.get(name)
        result[name] = before | value if isinstance(before, frozenset | dict) else value
    return result
