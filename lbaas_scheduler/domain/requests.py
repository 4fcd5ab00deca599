"""What is asked of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lbaas_scheduler.domain.capacity import Amounts
from lbaas_scheduler.domain.statuses import Form


class Tenancy(StrEnum):
    """Whose devices a request may land on."""

    PRIVATE_FIRST = "private_first"
    PRIVATE_ONLY = "private_only"
    SHARED_ONLY = "shared_only"
    DEDICATED = "dedicated"


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """A resource that looks for a device. Knows nothing of the service it belongs to but its name.

    ``device_types`` empty = every type of the service. ``resource`` is the logical object (for the load balancer a
    :class:`~lbaas_scheduler.domain.loadbalancers.Vip`): opaque to the framework, there for the service's handlers.
    """

    resource_id: str
    service: str
    tenant_id: str
    device_types: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    preferred: frozenset[str] = frozenset()
    demand: Amounts = field(default_factory=dict)
    tenancy: Tenancy = Tenancy.PRIVATE_FIRST
    form: Form | None = None
    zone: str | None = None
    networks: tuple[str, ...] = ()
    exclude: frozenset[str] = frozenset()
    """Ids of devices that are out of the question."""
    device_hint: str | None = None
    """Id of the one device that an administrator wants."""
    service_type_id: str = ""
    algorithm: str = ""
    """Name of the algorithm; "" = the service's configured one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the algorithm (``strict``, …)."""
    rule: str = ""
    """Name of the placement rule that shaped this request; for the trail only."""
    resource: Any = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A handler's word on one device. A rejection is an answer, not a failure: it has a reason."""

    ok: bool
    reason: str = ""

    @classmethod
    def yes(cls) -> Verdict:
        """The device will do."""
        return cls(True)

    @classmethod
    def no(cls, reason: str) -> Verdict:
        """The device will not do.

        :param reason: a sentence for a person; administrators read it in the trail.
        """
        return cls(False, reason)
