"""Service types, and the same as LBaaS v1's read-only service providers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.crud import Crud, Shape, list_of, list_query
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.plugins.device_scheduler import service_type_schema as schema
from lbaas_scheduler.plugins.loadbalancer.base import LoadBalancerPluginBase
from lbaas_scheduler.schemas import common

TAG = "Service types"

LOADBALANCER = "LOADBALANCER"
"""What LBaaS v1 calls our service."""

_TEXT: dict[str, Any] = {"type": "string"}
_VIEW: dict[str, Any] = {
    "id": common.UUID,
    "name": _TEXT,
    "description": _TEXT,
    "enabled": {"type": "boolean"},
    "default": {"type": "boolean"},
    "service_definitions": {"type": "array", "items": {"type": "object"}},
    "options": {"type": "object"},
}
_FILTERS: dict[str, Any] = {
    **dict.fromkeys(("id", "name", "description"), wire.FILTER_TEXT),
    **dict.fromkeys(("enabled", "default"), wire.BOOLEAN),
}
_ATTRIBUTES = {"type": "object", "properties": schema.PROPERTIES, "additionalProperties": False}

SHAPE = Shape(
    "service_type",
    "service_types",
    post={**_ATTRIBUTES, "required": ["name"]},
    put=_ATTRIBUTES,
    view={"type": "object", "properties": _VIEW, "required": sorted(_VIEW)},
    filters=_FILTERS,
)
SERVICE_TYPES = Crud(SHAPE, lambda services: services.devices, TAG)

PROVIDER = Shape(
    "service_provider",
    "service_providers",
    post=None,
    put=None,
    view={"type": "object", "properties": {"service_type": _TEXT, "name": _TEXT, "default": {"type": "boolean"}}},
    filters={"service_type": wire.FILTER_TEXT, "name": wire.FILTER_TEXT, "default": wire.BOOLEAN},
)


def _index(call: Call) -> dict[str, Any]:
    pages.check(call.query.filters, SHAPE.filters)
    found = call.services.devices.get_service_types(call.context, call.query.filters)
    return pages.answer(call, SHAPE.collection, pages.in_memory(found, SHAPE.filters))


def _providers(call: Call) -> dict[str, Any]:
    """Enabled service types that load balancers can be of."""
    found = [_provider(it) for it in call.services.devices.get_service_types(call.context) if _serves_balancers(it)]
    wanted = pages.matching(found, call.query.filters, PROVIDER.filters)
    return pages.answer(call, PROVIDER.collection, pages.in_memory(wanted, PROVIDER.filters, "name"), "name")


def _serves_balancers(service_type: dict[str, Any]) -> bool:
    services = [definition["service"] for definition in service_type["service_definitions"]]
    return bool(service_type["enabled"]) and (not services or LoadBalancerPluginBase.service in services)


def _provider(service_type: dict[str, Any]) -> dict[str, Any]:
    return {
        "service_type": LOADBALANCER,
        "name": service_type["name"],
        "default": service_type["default"],
    }


INDEX = replace(SERVICE_TYPES.index(), run=_index)
PROVIDERS = Operation(
    run=_providers,
    rule="get_service_provider",
    summary="List service types as LBaaS v1 shows them",
    tag=TAG,
    gives=list_of(PROVIDER),
    query=list_query(PROVIDER.filters),
)
