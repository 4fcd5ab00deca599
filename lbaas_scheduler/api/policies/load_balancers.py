"""Tenants' own objects. Whose an object is, the plugin checks: a foreign one does not exist for its caller."""

from __future__ import annotations

from lbaas_scheduler.api.policies.base import ADMIN, MEMBER, READER, crud, rule

_ASSOCIATION = "/v2.0/lb/pools/{id}/health_monitors/{monitor_id}"

RULES = (
    *crud("vip", "VIPs", "/v2.0/lb/vips", READER, MEMBER),
    *crud("pool", "pools", "/v2.0/lb/pools", READER, MEMBER),
    *crud("member", "members", "/v2.0/lb/members", READER, MEMBER),
    *crud("health_monitor", "health_monitors", "/v2.0/lb/health_monitors", READER, MEMBER),
    rule(
        "create_pool_health_monitor",
        MEMBER,
        "Associate a health monitor with a pool.",
        "POST /v2.0/lb/pools/{id}/health_monitors",
    ),
    rule("get_pool_health_monitor", READER, "See an association.", f"GET {_ASSOCIATION}"),
    rule("delete_pool_health_monitor", MEMBER, "End an association.", f"DELETE {_ASSOCIATION}"),
    rule("get_pool_stats", READER, "See the counters of a pool.", "GET /v2.0/lb/pools/{id}/stats"),
    rule(
        "get_loadbalancer-agent",
        ADMIN,
        "See which agent drives the device of a pool's VIP.",
        "GET /v2.0/lb/pools/{id}/loadbalancer-agent",
    ),
    rule("reset_vip_status", ADMIN, "Apply anew what is stuck in a status.", "POST /v2.0/lb/vips/{id}/reset-status"),
    rule("get_vip_placement", ADMIN, "See on which device a VIP is, and why.", "GET /v2.0/lb/vips/{id}/placement"),
    rule("explain_vip", ADMIN, "Be told why a VIP is where it is.", "GET /v2.0/lb/vips/{id}/explain"),
)
