"""Attributes of a VIP, and the rules between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbaas_scheduler.domain import words
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.attributes import REQUIRED, Attribute, Noun
from lbaas_scheduler.schemas.checker import Schema

COOKIE_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": words.MAX_COOKIE_NAME,
    "pattern": f"^{words.COOKIE_NAME}$",
    "description": "a cookie name (letters, digits and any of !%&*+.^_|~-)",
}
SESSION_PERSISTENCE: Schema = {
    "anyOf": [
        {"type": "null"},
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE"]},
                "cookie_name": common.nullable(COOKIE_NAME),
            },
            "required": ["type"],
            "additionalProperties": False,
        },
    ],
    "description": (
        "null or an object with 'type' (SOURCE_IP, HTTP_COOKIE or APP_COOKIE) and, for APP_COOKIE, 'cookie_name' "
        "(letters, digits and any of !%&*+.^_|~-)"
    ),
}
CONNECTION_LIMIT: Schema = {"type": "integer", "minimum": -1, "maximum": words.MAX_CONNECTION_LIMIT}

VIP = Noun(
    "vip",
    "vips",
    {
        "id": common.ID,
        "tenant_id": common.TENANT_ID,
        "name": common.name(),
        "description": common.text(),
        "subnet_id": common.reference(),
        "address": Attribute(common.nullable(common.ADDRESS), post=True, default=None, convert=converters.address),
        "port_id": common.read_only(common.UUID, converters.lower),
        "protocol_port": common.port(),
        "protocol": Attribute(common.PROTOCOL, post=True, default=REQUIRED),
        "pool_id": common.reference(put=True),
        "session_persistence": Attribute(
            SESSION_PERSISTENCE, post=True, put=True, default=None, convert=converters.empty_to_none, filtered=False
        ),
        "connection_limit": Attribute(CONNECTION_LIMIT, post=True, put=True, default=-1, convert=converters.integer),
        "admin_state_up": common.ADMIN_STATE_UP,
        # Ours. Written as the name or id of a service type, which says what kind of device the VIP goes to; read as its id.
        # null = the pool's, else the default.
        "service_type_id": Attribute(common.nullable(common.NAME), post=True, default=None),
        # Ours, and written by administrators only: the id of the one device that the VIP must go to.
        "device_id": Attribute(common.nullable(common.NAME), post=True, default=None, filtered=False),
        "status": common.STATUS_ATTRIBUTE,
        "status_description": common.STATUS_DESCRIPTION,
    },
)


def check_persistence(persistence: Mapping[str, Any] | None, protocol: str) -> dict[str, Any] | None:
    """Judge a session persistence together with the VIP's protocol.

    :returns: ``{"type", "cookie_name"}``; None = no persistence.
    :raises InvalidRequest: a cookie name is missing or superfluous, or the protocol has no cookies.
    """
    if persistence is None:
        return None
    type_, cookie_name = persistence["type"], persistence.get("cookie_name")
    if type_ == "APP_COOKIE" and cookie_name is None:
        raise InvalidRequest(reason="session persistence APP_COOKIE needs a 'cookie_name'", attribute="session_persistence")
    if type_ != "APP_COOKIE" and cookie_name is not None:
        reason = f"'cookie_name' goes with session persistence APP_COOKIE only, not with {type_}"
        raise InvalidRequest(reason=reason, attribute="session_persistence")
    if type_ != "SOURCE_IP" and protocol != "HTTP":
        reason = f"session persistence {type_} needs protocol HTTP; this VIP speaks {protocol}, use SOURCE_IP"
        raise InvalidRequest(reason=reason, attribute="session_persistence")
    return {"type": type_, "cookie_name": cookie_name}
