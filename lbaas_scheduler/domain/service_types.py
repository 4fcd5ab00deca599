"""What tenants choose from instead of devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """How a service type serves one service. ``driver`` is a device type; None = every type that can do it."""

    service: str
    plugin: str
    driver: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceType:
    """``definitions`` has at most one per service. ``options``: wishes for the scheduler, as an administrator wrote them."""

    id: str
    name: str
    description: str = ""
    enabled: bool = True
    default: bool = False
    definitions: tuple[ServiceDefinition, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def definition_for(self, service: str) -> ServiceDefinition | None:
        """None = it does not serve that service."""
        return next((it for it in self.definitions if it.service == service), None)


@dataclass(frozen=True, slots=True)
class ServiceTypeChoice:
    """What a service type says for one service. ``device_types`` empty = every type. ``wishes``: fields of a ScheduleRequest."""

    id: str
    name: str
    device_types: frozenset[str] = frozenset()
    wishes: Mapping[str, Any] = field(default_factory=dict)
