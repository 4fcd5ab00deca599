"""Moving placed resources between devices: what a move is, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class MoveState(StrEnum):
    """Each state is a set of rows in the database, and each step from one to the next is one transaction."""

    QUEUED = "queued"
    """Waits for its turn. Nothing is claimed."""
    DEPLOYING = "deploying"
    """Claimed on the target and being deployed there; the source serves."""
    REMOVING = "removing"
    """The target serves; the source has still to confirm that it let go, and its claim holds until then."""
    DONE = "done"
    ROLLING_BACK = "rolling_back"
    """The target failed; the source serves as before, and the target has still to confirm that it has nothing of it."""
    FAILED = "failed"

    @property
    def busy(self) -> bool:
        """Whether the move will still change where the resource is."""
        return self in (MoveState.QUEUED, MoveState.DEPLOYING)


class Cause(StrEnum):
    """Who wants a move."""

    OPERATOR = "operator"
    EVACUATION = "evacuation"
    REBALANCE = "rebalance"
    FAILURE = "failure"
    """Nobody: the source is OFFLINE for longer than its service type allows. The only kind that the breaker freezes."""

    @property
    def persistent(self) -> bool:
        """Whether it is tried again, on other devices, until it succeeds: it is the source that must be left."""
        return self in (Cause.EVACUATION, Cause.FAILURE)


@dataclass(frozen=True, slots=True)
class Move:
    """``target_id`` None: not chosen yet. ``tried``: devices that failed to take it. ``error``: why it waits, or failed."""

    resource_id: str
    id: str
    service: str
    source_id: str
    target_id: str | None
    state: MoveState
    cause: Cause
    tried: tuple[str, ...] = ()
    attempts: int = 0
    error: str = ""
    due_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


FIRST_RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 300.0


def retry_seconds(failures: int) -> float:
    """How long a move rests that failed so often, or could not begin: twice as long each time."""
    return min(FIRST_RETRY_SECONDS * 2.0 ** min(max(failures - 1, 0), 16), LONGEST_RETRY_SECONDS)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many moves may be under way: at all and per device, of those between devices that work; and off lost devices to one."""

    moves: int
    per_device: int
    rescues_per_device: int


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Moves whose targets are being deployed to.

    :param counts: source id and target id → how many.
    :param lost: ids of devices that nobody reaches now. A move off one disturbs nothing that is served, and one to it does
        nothing for the time being: neither takes the place of a move between devices that work.
    """

    counts: Mapping[tuple[str, str | None], int]
    lost: Set[str] = frozenset()

    def live(self, device_id: str | None = None) -> int:
        """How many are between devices that work: from or to one of them, or at all."""
        return sum(n for ends, n in self.counts.items() if not self._is_lost(ends) and device_id in (None, *ends))

    def rescued_to(self, device_id: str) -> int:
        """How many come to a device from lost ones."""
        return sum(n for (source_id, target_id), n in self.counts.items() if target_id == device_id and source_id in self.lost)

    def has_room(self, source_id: str, target_id: str, limits: Limits) -> bool:
        """Whether one more may begin."""
        if source_id in self.lost:
            return self.rescued_to(target_id) < limits.rescues_per_device
        return self.live() < limits.moves and max(self.live(source_id), self.live(target_id)) < limits.per_device

    def _is_lost(self, ends: tuple[str, str | None]) -> bool:
        return any(device_id in self.lost for device_id in ends)


@dataclass(frozen=True, slots=True)
class Evacuation:
    """``total``: how many resources the device had at the start. ``finished_at`` None: under way."""

    device_id: str
    total: int
    started_at: datetime
    finished_at: datetime | None = None
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Breaker:
    """``kind``: ``devices`` or ``agents``. ``tripped_at`` None: closed, nothing is frozen."""

    kind: str
    tripped_at: datetime | None = None
    acknowledged_at: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One step of a plan."""

    resource_id: str
    source_id: str
    target_id: str


@dataclass(frozen=True, slots=True)
class BalancePlan:
    """``before`` and ``after``: device id → how many resources it has. ``spread``: the largest difference of fill."""

    transfers: tuple[Transfer, ...]
    spread_before: float
    spread_after: float
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
