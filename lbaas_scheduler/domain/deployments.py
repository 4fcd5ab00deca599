"""What travels between server and agent: desired state down, results and statistics up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lbaas_scheduler.domain.loadbalancers import Vip


class Version(NamedTuple):
    """Which state of a VIP is meant. Orders by epoch, then revision: a lower one is stale.

    ``epoch`` grows with every binding of the VIP to a device or of the device to an agent; ``revision`` with every change
    of the VIP or of anything below it.
    """

    epoch: int
    revision: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """One VIP's whole desired state on one device. ``wiring`` says how the device reaches the VIP's networks."""

    vip: Vip
    version: Version
    wiring: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of applying or removing one VIP.

    ``error`` None = success; else a sentence that a tenant may read. ``object_errors`` (id of a member, pool or monitor →
    sentence) marks single objects that failed while the VIP as a whole works.
    """

    vip_id: str
    version: Version
    error: str | None = None
    object_errors: Mapping[str, str] = field(default_factory=dict)
    removed: bool = False

    @property
    def ok(self) -> bool:
        """Whether the VIP as a whole works; single objects may have failed all the same."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class MemberHealth:
    """What the device's health check says. ``up`` None = not known (no monitor, or the check has not run yet)."""

    up: bool | None
    failed_checks: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class VipStats:
    """Counters of one VIP since it was deployed (64 bit), and its members' health by member id."""

    bytes_in: int = 0
    bytes_out: int = 0
    active_connections: int = 0
    total_connections: int = 0
    members: Mapping[str, MemberHealth] = field(default_factory=dict)
