"""Pools, their counters and their health monitors."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api import wire
from lbaas_scheduler.api.crud import FIELDS, Crud, Shape
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.db.pool_stats import COUNTERS
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.plugins.loadbalancer.schemas.pools import POOL
from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.attributes import REQUIRED, Attribute, Noun, Verb, accept

TAG = "Pools"

SHAPE = Shape.of(POOL)
POOLS = Crud(SHAPE, lambda services: services.balancers, TAG, bulk=True)

ASSOCIATION = Noun(
    "health_monitor",
    "health_monitors",
    {
        "id": Attribute(common.UUID, post=True, default=REQUIRED, convert=converters.lower),
        "tenant_id": common.TENANT_ID,
    },
)
"""What associates a monitor with a pool."""

_ASSOCIATED = {
    "type": "object",
    "properties": {
        "pool_id": common.UUID,
        "monitor_id": common.UUID,
        "status": common.STATUS,
        "status_description": wire.readable(common.nullable(common.TEXT)),
        "tenant_id": wire.readable(common.TENANT),
    },
}


def _stats(call: Call) -> dict[str, Any]:
    return call.services.balancers.stats(call.context, call.ids["id"])


def _associate(call: Call) -> dict[str, Any]:
    values = accept(ASSOCIATION, call.body, Verb.POST)
    if values["tenant_id"] not in (None, call.context.project_id) and not call.context.is_admin:
        raise InvalidRequest(reason="only an administrator may name another tenant", attribute="tenant_id")
    call.services.balancers.create_pool_health_monitor(call.context, values["id"], call.ids["id"])
    # LBaaS v1's view lets nothing through of what its plugin returns, and its clients print what they are sent.
    return {"health_monitor": {}}


def _association(call: Call) -> dict[str, Any]:
    monitor_id, pool_id = call.ids["monitor_id"], call.ids["id"]
    found = call.services.balancers.get_pool_health_monitor(call.context, monitor_id, pool_id, call.query.fields or None)
    return {"health_monitor": found}


def _dissociate(call: Call) -> None:
    call.services.balancers.delete_pool_health_monitor(call.context, call.ids["monitor_id"], call.ids["id"])


STATS = Operation(
    run=_stats,
    rule="get_pool_stats",
    summary="Show the counters of a pool",
    tag=TAG,
    gives={
        "type": "object",
        "properties": {"stats": {"type": "object", "properties": {name: {"type": "integer"} for name in COUNTERS}}},
        "required": ["stats"],
    },
)
ASSOCIATE = Operation(
    run=_associate,
    rule="create_pool_health_monitor",
    summary="Associate a health monitor with a pool",
    tag=TAG,
    status=201,
    envelope="health_monitor",
    plural="health_monitors",
    takes=wire.body_schema(ASSOCIATION, Verb.POST),
    gives={"type": "object", "properties": {"health_monitor": {"type": "object"}}, "required": ["health_monitor"]},
)
SHOW_ASSOCIATION = Operation(
    run=_association,
    rule="get_pool_health_monitor",
    summary="Show the association of a health monitor with a pool",
    tag=TAG,
    gives={"type": "object", "properties": {"health_monitor": _ASSOCIATED}, "required": ["health_monitor"]},
    query=FIELDS,
)
DISSOCIATE = Operation(
    run=_dissociate,
    rule="delete_pool_health_monitor",
    summary="End the association of a health monitor with a pool",
    tag=TAG,
    status=204,
)
