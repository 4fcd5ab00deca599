"""What all nouns of the plugin are built on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from oslo_context.context import RequestContext
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.placement_rules import PlacementRule
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.service_types import ServiceTypeChoice
from lbaas_scheduler.domain.simulation import Simulation
from lbaas_scheduler.domain.trail import Decision
from lbaas_scheduler.errors import NotAuthorized, NotFound
from lbaas_scheduler.plugins.device_scheduler.placer import Within
from lbaas_scheduler.plugins.quotas import QuotaGuard
from lbaas_scheduler.scheduler.services import Service
from lbaas_scheduler.sdk.networks import NetworkConnector


class ServiceTypes(Protocol):
    """Whoever knows the service types."""

    def choose(self, conn: Connection, name_or_id: str | None, service: str) -> ServiceTypeChoice:
        """The service type of this name or id; None = the default.

        :raises ServiceProviderNotFound: unknown, disabled, or without a definition for the service.
        """


class Rules(Protocol):
    """Whoever knows the placement rules."""

    def of_service(self, conn: Connection, service: str) -> Sequence[PlacementRule]:
        """The rules that shape requests of the service, in the order in which they are tried."""


class NoRules:
    """Every request stays as it is."""

    def of_service(self, _conn: Connection, _service: str) -> Sequence[PlacementRule]:
        return ()


class PlacesResources(Protocol):
    """What finds devices for VIPs."""

    def place(self, request: ScheduleRequest, within: Within | None = None) -> Decision:
        """See :class:`~lbaas_scheduler.plugins.device_scheduler.placer.Placer`."""

    def simulate(self, request: ScheduleRequest, count: int = 1) -> Simulation:
        """See :class:`~lbaas_scheduler.plugins.device_scheduler.placer.Placer`."""


class Casts(Protocol):
    """What tells agents of VIPs."""

    def cast(self, vip_ids: Collection[str]) -> object:
        """Send each VIP's whole desired state to its device's agent. After the commit; never raises."""


@dataclass(frozen=True, slots=True)
class Core:
    """The collaborators of the nouns. ``cast_deadline_seconds``: after how long an unconfirmed change is cast again."""

    database: Database
    placer: PlacesResources
    caster: Casts
    connector: NetworkConnector
    service: Service
    service_types: ServiceTypes
    cast_deadline_seconds: float
    quotas: QuotaGuard
    rules: Rules

    def due_at(self) -> datetime:
        """When a change that is cast now is cast again, if nobody confirms it."""
        return utcnow() + timedelta(seconds=self.cast_deadline_seconds)


def same_tenant(context: RequestContext, tenant_id: str, other: str) -> None:
    """:raises NotAuthorized: a VIP and its pool belong to different tenants, and the caller is no administrator."""
    if tenant_id != other and not context.is_admin:
        raise NotAuthorized(reason="a VIP and its pool must belong to one tenant")


class Deletion:
    """A deletion that may be repeated because the answer to its commit got lost: then it finds nothing, and has succeeded."""

    def __init__(self) -> None:
        self._seen = False

    def is_done(self, look: Callable[[], object]) -> bool:
        """:raises NotFound: ``look`` raised it, and there was nothing the first time either."""
        try:
            look()
        except NotFound:
            if self._seen:
                return True
            raise
        self._seen = True
        return False
