"""Devices, agents and service types: the operators' side, and what tenants have to do with it."""

from __future__ import annotations

from lbaas_scheduler.api.policies.base import ADMIN, MEMBER, READER, crud, rule

RULES = (
    # Tenants have to do with their own devices only, and have none but of the types and in the networks that [devices] allows.
    *crud("device", "devices", "/v2.0/devices", READER, MEMBER),
    rule("get_device_vips", READER, "See the VIPs on a device.", "GET /v2.0/devices/{id}/vips"),
    rule("evacuate_device", ADMIN, "Move everything off a device.", "POST /v2.0/devices/{id}/evacuate"),
    rule("check_device", ADMIN, "Ask a device how it is.", "POST /v2.0/devices/{id}/check"),
    rule("write_off_device", ADMIN, "Give up a device that is gone for good.", "POST /v2.0/devices/{id}/write-off"),
    rule("get_device_health", ADMIN, "See what the checks of a device found.", "GET /v2.0/devices/{id}/health"),
    rule("get_evacuation", ADMIN, "See how far an evacuation is.", "GET /v2.0/devices/{id}/evacuation"),
    rule("cancel_evacuation", ADMIN, "Let what is on a device stay.", "DELETE /v2.0/devices/{id}/evacuation"),
    rule("get_breaker", ADMIN, "See whether automatic moves are frozen.", "GET /v2.0/breaker"),
    rule("reset_breaker", ADMIN, "Let automatic moves go on.", "POST /v2.0/breaker/reset"),
    rule("move_vip", ADMIN, "Move a VIP to another device.", "POST /v2.0/lb/vips/{id}/move"),
    rule("get_move", ADMIN, "See what moves between devices.", "GET /v2.0/moves", "GET /v2.0/moves/{id}"),
    *crud("placement_rule", "placement_rules", "/v2.0/placement-rules", ADMIN, ADMIN),
    rule("simulate_placements", ADMIN, "See where VIPs would go.", "POST /v2.0/placements/simulate"),
    rule("get_rebalance", ADMIN, "See the moves that would even out the load.", "GET /v2.0/placements/rebalance"),
    rule("rebalance", ADMIN, "Even out the load of the devices.", "POST /v2.0/placements/rebalance"),
    rule("get_fleet_overview", ADMIN, "See the fleet at a glance.", "GET /v2.0/fleet-overview"),
    *crud("service_type", "service_types", "/v2.0/service-types", READER, ADMIN),
    rule("get_service_provider", READER, "See service types as LBaaS v1 shows them.", "GET /v2.0/service-providers"),
    rule("get_agent", ADMIN, "See agents.", "GET /v2.0/agents", "GET /v2.0/agents/{id}"),
    rule("update_agent", ADMIN, "Enable, disable or describe an agent.", "PUT /v2.0/agents/{id}"),
    rule("delete_agent", ADMIN, "Forget an agent; others take its devices.", "DELETE /v2.0/agents/{id}"),
    rule(
        "get_loadbalancer-pools",
        ADMIN,
        "See the pools whose VIPs are on an agent's devices.",
        "GET /v2.0/agents/{id}/loadbalancer-pools",
    ),
)
