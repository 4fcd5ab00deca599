"""Attributes of networks and subnets."""

from __future__ import annotations

from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.attributes import REQUIRED, Attribute, Noun
from lbaas_scheduler.schemas.checker import Schema

NETWORK_TYPE: Schema = {"type": "string", "enum": ["flat", "vlan", "vxlan"]}
SEGMENT: Schema = common.nullable({"type": "integer", "minimum": 1, "maximum": 2**24 - 1})
CIDR: Schema = {"type": "string", "maxLength": 64, "pattern": "^[0-9A-Fa-f:./]+$", "description": "a network like 10.0.0.0/24"}
HOST_ADDRESS: Schema = {"type": "string", "format": "host-address", "description": "an IPv4 or IPv6 address"}
ALLOCATION_POOLS: Schema = common.nullable(
    {
        "type": "array",
        "maxItems": 100,
        "items": {
            "type": "object",
            "properties": {"start": HOST_ADDRESS, "end": HOST_ADDRESS},
            "required": ["start", "end"],
            "additionalProperties": False,
        },
        "description": "a list of objects with 'start' and 'end', two addresses of the subnet",
    }
)

NETWORK = Noun(
    "network",
    "networks",
    {
        "id": common.ID,
        "tenant_id": common.TENANT_ID,
        "name": common.name(),
        # Administrators only, as all that follows.
        "shared": Attribute(common.BOOLEAN, post=True, put=True, default=False, convert=converters.boolean),
        "network_type": Attribute(NETWORK_TYPE, post=True, default="flat"),
        "physical_network": Attribute(common.NAME, post=True, default=""),
        "segmentation_id": Attribute(SEGMENT, post=True, default=None, convert=converters.integer),
        "subnets": common.read_only({"type": "array", "items": common.UUID}, filtered=False),
    },
)

SUBNET = Noun(
    "subnet",
    "subnets",
    {
        "id": common.ID,
        "tenant_id": common.TENANT_ID,
        "network_id": common.reference(),
        "name": common.name(),
        "cidr": Attribute(CIDR, post=True, default=REQUIRED),
        "ip_version": common.read_only({"type": "integer", "enum": [4, 6]}, converters.integer),
        # Not given = the first usable address; null = none.
        "gateway_ip": Attribute(common.nullable(HOST_ADDRESS), post=True, default="", convert=converters.address),
        # null or not given = all usable addresses.
        "allocation_pools": Attribute(ALLOCATION_POOLS, post=True, put=True, default=None, filtered=False),
        "shared": common.read_only(common.BOOLEAN, converters.boolean),
    },
)
