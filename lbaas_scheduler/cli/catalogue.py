"""All nouns, and what their lists show."""

from __future__ import annotations

from lbaas_scheduler.cli.noun import Noun

NETWORK = Noun(
    "network", "network", "networks", "/v2.0/networks", ("id", "name", "shared", "subnets"), ("tenant_id", "network_type")
)
SUBNET = Noun(
    "subnet",
    "subnet",
    "subnets",
    "/v2.0/subnets",
    ("id", "name", "network_id", "cidr"),
    ("tenant_id", "ip_version", "gateway_ip", "allocation_pools", "shared"),
)
DEVICE = Noun(
    "device",
    "device",
    "devices",
    "/v2.0/devices",
    ("id", "name", "device_type", "zone", "admin_state", "status", "agent", "usage"),
    ("form", "tenant_id", "shared", "status_description", "capabilities"),
)
SERVICE_TYPE = Noun(
    "service-type",
    "service_type",
    "service_types",
    "/v2.0/service-types",
    ("id", "name", "default", "enabled", "description"),
    ("service_definitions", "options"),
)
AGENT = Noun(
    "agent",
    "agent",
    "agents",
    "/v2.0/agents",
    ("id", "host", "agent_type", "alive", "admin_state_up", "heartbeat_timestamp"),
    ("binary", "description", "started_at", "configurations"),
    name_key="host",
)
POOL = Noun(
    "pool",
    "pool",
    "pools",
    "/v2.0/lb/pools",
    ("id", "name", "protocol", "lb_method", "vip_id", "status"),
    ("tenant_id", "subnet_id", "provider", "admin_state_up", "members", "health_monitors", "status_description"),
)
VIP = Noun(
    "vip",
    "vip",
    "vips",
    "/v2.0/lb/vips",
    ("id", "name", "address", "protocol", "protocol_port", "pool_id", "status"),
    ("tenant_id", "subnet_id", "service_type_id", "admin_state_up", "connection_limit", "status_description"),
)
MEMBER = Noun(
    "member",
    "member",
    "members",
    "/v2.0/lb/members",
    ("id", "pool_id", "address", "protocol_port", "weight", "status"),
    ("tenant_id", "admin_state_up", "status_description"),
    name_key="",
)
HEALTH_MONITOR = Noun(
    "health-monitor",
    "health_monitor",
    "health_monitors",
    "/v2.0/lb/health_monitors",
    ("id", "type", "delay", "timeout", "max_retries", "admin_state_up"),
    ("tenant_id", "http_method", "url_path", "expected_codes", "pools"),
    name_key="",
)
QUOTA = Noun(
    "quota",
    "quota",
    "quotas",
    "/v2.0/quotas",
    ("tenant_id", "vip", "pool", "member", "health_monitor", "device"),
    name_key="",
)
MOVE = Noun(
    "move",
    "move",
    "moves",
    "/v2.0/moves",
    ("resource_id", "source_id", "target_id", "state", "cause", "error"),
    ("service", "attempts", "created_at", "updated_at"),
    name_key="",
)
PLACEMENT_RULE = Noun(
    "placement-rule",
    "placement_rule",
    "placement_rules",
    "/v2.0/placement-rules",
    ("id", "name", "position", "enabled", "match", "wishes"),
    ("service", "description"),
)
