"""What clients look up before all else: versions and extensions."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api.operations import NAME_IN_PATH, Call, Operation
from lbaas_scheduler.errors import NotFound

TAG = "Catalogue"

_FROM_LBAAS = "2012-10-07T10:00:00-00:00"

EXTENSIONS: tuple[dict[str, Any], ...] = tuple(
    {"alias": alias, "name": name, "description": description, "updated": updated, "links": []}
    for alias, name, description, updated in (
        ("lbaas", "LoadBalancing service", "Provides the LoadBalancing service, version 1", _FROM_LBAAS),
        ("lbaas_agent_scheduler", "Loadbalancer agent scheduler", "Shows pools by agent", "2013-02-07T10:00:00-00:00"),
        ("service-type", "Service types", "Kinds of service that tenants choose among", "2013-01-20T00:00:00-00:00"),
        ("agent", "agent", "Shows the agents", "2013-02-03T10:00:00-00:00"),
        ("quotas", "Quota management support", "Shows and changes quotas of tenants", "2012-07-29T10:00:00-00:00"),
        ("devices", "Device inventory", "Registers the devices that VIPs are placed on", "2013-05-01T00:00:00-00:00"),
    )
)

_RESOURCES = (
    "vips",
    "pools",
    "members",
    "health_monitors",
)


def _versions(call: Call) -> dict[str, Any]:
    return {"versions": [_version(call)]}


def _version(call: Call) -> dict[str, Any]:
    return {"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": f"{call.root}/v2.0/"}]}


def _resources(call: Call) -> dict[str, Any]:
    """What Neutron answers here, for clients that look for their version below the endpoint."""
    named = [*((name, f"lb/{name}") for name in _RESOURCES), ("networks", "networks"), ("subnets", "subnets"), ("ports", "ports")]
    return {
        "resources": [
            {"name": name.removesuffix("s"), "collection": name, "links": [{"rel": "self", "href": f"{call.root}/v2.0/{path}"}]}
            for name, path in named
        ]
    }


def _extensions(_call: Call) -> dict[str, Any]:
    return {"extensions": list(EXTENSIONS)}


def _extension(call: Call) -> dict[str, Any]:
    found = next((it for it in EXTENSIONS if it["alias"] == call.ids["id"]), None)
    if found is None:
        raise NotFound(resource="Extension", id=call.ids["id"])
    return {"extension": found}


def _answer(name: str, kind: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


VERSIONS = Operation(_versions, None, "List the versions of the API", TAG, gives=_answer("versions", "array"))
RESOURCES = Operation(_resources, None, "List the collections of the version", TAG, gives=_answer("resources", "array"))
EXTENSION_INDEX = Operation(_extensions, None, "List extensions", TAG, gives=_answer("extensions", "array"))
EXTENSION = Operation(_extension, None, "Show an extension", TAG, gives=_answer("extension", "object"), ids=NAME_IN_PATH)
