"""What stands in the table of routes: one operation per method of a path, and what it is handed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from oslo_config import cfg
from oslo_context.context import RequestContext

from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.api.queries import Query
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.networks.registry import NetworkRegistry
from lbaas_scheduler.plugins.device_scheduler.plugin import DeviceSchedulerPlugin
from lbaas_scheduler.plugins.loadbalancer.plugin import LoadBalancerPlugin
from lbaas_scheduler.plugins.quotas import Quotas
from lbaas_scheduler.plugins.resources import Resources
from lbaas_scheduler.schemas import common

if TYPE_CHECKING:
    from lbaas_scheduler.api.health import Health
    from lbaas_scheduler.api.metrics import Meters

Schema = Mapping[str, Any]
Ping = Callable[[float], None]


UUID_IN_PATH: Schema = {"type": "string", "format": "uuid", "pattern": common.UUID["pattern"].replace("a-f", "a-fA-F")}
NAME_IN_PATH: Schema = {"type": "string", "pattern": "^[0-9A-Za-z][0-9A-Za-z_.:@+-]{0,254}$"}


@dataclass(frozen=True, slots=True)
class Services:
    """What the handlers hand requests on to. ``heard_since``: an agent that was heard since then counts as alive."""

    conf: cfg.ConfigOpts
    database: Database
    balancers: LoadBalancerPlugin
    devices: DeviceSchedulerPlugin
    networks: NetworkRegistry
    quotas: Quotas
    allocator: ResourceAllocator
    resources: Resources
    meters: Meters
    health: Health
    heard_since: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``url``: where it was sent to, without its query. ``ids``: the variables of its path."""

    services: Services
    context: RequestContext
    url: str
    root: str
    ids: Mapping[str, str]
    query: Query
    body: Any = None
    """What lies in the envelope; None for an operation that takes no body."""


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that is no JSON document, or whose status depends."""

    data: bytes
    content_type: str
    status: int = 200


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    ``rule``: the policy rule that is asked; None = for everybody, without authentication. ``envelope``: the key under which the
    body lies; "" = it takes none. ``gives`` None = an empty answer. ``ids``: what the variables of the path look like.
    """

    run: Callable[[Call], Any]
    rule: str | None
    summary: str
    tag: str
    status: int = 200
    envelope: str = ""
    plural: str = ""
    bulk: bool = False
    """Whether it takes a list under ``plural`` as well, as :class:`.bodies.Bulk`, and then answers with one."""
    takes: Schema | None = None
    gives: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    ids: Schema = field(default_factory=lambda: UUID_IN_PATH)
    media_type: str = "application/json"
    may_fail: tuple[int, ...] = ()
    """Statuses of errors beyond those that every operation may answer with."""
    also: Mapping[int, Schema] = field(default_factory=dict)
    """Statuses that come with another answer than an error's."""
