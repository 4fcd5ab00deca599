"""Moving placed resources between devices: what a move is, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
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
