"""Words that several nouns share."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.domain.statuses import Status
from lbaas_scheduler.schemas import converters
from lbaas_scheduler.schemas.attributes import REQUIRED, Attribute
from lbaas_scheduler.schemas.checker import Schema, violation

MAX_NAME = 255

# NUL and lone surrogates are no text for PostgreSQL; everything else a person may write.
PRINTABLE_TEXT = r"^[^\u0000\ud800-\udfff]*$"

_BLANK = r"\s\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_NO_TEXT = r"\u0000\ud800-\udfff"
TRIMMED_TEXT = rf"^(?:[^{_BLANK}{_NO_TEXT}](?:[^{_NO_TEXT}]*[^{_BLANK}{_NO_TEXT}])?)?$"

UUID: Schema = {
    "type": "string",
    "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    "description": "a UUID",
}
TEXT: Schema = {"type": "string", "maxLength": MAX_NAME, "pattern": PRINTABLE_TEXT, "description": "text without NUL"}
NAME: Schema = {
    # MariaDB compares without the blanks at an end, the other databases with them; and nobody sees them in a list.
    "type": "string",
    "maxLength": MAX_NAME,
    "pattern": TRIMMED_TEXT,
    "description": f"a string of at most {MAX_NAME} characters without NUL, and without blanks at its beginning or end",
}
TENANT: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_NAME,
    "pattern": "^[!-~]+$",
    "description": f"a tenant's id (1 to {MAX_NAME} ASCII characters, none of them a space or a control character)",
}
BOOLEAN: Schema = {"type": "boolean"}
ADDRESS: Schema = {
    "type": "string",
    "format": "ip-address",
    "description": "a usable IPv4 or IPv6 unicast address (no multicast, unspecified, link-local, reserved or IPv4-mapped one)",
}
PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
PROTOCOL: Schema = {"type": "string", "enum": ["TCP", "HTTP", "HTTPS"]}
STATUS: Schema = {"type": "string", "enum": [str(status) for status in Status]}


def is_uuid(value: Any) -> bool:
    return violation(UUID, value) is None


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [{"type": "null"}, schema], **{key: schema[key] for key in ("description",) if key in schema}}


def read_only(schema: Schema, convert: converters.Converter | None = None, filtered: bool = True) -> Attribute:
    return Attribute(schema, convert=convert, filtered=filtered)


def reference(put: bool = False, default: Any = REQUIRED) -> Attribute:
    """The id of another object."""
    return Attribute(UUID, post=True, put=put, default=default, convert=converters.lower)


def text() -> Attribute:
    return Attribute(TEXT, post=True, put=True, default="")


def name() -> Attribute:
    return Attribute(NAME, post=True, put=True, default="")


def port() -> Attribute:
    return Attribute(PORT, post=True, default=REQUIRED, convert=converters.integer)


ID = read_only(UUID, converters.lower)
TENANT_ID = Attribute(TENANT, post=True, default=None)
ADMIN_STATE_UP = Attribute(BOOLEAN, post=True, put=True, default=True, convert=converters.boolean)
STATUS_ATTRIBUTE = read_only(STATUS)
STATUS_DESCRIPTION = read_only(nullable(TEXT))
