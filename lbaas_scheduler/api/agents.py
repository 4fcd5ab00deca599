"""Agents, as Neutron's agent extension shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.crud import Crud, Shape, list_of
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.api.pools import POOLS
from lbaas_scheduler.api.pools import SHAPE as POOL_SHAPE
from lbaas_scheduler.schemas import common, converters

TAG = "Agents"

_TEXT: dict[str, Any] = {"type": "string"}
_CHANGEABLE: dict[str, Any] = {
    "admin_state_up": wire.BOOLEAN,
    "description": wire.readable(common.TEXT),
}
_VIEW: dict[str, Any] = {
    "id": _TEXT,
    "agent_type": _TEXT,
    "binary": _TEXT,
    "topic": _TEXT,
    "host": _TEXT,
    "description": _TEXT,
    "admin_state_up": {"type": "boolean"},
    "alive": {"type": "boolean"},
    "created_at": _TEXT,
    "started_at": _TEXT,
    "heartbeat_timestamp": _TEXT,
    "configurations": {"type": "object"},
}

SHAPE = Shape(
    "agent",
    "agents",
    post=None,
    put={"type": "object", "properties": _CHANGEABLE, "additionalProperties": False},
    view={"type": "object", "properties": _VIEW, "required": sorted(_VIEW)},
    filters={name: wire.FILTER_TEXT for name in _VIEW if name != "configurations"},
)
AGENTS = Crud(SHAPE, lambda services: services.devices, TAG)


def _index(call: Call) -> dict[str, Any]:
    pages.check(call.query.filters, SHAPE.filters)
    found = call.services.devices.get_agents(call.context, call.query.filters)
    return pages.answer(call, SHAPE.collection, pages.in_memory(found, SHAPE.filters))


def _update(call: Call) -> dict[str, Any]:
    """LBaaS v1 clients send booleans as strings."""
    changes = call.body
    if isinstance(changes, dict) and "admin_state_up" in changes:
        changes = {**changes, "admin_state_up": converters.boolean(changes["admin_state_up"])}
    return {"agent": call.services.devices.update_agent(call.context, call.ids["id"], changes)}


def _pools(call: Call) -> dict[str, Any]:
    return {"pools": call.services.balancers.get_pools_on_agent(call.context, call.ids["id"])}


def _agent_of_pool(call: Call) -> dict[str, Any]:
    agent_id = call.services.balancers.get_agent_of_pool(call.context, call.ids["id"])
    return {"agent": None if agent_id is None else call.services.devices.get_agent(call.context, agent_id)}


INDEX = replace(AGENTS.index(), run=_index)
UPDATE = replace(AGENTS.update(), run=_update)
POOLS_ON_AGENT = Operation(
    run=_pools,
    rule="get_loadbalancer-pools",
    summary="List the pools whose VIPs are on the agent's devices",
    tag=TAG,
    gives=list_of(POOL_SHAPE),
)
AGENT_OF_POOL = Operation(
    run=_agent_of_pool,
    rule="get_loadbalancer-agent",
    summary="Show the agent that drives the device of the pool's VIP",
    tag=POOLS.tag,
    gives={
        "type": "object",
        "properties": {"agent": {"anyOf": [{"type": "null"}, SHAPE.view]}},
        "required": ["agent"],
    },
)
