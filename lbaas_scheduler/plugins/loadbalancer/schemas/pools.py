"""Attributes of a pool."""

from __future__ import annotations

from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.attributes import REQUIRED, Attribute, Noun
from lbaas_scheduler.schemas.checker import Schema

METHOD: Schema = {"type": "string", "enum": ["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP"]}
IDS: Schema = {"type": "array", "items": common.UUID, "uniqueItems": True}
ASSOCIATION_STATUSES: Schema = {"type": "array", "items": {"type": "object"}}

POOL = Noun(
    "pool",
    "pools",
    {
        "id": common.ID,
        "tenant_id": common.TENANT_ID,
        "name": common.name(),
        "description": common.text(),
        "vip_id": common.read_only(common.nullable(common.UUID), converters.lower),
        "subnet_id": common.reference(),
        "protocol": Attribute(common.PROTOCOL, post=True, default=REQUIRED),
        # Name of a service type; LBaaS v1 calls it so and normalises it to lower case.
        "provider": Attribute(common.nullable(common.NAME), post=True, default=None),
        "lb_method": Attribute(METHOD, post=True, put=True, default=REQUIRED),
        "members": common.read_only(IDS, filtered=False),
        # LBaaS v1 accepts the list and ignores it: monitors are associated one by one, by the sub-resource.
        "health_monitors": Attribute(IDS, post=True, put=True, default=None, convert=converters.list_of, filtered=False),
        "health_monitors_status": common.read_only(ASSOCIATION_STATUSES, filtered=False),
        "admin_state_up": common.ADMIN_STATE_UP,
        "status": common.STATUS_ATTRIBUTE,
        "status_description": common.STATUS_DESCRIPTION,
    },
)
