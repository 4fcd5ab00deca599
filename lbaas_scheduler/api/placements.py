"""Placing as a whole, for operators: where VIPs would go, and a fleet whose load is evened out."""

from __future__ import annotations

import re
from typing import Any

from lbaas_scheduler.api import wire
from lbaas_scheduler.api.asked import checked, parameters
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.plugins.fleet.operations import DEFAULT_BOUND, DEFAULT_MAX_MOVES, MAX_MOVES
from lbaas_scheduler.plugins.loadbalancer.schemas.simulations import SIMULATION
from lbaas_scheduler.scheduler.simulation import MAX_COUNT
from lbaas_scheduler.schemas import common
from lbaas_scheduler.schemas.attributes import Verb
from lbaas_scheduler.schemas.checker import shown

TAG = "Placements"

Document = dict[str, Any]

_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_OBJECT: Document = {"type": "object"}
_OBJECTS: Document = {"type": "array", "items": _OBJECT}

_SIMULATION: Document = {
    "type": "object",
    "properties": {
        "vip": wire.body_schema(SIMULATION, Verb.POST),
        "count": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "default": 1},
    },
    "additionalProperties": False,
}
_SIMULATED: Document = {
    "title": "Simulation",
    "type": "object",
    "properties": {
        "wanted": {"type": "integer"},
        "placed": {"type": "integer"},
        "devices": _OBJECTS,
        "filled": _OBJECTS,
        "fills_first": {"type": ["object", "null"]},
        "summary": {"type": "string"},
        "trail": _OBJECT,
    },
    "required": ["devices", "filled", "fills_first", "placed", "summary", "trail", "wanted"],
}

_BOUNDS: Document = {
    "bound": {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "default": DEFAULT_BOUND,
        "description": "how much fuller one device may be than another: a difference of fill",
    },
    "max_moves": {"type": "integer", "minimum": 1, "maximum": MAX_MOVES, "default": DEFAULT_MAX_MOVES},
}
_STEP: Document = {
    "type": "object",
    "properties": dict.fromkeys(("resource_id", "source_id", "target_id"), wire.readable(common.UUID)),
    "required": ["resource_id", "source_id", "target_id"],
    "additionalProperties": False,
}
_REBALANCE: Document = {
    "type": "object",
    "properties": {
        **_BOUNDS,
        "moves": {
            "type": "array",
            "items": _STEP,
            # How many, the size of the body bounds.
            "description": "exactly the moves that the plan showed; without them, a new plan is made",
        },
    },
    "additionalProperties": False,
}
_PLAN: Document = {
    "title": "Rebalance",
    "type": "object",
    "properties": {
        "moves": {"type": "array", "items": _STEP},
        "queued": {"type": "integer"},
        "spread_before": {"type": "number"},
        "spread_after": {"type": "number"},
        "before": _OBJECT,
        "after": _OBJECT,
    },
    "required": ["moves", "queued"],
}
_GIVES: Document = {"type": "object", "properties": {"rebalance": _PLAN}, "required": ["rebalance"]}


def _simulate(call: Call) -> Document:
    # Of the VIP itself the plugin judges, as it does of a real one.
    outline = {"properties": {**_SIMULATION["properties"], "vip": _OBJECT}}
    body = checked(call.body, outline, "simulation")
    count = int(body.get("count", 1))
    return {"simulation": call.services.balancers.simulate(call.context, body.get("vip", {}), count)}


def _plan(call: Call) -> Document:
    given = parameters(call, _BOUNDS)
    wanted = checked({name: _number(name, text) for name, text in given.items()}, {"properties": _BOUNDS}, "rebalance")
    return {"rebalance": call.services.devices.fleet.rebalance(call.context, **_whole(wanted))}


def _rebalance(call: Call) -> Document:
    wanted = checked(call.body, _REBALANCE, "rebalance")
    return {"rebalance": call.services.devices.fleet.rebalance(call.context, apply=True, **_whole(wanted))}


def _number(name: str, text: str) -> float | int:
    if _NUMBER.fullmatch(text) is None:
        raise InvalidRequest(reason=f"'{name}' must be a number, not {shown(text)}", attribute=name)
    if _BOUNDS[name]["type"] == "integer" and not text.isdigit():
        raise InvalidRequest(reason=f"'{name}' must be an integer, not {shown(text)}", attribute=name)
    return int(text) if text.isdigit() else float(text)


def _whole(wanted: Document) -> Document:
    """In JSON, 3.0 is an integer."""
    return {**wanted, "max_moves": int(wanted["max_moves"])} if "max_moves" in wanted else wanted


SIMULATE = Operation(
    run=_simulate,
    rule="simulate_placements",
    summary="Show where VIPs would go and what would fill up first; nothing is claimed",
    tag=TAG,
    envelope="simulation",
    plural="simulations",
    takes={"title": "SimulationCreate", **_SIMULATION},
    gives={"type": "object", "properties": {"simulation": _SIMULATED}, "required": ["simulation"]},
    may_fail=(502,),
)
PLAN = Operation(
    run=_plan,
    rule="get_rebalance",
    summary="Show the fewest moves that even out the load",
    tag=TAG,
    gives=_GIVES,
    query=_BOUNDS,
    may_fail=(502,),
)
REBALANCE = Operation(
    run=_rebalance,
    rule="rebalance",
    summary="Begin the moves that even out the load",
    tag=TAG,
    status=202,
    envelope="rebalance",
    plural="rebalances",
    takes={"title": "RebalanceCreate", **_REBALANCE},
    gives=_GIVES,
    may_fail=(502,),
)
