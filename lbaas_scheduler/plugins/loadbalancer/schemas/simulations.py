"""Attributes of a VIP that is only thought of."""

from __future__ import annotations

from lbaas_scheduler.plugins.loadbalancer.schemas.vips import CONNECTION_LIMIT, SESSION_PERSISTENCE
from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.attributes import Attribute, Noun

# A VIP's own attributes where they matter for its place; none is needed. Without ``pool_id`` the pool is described in place.
SIMULATION = Noun(
    "simulated vip",
    "simulated vips",
    {
        "tenant_id": common.TENANT_ID,
        "name": common.name(),
        "pool_id": common.reference(default=None),
        "protocol": Attribute(common.nullable(common.PROTOCOL), post=True),
        "lb_method": Attribute(
            {"type": "string", "enum": ["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP"]}, post=True, default="ROUND_ROBIN"
        ),
        "monitors": Attribute(
            {
                "type": "array",
                "maxItems": 10,
                "items": {"type": "string", "enum": ["PING", "TCP", "HTTP", "HTTPS"]},
                "description": "a list of types of health monitors (PING, TCP, HTTP, HTTPS)",
            },
            post=True,
            default=(),
        ),
        "protocol_port": Attribute(common.PORT, post=True, default=80, convert=converters.integer),
        "subnet_id": common.reference(default=None),
        "address": Attribute(common.nullable(common.ADDRESS), post=True, convert=converters.address),
        "session_persistence": Attribute(SESSION_PERSISTENCE, post=True, convert=converters.empty_to_none),
        "connection_limit": Attribute(CONNECTION_LIMIT, post=True, default=-1, convert=converters.integer),
        "service_type_id": Attribute(common.nullable(common.NAME), post=True),
        "device_id": Attribute(common.nullable(common.NAME), post=True),
    },
)
