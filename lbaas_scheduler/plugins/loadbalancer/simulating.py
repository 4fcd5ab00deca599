"""Where VIPs would go, if they were created now."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from oslo_context.context import RequestContext
from oslo_utils import uuidutils
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import networks
from lbaas_scheduler.domain.loadbalancers import HealthMonitor, Method, MonitorType, Pool, Protocol, Vip
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.simulation import Simulation
from lbaas_scheduler.errors import InvalidRequest, NotAuthorized, ProtocolMismatch, SubnetNotFound
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.plugins.loadbalancer import pools as pool_rules
from lbaas_scheduler.plugins.loadbalancer.asking import check_hint, request_of
from lbaas_scheduler.plugins.loadbalancer.core import Core
from lbaas_scheduler.plugins.loadbalancer.schemas.simulations import SIMULATION
from lbaas_scheduler.plugins.loadbalancer.schemas.vips import check_persistence
from lbaas_scheduler.schemas.access import owner
from lbaas_scheduler.schemas.attributes import Body, Verb, accept

MAX_FILLED = 20
"""An answer names at most this many devices that fill up."""


@dataclass(frozen=True, slots=True)
class Simulating:
    core: Core

    def simulate(self, context: RequestContext, body: Body, count: int) -> dict[str, Any]:
        """Where ``count`` VIPs such as ``body`` would go one after the other. For administrators.

        ``body`` has a VIP's attributes, none of them necessary; without ``pool_id`` it says what the pool would be like:
        ``protocol`` (TCP unless said), ``lb_method`` and ``monitors``. Addresses are not looked for.

        :returns: ``{"wanted", "placed", "devices", "filled", "fills_first", "summary", "trail"}``: the devices by what they would
            get, and those that would fill up in that order, with the resource class that runs out and after how many VIPs.
        :raises NotAuthorized: the caller is no administrator.
        :raises InvalidRequest, ProtocolMismatch: an attribute or the count is wrong.
        :raises PoolNotFound, SubnetNotFound, DeviceNotFound, ServiceProviderNotFound: what it names does not exist.
        """
        if not context.is_admin:
            raise NotAuthorized(reason="only administrators see where VIPs would go")
        values = accept(SIMULATION, body, Verb.POST)
        values["tenant_id"] = owner(context, values)
        request = self.core.database.read(lambda conn: self._request(conn, context, values))
        return _document(self.core.placer.simulate(request, count))

    def _request(self, conn: Connection, context: RequestContext, values: dict[str, Any]) -> ScheduleRequest:
        check_hint(context, conn, values["device_id"])
        pool, of_pool = self._pool(conn, context, values)
        persistence = check_persistence(values["session_persistence"], pool.protocol) or {}
        place = networks.places(conn, [values["subnet_id"]] if values["subnet_id"] else [])
        if values["subnet_id"] and not place:
            raise SubnetNotFound(id=values["subnet_id"])
        found = place.get(values["subnet_id"])
        vip = Vip(
            id=uuidutils.generate_uuid(),
            tenant_id=values["tenant_id"],
            address=values["address"] or "",
            protocol_port=values["protocol_port"],
            protocol=pool.protocol,
            pool=pool,
            subnet_cidr=found.cidr if found else "",
            network_id=found.network_id if found else "",
            connection_limit=values["connection_limit"],
            session_persistence=documents.persistence_of(persistence.get("type"), persistence.get("cookie_name")),
        )
        service = self.core.service
        service_type = self.core.service_types.choose(conn, values["service_type_id"] or of_pool, service.name)
        rules = self.core.rules.of_service(conn, service.name)
        subnet_id, device_id = values["subnet_id"] or "", values["device_id"]
        return request_of(service, vip, service_type, rules, name=values["name"], subnet_id=subnet_id, device_id=device_id)

    def _pool(self, conn: Connection, context: RequestContext, values: dict[str, Any]) -> tuple[Pool, str | None]:
        """The pool, and the service type that it names."""
        if values["pool_id"] is None:
            monitors = tuple(HealthMonitor(str(number), MonitorType(it), 5, 5, 3) for number, it in enumerate(values["monitors"]))
            method = Method(values["lb_method"])
            return Pool("", Protocol(values["protocol"] or Protocol.TCP), method, health_monitors=monitors), None
        if values["monitors"]:
            raise InvalidRequest(reason="the pool of 'pool_id' has its own monitors; leave out 'monitors'", attribute="monitors")
        row = pool_rules.outline(conn, context, values["pool_id"])
        if values["protocol"] not in (None, row.protocol):
            raise ProtocolMismatch(vip_proto=values["protocol"], pool_proto=row.protocol)
        return documents.pool_of(conn, row), row.service_type_id


def _document(simulation: Simulation) -> dict[str, Any]:
    filled = [asdict(it) for it in simulation.filled[:MAX_FILLED]]
    return {
        "wanted": simulation.wanted,
        "placed": simulation.placed,
        "devices": [asdict(share) for share in simulation.shares],
        "filled": filled,
        "fills_first": filled[0] if filled else None,
        "summary": _summary(simulation),
        "trail": simulation.trail.to_document(),
    }


def _summary(simulation: Simulation) -> str:
    if simulation.placed < simulation.wanted:
        found = f"{simulation.placed} of {simulation.wanted} would find a device; then: {simulation.trail.summary()}"
    else:
        found = f"All {simulation.wanted} would find a device, on {len(simulation.shares)} device(s)."
    if not simulation.filled:
        return found
    first = simulation.filled[0]
    return f"{found} {first.device_name} would fill up first, after {first.after}, for want of {first.limited_by}."
