"""How much a device can take, per resource class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UNLIMITED = -1

VIPS = "VIPS"
CONNECTIONS = "CONNECTIONS"
ADDRESSES = "ADDRESSES"
BANDWIDTH_MBPS = "BANDWIDTH_MBPS"
"""Standard resource classes. Vendors' own start with ``CUSTOM_``."""

Amounts = Mapping[str, int]
"""Resource class → amount."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Capacity of one resource class on one device.

    ``limit`` = (total − reserved) × allocation ratio, rounded down; :data:`UNLIMITED` when total is −1.
    """

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0

    @property
    def limit(self) -> int:
        """What all claims together may not exceed."""
        if self.total == UNLIMITED:
            return UNLIMITED
        return max(0, int((self.total - self.reserved) * self.allocation_ratio))


@dataclass(frozen=True, slots=True)
class Usage:
    """How full one resource class of a device is."""

    used: int
    limit: int

    def takes(self, amount: int) -> bool:
        """Whether ``amount`` more fits."""
        return self.limit == UNLIMITED or self.used + amount <= self.limit

    @property
    def fill(self) -> float:
        """0.0 (empty, or unlimited) to 1.0 (full)."""
        if self.limit == UNLIMITED:
            return 0.0
        return 1.0 if self.limit == 0 else min(1.0, self.used / self.limit)
