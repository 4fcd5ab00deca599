"""Attributes of a health monitor, and the rules between them."""

from __future__ import annotations

from lbaas_scheduler.domain import words
from lbaas_scheduler.errors import DelayOrTimeoutInvalid
from lbaas_scheduler.schemas import common, converters
from lbaas_scheduler.schemas.attributes import REQUIRED, Attribute, Noun
from lbaas_scheduler.schemas.checker import Schema

TYPE: Schema = {"type": "string", "enum": ["PING", "TCP", "HTTP", "HTTPS"]}
SECONDS: Schema = {"type": "integer", "minimum": 1, "maximum": words.MAX_SECONDS}
MAX_RETRIES: Schema = {"type": "integer", "minimum": 1, "maximum": words.MAX_RETRIES}
HTTP_METHOD: Schema = {"type": "string", "enum": list(words.HTTP_METHODS)}
URL_PATH: Schema = {
    "type": "string",
    "maxLength": words.MAX_URL_PATH,
    "pattern": f"^{words.URL_PATH}$",
    "description": (
        "a path that starts with '/' and has only characters of a URL (others as %XX; no space, quotation mark, backslash or '#')"
    ),
}
EXPECTED_CODES: Schema = {
    "type": "string",
    "maxLength": words.MAX_EXPECTED_CODES,
    "pattern": f"^(?:{words.EXPECTED_CODES})$",
    "format": "status-codes",
    "description": "a status code from 100 to 599, a list ('200, 202') or a range ('200-204', low to high)",
}

HTTP_ATTRIBUTES = ("http_method", "url_path", "expected_codes")
"""Not shown for PING and TCP (LP 1100749)."""

HEALTH_MONITOR = Noun(
    "health_monitor",
    "health_monitors",
    {
        "id": common.ID,
        "tenant_id": common.TENANT_ID,
        "type": Attribute(TYPE, post=True, default=REQUIRED),
        "delay": Attribute(SECONDS, post=True, put=True, default=REQUIRED, convert=converters.integer),
        "timeout": Attribute(SECONDS, post=True, put=True, default=REQUIRED, convert=converters.integer),
        "max_retries": Attribute(MAX_RETRIES, post=True, put=True, default=REQUIRED, convert=converters.integer),
        "http_method": Attribute(HTTP_METHOD, post=True, put=True, default="GET", convert=converters.upper),
        "url_path": Attribute(URL_PATH, post=True, put=True, default="/"),
        "expected_codes": Attribute(EXPECTED_CODES, post=True, put=True, default="200"),
        "admin_state_up": common.ADMIN_STATE_UP,
        "pools": common.read_only({"type": "array", "items": {"type": "object"}}, filtered=False),
    },
)


def check_times(delay: int, timeout: int) -> None:
    """:raises DelayOrTimeoutInvalid: a check would start before the one before it may end."""
    if delay < timeout:
        raise DelayOrTimeoutInvalid(delay=delay, timeout=timeout)
