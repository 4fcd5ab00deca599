"""Attributes of a member."""

from __future__ import annotations

from lbaas_scheduler.domain import words
from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.attributes import REQUIRED, Attribute, Noun
from lbaas_scheduler.schemas.checker import Schema

WEIGHT: Schema = {"type": "integer", "minimum": 0, "maximum": words.MAX_WEIGHT}

MEMBER = Noun(
    "member",
    "members",
    {
        "id": common.ID,
        "tenant_id": common.TENANT_ID,
        "pool_id": common.reference(put=True),
        "address": Attribute(common.ADDRESS, post=True, default=REQUIRED, convert=converters.address),
        "protocol_port": common.port(),
        "weight": Attribute(WEIGHT, post=True, put=True, default=1, convert=converters.integer),
        "admin_state_up": common.ADMIN_STATE_UP,
        "status": common.STATUS_ATTRIBUTE,
        "status_description": common.STATUS_DESCRIPTION,
    },
)
