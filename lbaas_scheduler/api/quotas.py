"""Quotas."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api.crud import Shape, list_of, list_query, one_of
from lbaas_scheduler.api.operations import NAME_IN_PATH, Call, Operation
from lbaas_scheduler.plugins.quotas import QUOTA
from lbaas_scheduler.schemas.attributes import Verb, convert

TAG = "Quotas"

_LIMITS = wire.view_schema(QUOTA)
ALIASES = {"healthmonitor": "health_monitor"}
"""As python-neutronclient spells it, since there is a version 2 of LBaaS that does."""
_PUT = wire.body_schema(QUOTA, Verb.PUT)
_TAKES = {**_PUT, "properties": {**_PUT["properties"], **{alias: _PUT["properties"][name] for alias, name in ALIASES.items()}}}
SHAPE = Shape("quota", "quotas", post=None, put=None, view=_LIMITS, filters={})
_LISTED = Shape(
    "quota_of_tenant",
    "quotas",
    post=None,
    put=None,
    view={**_LIMITS, "properties": {"tenant_id": {"type": "string"}, **_LIMITS["properties"]}},
    filters={"tenant_id": wire.FILTER_TEXT},
)


def _index(call: Call) -> dict[str, Any]:
    found = pages.matching(call.services.quotas.list(call.context), call.query.filters, _LISTED.filters)
    return pages.answer(call, "quotas", pages.in_memory(found, _LISTED.filters, "tenant_id"), "tenant_id")


def _read(call: Call) -> dict[str, Any]:
    return {"quota": call.services.quotas.get(call.context, call.ids["id"])}


def _defaults(call: Call) -> dict[str, Any]:
    return {"quota": call.services.quotas.get_defaults(call.context, call.ids["id"])}


def _update(call: Call) -> dict[str, Any]:
    return {"quota": call.services.quotas.update(call.context, call.ids["id"], _named(call.body))}


def _named(body: Any) -> Any:
    """Of two spellings in one body ours holds."""
    if not isinstance(body, dict):
        return body
    aliased = {name: convert(QUOTA, name, body[alias]) for alias, name in ALIASES.items() if alias in body}
    return {**aliased, **{name: value for name, value in body.items() if name not in ALIASES}}


def _delete(call: Call) -> None:
    call.services.quotas.delete(call.context, call.ids["id"])


def _tenant(call: Call) -> dict[str, Any]:
    """Whose quotas a client shows that names no tenant."""
    return {"tenant": {"tenant_id": call.context.project_id}}


INDEX = Operation(
    _index, "get_quotas", "List tenants with quotas of their own", TAG, gives=list_of(_LISTED), query=list_query(_LISTED.filters)
)
READ = Operation(_read, "get_quota", "Show the quotas of a tenant", TAG, gives=one_of(SHAPE), ids=NAME_IN_PATH)
DEFAULTS = Operation(
    _defaults, "get_quota", "Show what holds without quotas of its own", TAG, gives=one_of(SHAPE), ids=NAME_IN_PATH
)
UPDATE = Operation(
    _update,
    "update_quota",
    "Give a tenant quotas of its own",
    TAG,
    envelope="quota",
    plural="quotas",
    takes={"title": "QuotaUpdate", **_TAKES},
    gives=one_of(SHAPE),
    ids=NAME_IN_PATH,
)
DELETE = Operation(_delete, "delete_quota", "Let the defaults hold for a tenant again", TAG, status=204, ids=NAME_IN_PATH)
TENANT = Operation(
    _tenant,
    "get_quota",
    "Show the tenant of the caller",
    TAG,
    gives={"type": "object", "properties": {"tenant": {"type": "object"}}, "required": ["tenant"]},
)
