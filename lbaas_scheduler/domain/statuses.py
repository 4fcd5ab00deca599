"""The states that things are in."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Life-cycle of a VIP, pool, member or pool-monitor association (LBaaS v1)."""

    PENDING_CREATE = "PENDING_CREATE"
    ACTIVE = "ACTIVE"
    PENDING_UPDATE = "PENDING_UPDATE"
    PENDING_DELETE = "PENDING_DELETE"
    INACTIVE = "INACTIVE"
    """A member that its health monitor found down."""
    DISABLED = "DISABLED"
    """Applied with ``admin_state_up`` false."""
    ERROR = "ERROR"

    @property
    def pending(self) -> bool:
        """Whether an agent has yet to report what came of it."""
        return self in PENDING


PENDING = frozenset({Status.PENDING_CREATE, Status.PENDING_UPDATE, Status.PENDING_DELETE})


class AdminState(StrEnum):
    """What an operator wants of a device."""

    ENABLED = "enabled"
    DRAINING = "draining"
    """Keeps what it has, takes nothing new."""
    DISABLED = "disabled"
    """Takes nothing new; what it has can still be changed and removed."""


class DeviceStatus(StrEnum):
    """What monitoring knows of a device."""

    ONLINE = "ONLINE"
    OFFLINE = "OFFLINE"
    SYNCING = "SYNCING"
    """Back after a loss; not a candidate before a full resync succeeded."""
    UNKNOWN = "UNKNOWN"


class Form(StrEnum):
    """Whether a device is a machine of its own or runs on one."""

    PHYSICAL = "physical"
    VIRTUAL = "virtual"
