"""The table of routes: path → method → operation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lbaas_scheduler.api import (
    agents,
    allocations,
    breaker,
    catalogue,
    devices,
    fleet,
    health,
    metrics,
    moves,
    openapi,
    placement_rules,
    placements,
    pools,
    ports,
    quotas,
    resources,
    service_types,
    vips,
)
from lbaas_scheduler.api.agents import AGENTS
from lbaas_scheduler.api.crud import Crud
from lbaas_scheduler.api.devices import DEVICES
from lbaas_scheduler.api.health_monitors import HEALTH_MONITORS
from lbaas_scheduler.api.members import MEMBERS
from lbaas_scheduler.api.networks import NETWORKS, SUBNETS
from lbaas_scheduler.api.operations import Operation
from lbaas_scheduler.api.placement_rules import RULES
from lbaas_scheduler.api.pools import POOLS
from lbaas_scheduler.api.service_types import SERVICE_TYPES
from lbaas_scheduler.api.vips import VIPS
from lbaas_scheduler.conf.api import KEYSTONE

Methods = Mapping[str, Operation]


def _collection(noun: Crud) -> Methods:
    return {"GET": noun.index(), "POST": noun.create()}


def _item(noun: Crud) -> Methods:
    return {"GET": noun.read(), "PUT": noun.update(), "DELETE": noun.delete()}


@cache
def document(keystone: bool) -> dict[str, Any]:
    """The OpenAPI document of the table."""
    return openapi.document(ROUTES, keystone)


OPENAPI = Operation(
    run=lambda call: document(call.services.conf.api.auth_strategy == KEYSTONE),
    rule=None,
    summary="Describe this API",
    tag=catalogue.TAG,
    gives={"type": "object"},
)

ROUTES: Mapping[str, Methods] = {
    "/": {"GET": catalogue.VERSIONS},
    "/openapi.json": {"GET": OPENAPI},
    "/healthcheck": {"GET": health.HEALTH},
    "/healthcheck/live": {"GET": health.LIVE},
    "/metrics": {"GET": metrics.METRICS},
    "/v2.0": {"GET": catalogue.RESOURCES},
    "/v2.0/extensions": {"GET": catalogue.EXTENSION_INDEX},
    "/v2.0/extensions/{id}": {"GET": catalogue.EXTENSION},
    "/v2.0/lb/vips": _collection(VIPS),
    "/v2.0/lb/vips/{id}": _item(VIPS),
    "/v2.0/lb/vips/{id}/placement": {"GET": vips.PLACEMENT},
    "/v2.0/lb/vips/{id}/explain": {"GET": vips.EXPLAIN},
    "/v2.0/lb/vips/{id}/move": {"POST": moves.MOVE},
    "/v2.0/lb/vips/{id}/reset-status": {"POST": vips.RESET_STATUS},
    "/v2.0/lb/pools": _collection(POOLS),
    "/v2.0/lb/pools/{id}": _item(POOLS),
    "/v2.0/lb/pools/{id}/stats": {"GET": pools.STATS},
    "/v2.0/lb/pools/{id}/loadbalancer-agent": {"GET": agents.AGENT_OF_POOL},
    "/v2.0/lb/pools/{id}/health_monitors": {"POST": pools.ASSOCIATE},
    "/v2.0/lb/pools/{id}/health_monitors/{monitor_id}": {"GET": pools.SHOW_ASSOCIATION, "DELETE": pools.DISSOCIATE},
    "/v2.0/lb/members": _collection(MEMBERS),
    "/v2.0/lb/members/{id}": _item(MEMBERS),
    "/v2.0/lb/health_monitors": _collection(HEALTH_MONITORS),
    "/v2.0/lb/health_monitors/{id}": _item(HEALTH_MONITORS),
    "/v2.0/networks": _collection(NETWORKS),
    "/v2.0/networks/{id}": _item(NETWORKS),
    "/v2.0/subnets": _collection(SUBNETS),
    "/v2.0/subnets/{id}": _item(SUBNETS),
    "/v2.0/ports": {"GET": ports.INDEX},
    "/v2.0/ports/{id}": {"GET": ports.READ, "DELETE": ports.DELETE},
    "/v2.0/service-types": {"GET": service_types.INDEX, "POST": SERVICE_TYPES.create()},
    "/v2.0/service-types/{id}": _item(SERVICE_TYPES),
    "/v2.0/service-providers": {"GET": service_types.PROVIDERS},
    "/v2.0/agents": {"GET": agents.INDEX},
    "/v2.0/agents/{id}": {"GET": AGENTS.read(), "PUT": agents.UPDATE, "DELETE": AGENTS.delete()},
    "/v2.0/agents/{id}/loadbalancer-pools": {"GET": agents.POOLS_ON_AGENT},
    "/v2.0/quotas": {"GET": quotas.INDEX},
    "/v2.0/quotas/tenant": {"GET": quotas.TENANT},
    "/v2.0/quotas/{id}": {"GET": quotas.READ, "PUT": quotas.UPDATE, "DELETE": quotas.DELETE},
    "/v2.0/quotas/{id}/default": {"GET": quotas.DEFAULTS},
    "/v2.0/devices": {"GET": devices.INDEX, "POST": DEVICES.create()},
    "/v2.0/devices/{id}": _item(DEVICES),
    "/v2.0/devices/{id}/vips": {"GET": vips.ON_DEVICE},
    "/v2.0/devices/{id}/evacuate": {"POST": moves.EVACUATE},
    "/v2.0/devices/{id}/evacuation": {"GET": moves.SHOW_EVACUATION, "DELETE": moves.CANCEL_EVACUATION},
    "/v2.0/devices/{id}/health": {"GET": devices.HEALTH},
    "/v2.0/devices/{id}/check": {"POST": devices.CHECK},
    "/v2.0/devices/{id}/write-off": {"POST": devices.WRITE_OFF},
    "/v2.0/moves": {"GET": moves.INDEX},
    "/v2.0/moves/{id}": {"GET": moves.SHOW},
    "/v2.0/breaker": {"GET": breaker.SHOW},
    "/v2.0/breaker/reset": {"POST": breaker.RESET},
    "/v2.0/placement-rules": {"GET": placement_rules.INDEX, "POST": RULES.create()},
    "/v2.0/placement-rules/{id}": _item(RULES),
    "/v2.0/placements/simulate": {"POST": placements.SIMULATE},
    "/v2.0/placements/rebalance": {"GET": placements.PLAN, "POST": placements.REBALANCE},
    "/v2.0/fleet-overview": {"GET": fleet.OVERVIEW},
    "/fleet": {"GET": fleet.PAGE_OPERATION},
    "/v2.0/resources": {"GET": resources.INDEX, "POST": resources.CREATE},
    "/v2.0/resources/allocations": {
        "GET": allocations.EVERYWHERE,
        "POST": allocations.CREATE_MANY,
        "DELETE": allocations.RELEASE_OWNER,
    },
    "/v2.0/resources/history": {"GET": resources.HISTORY},
    "/v2.0/resources/check": {"GET": resources.CHECK},
    "/v2.0/resources/keys": {"GET": resources.KEYS},
    "/v2.0/resources/reconcile": {"POST": resources.RECONCILE},
    "/v2.0/resources/{kind}/{name}": {"GET": resources.READ, "PUT": resources.UPDATE, "DELETE": resources.DELETE},
    "/v2.0/resources/{kind}/{name}/usage": {"GET": resources.USAGE},
    "/v2.0/resources/{kind}/{name}/history": {"GET": resources.HISTORY_OF_POOL},
    "/v2.0/resources/{kind}/{name}/release": {"POST": allocations.RELEASE},
    "/v2.0/resources/{kind}/{name}/allocations": {"GET": allocations.INDEX, "POST": allocations.CREATE},
    "/v2.0/resources/{kind}/{name}/allocations/{id}": {
        "GET": allocations.READ,
        "PUT": allocations.UPDATE,
        "DELETE": allocations.DELETE,
    },
}
