"""An agent, as the server knows it: a process on a host that drives devices of some types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

LOADBALANCER_AGENT = "Loadbalancer agent"


@dataclass(frozen=True, slots=True)
class Agent:
    """``drivers``: the device types that it says it can drive. ``configurations``: its last report's, as sent."""

    id: str
    agent_type: str
    host: str
    binary: str
    topic: str
    created_at: datetime
    started_at: datetime
    heartbeat_at: datetime
    description: str = ""
    admin_state_up: bool = True
    drivers: frozenset[str] = frozenset()
    configurations: Mapping[str, Any] = field(default_factory=dict)

    def alive(self, heard_since: datetime) -> bool:
        """Whether its last report is not older than ``heard_since``."""
        return self.heartbeat_at >= heard_since

    def usable(self, heard_since: datetime) -> bool:
        """Alive, and an administrator has not put it out of service."""
        return self.admin_state_up and self.alive(heard_since)


@dataclass(frozen=True, slots=True)
class StateReport:
    """What an agent says of itself.

    ``started_at`` and ``sent_at`` are by the clock of its host. The first tells one start of the agent from another, the second
    puts the reports since then in order; neither is ever compared with another host's clock.
    """

    agent_type: str
    host: str
    binary: str
    topic: str
    started_at: datetime
    sent_at: datetime
    drivers: frozenset[str] = frozenset()
    configurations: Mapping[str, Any] = field(default_factory=dict)
    first: bool = False
    """The first one since the agent started."""
