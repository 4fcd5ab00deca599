"""Where resources would go, if they were placed now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lbaas_scheduler.domain.capacity import Usage
from lbaas_scheduler.domain.trail import Trail


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a claim would meet on a device, beyond what a page says.

    ``usage``: of those vendors' own resource classes that the request demands. ``wires``: whether its interfaces have VLANs left
    for the networks that are not wired yet.
    """

    usage: Mapping[str, Usage] = field(default_factory=dict)
    wires: bool = True


@dataclass(frozen=True, slots=True)
class Share:
    """What one device would get. Loads are fills of its fullest standard resource class, in 1/10,000."""

    device_id: str
    device_name: str
    device_type: str
    count: int
    load_before: int
    load_after: int


@dataclass(frozen=True, slots=True)
class Filled:
    """A device that would take no further resource of the kind.

    ``limited_by``: the resource class that it has too little of. ``after``: with the how manieth placed resource that came about.
    """

    device_id: str
    device_name: str
    limited_by: str
    after: int


@dataclass(frozen=True, slots=True)
class Simulation:
    """The outcome of a dry run.

    ``shares``: the most resources first. ``filled``: in the order in which it would happen. ``trail``: of the first resource that
    would find no device; if all found one, of the last.
    """

    wanted: int
    placed: int
    shares: tuple[Share, ...]
    filled: tuple[Filled, ...]
    trail: Trail
