"""Pools of VLANs, VXLANs, subnets and addresses, and their values. Tenants see the pools that are theirs, and change nothing."""

from __future__ import annotations

from lbaas_scheduler.api.policies.base import ADMIN, READER, crud, rule

_POOL = "/v2.0/resources/{kind}/{name}"
_ALLOCATIONS = f"{_POOL}/allocations"
_EVERYWHERE = "/v2.0/resources/allocations"

RULES = (
    *crud("resource", "pools of resources", "/v2.0/resources", READER, ADMIN, one=_POOL),
    rule(
        "get_resource_allocation",
        READER,
        "See the values of a pool that are in use.",
        f"GET {_ALLOCATIONS}",
        f"GET {_ALLOCATIONS}/{{id}}",
    ),
    rule("create_resource_allocation", ADMIN, "Take a value of a pool.", f"POST {_ALLOCATIONS}"),
    rule("update_resource_allocation", ADMIN, "Make a hold final.", f"PUT {_ALLOCATIONS}/{{id}}"),
    rule(
        "delete_resource_allocation",
        ADMIN,
        "Give a value back.",
        f"DELETE {_ALLOCATIONS}/{{id}}",
        f"POST {_POOL}/release",
    ),
    rule("get_all_resource_allocations", ADMIN, "See values in use, whichever their pool.", f"GET {_EVERYWHERE}"),
    rule("create_resource_allocations", ADMIN, "Take values of several pools at once.", f"POST {_EVERYWHERE}"),
    rule("delete_resource_allocations", ADMIN, "Give back whatever an owner has.", f"DELETE {_EVERYWHERE}"),
    rule("get_resource_usage", READER, "See how full a pool is.", f"GET {_POOL}/usage"),
    rule(
        "get_resource_history",
        ADMIN,
        "See what was done with pools and their values, and by whom.",
        f"GET {_POOL}/history",
        "GET /v2.0/resources/history",
    ),
    rule("check_resources", ADMIN, "See what is not as it should be.", "GET /v2.0/resources/check"),
    rule("get_resource_keys", ADMIN, "See the keys of the store.", "GET /v2.0/resources/keys"),
    rule("reconcile_resources", ADMIN, "Give back what nobody wants any more.", "POST /v2.0/resources/reconcile"),
)
