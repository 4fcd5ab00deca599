"""Pools of resources: define, resize, remove, look into. Their values are in :mod:`.allocations`."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api import resource_views as views
from lbaas_scheduler.api.asked import checked, parameters
from lbaas_scheduler.api.crud import list_of, list_query, one_of
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas import converters
from lbaas_scheduler.schemas import resources as schemas
from lbaas_scheduler.schemas.checker import shown, violation

TAG = "Resources"

Document = dict[str, Any]

IN_PATH: Document = {"type": "string", "pattern": "^[0-9A-Za-z][0-9A-Za-z_.:@+-]{0,127}$"}

SCOPE: Document = {"scope": schemas.SCOPE}
"""Whose pool it is; without, cluster for administrators, and the own tenant for others."""

_REMOVAL: Document = {
    **SCOPE,
    "drain": {**wire.BOOLEAN, "description": "if it is in use, let it go with its last value"},
    "force": {**wire.BOOLEAN, "description": "release whatever is in use first"},
}
_HISTORY: Document = {
    "owner_type": wire.FILTER_TEXT,
    "owner_id": wire.FILTER_TEXT,
    "allocation_id": {"type": "string", "pattern": "^[!-~]{1,80}$"},
    "since": {"type": "string", "format": "date-time"},
    "limit": schemas.HISTORY_LIMIT,
}


def selector(call: Call, scope: str | None = None) -> Document:
    """The pool that the path names."""
    place = {"kind": call.ids["kind"], "name": call.ids["name"]}
    return place if scope is None else {**place, "scope": scope}


def asked(call: Call, known: Document) -> Document:
    """The parameters of the query, each of its type; absent ones are absent.

    :raises InvalidRequest: says which one is wrong.
    """
    found: Document = {}
    for name, text in parameters(call, known).items():
        schema = known[name]
        if schema.get("type") == "integer":
            # Not "1_0" or " 1": what int() makes of those nobody meant.
            value: Any = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text
        elif "anyOf" in schema:
            value = converters.boolean(text)
            if not isinstance(value, bool):
                raise InvalidRequest(reason=f"'{name}' must be true or false, not {shown(text)}", attribute=name)
        else:
            value = text
        reason = violation(schema, value)
        if reason is not None:
            raise InvalidRequest(reason=f"invalid value for '{name}': {reason}", attribute=name)
        found[name] = value
    return found


def owner_of(given: Document) -> Document | None:
    """``owner_type`` and ``owner_id``, as an owner.

    :raises InvalidRequest: only one of the two is there.
    """
    pair = {"type": given.pop("owner_type", None), "id": given.pop("owner_id", None)}
    if pair == {"type": None, "id": None}:
        return None
    if None in pair.values():
        raise InvalidRequest(reason="'owner_type' and 'owner_id' go together: give both, or none")
    return pair


def _index(call: Call) -> Document:
    wanted = call.query.filters
    pages.check(wanted, views.POOL.filters)
    found = pages.matching(call.services.resources.pools(call.context), wanted, views.POOL.filters)
    return pages.answer(call, views.POOL.collection, pages.in_memory(found, views.POOL.filters))


def _create(call: Call) -> Document:
    body = required(call, schemas.POOL_CREATE, "resource")
    place: Document = {name: body[name] for name in ("kind", "name", "scope") if name in body}
    return {"resource": call.services.resources.define(call.context, place, body.get("config", {}))}


def required(call: Call, schema: Document, name: str) -> Document:
    """The body, with all that it has to have.

    :raises InvalidRequest: says what is missing or wrong.
    """
    body = checked(call.body, schema, name)
    missing = [attribute for attribute in schema.get("required", ()) if attribute not in body]
    if missing:
        raise InvalidRequest(reason=f"{name!r} needs {', '.join(missing)}", attribute=missing[0])
    return body


def _read(call: Call) -> Document:
    return {"resource": call.services.resources.pool(call.context, selector(call, **asked(call, SCOPE)))}


def _update(call: Call) -> Document:
    body = required(call, schemas.POOL_UPDATE, "resource")
    place = selector(call, **asked(call, SCOPE))
    return {"resource": call.services.resources.resize(call.context, place, body["config"], body.get("drain", False))}


def _delete(call: Call) -> Document:
    given = asked(call, _REMOVAL)
    place = selector(call, given.pop("scope", None))
    return call.services.resources.undefine(call.context, place, **given)


def _usage(call: Call) -> Document:
    return {"usage": call.services.resources.usage(call.context, selector(call, **asked(call, SCOPE)))}


def _history_of(call: Call) -> Document:
    given = asked(call, {**SCOPE, **_HISTORY})
    place = selector(call, given.pop("scope", None))
    owner = owner_of(given)
    return {"events": call.services.resources.history(call.context, place, owner, **given)}


def _history(call: Call) -> Document:
    given = asked(call, _HISTORY)
    owner = owner_of(given)
    return {"events": call.services.resources.history(call.context, owner=owner, **given)}


def _check(call: Call) -> Document:
    asked(call, {})
    return {"findings": call.services.resources.check(call.context)}


def _keys(call: Call) -> Document:
    asked(call, {})
    return {"keys": call.services.resources.keys(call.context).splitlines()}


def _reconcile(call: Call) -> Document:
    body = checked(call.body, schemas.RECONCILE, "reconcile")
    return {"report": call.services.resources.reconcile(call.context, **body)}


INDEX = Operation(
    run=_index,
    rule="get_resource",
    summary="List pools of resources",
    tag=TAG,
    gives=list_of(views.POOL),
    query=list_query(views.POOL.filters),
)
CREATE = Operation(
    run=_create,
    rule="create_resource",
    summary="Define a pool of resources; the same definition again is fine",
    tag=TAG,
    status=201,
    envelope="resource",
    plural="resources",
    takes={"title": "ResourceCreate", **schemas.POOL_CREATE},
    gives=one_of(views.POOL),
)
READ = Operation(_read, "get_resource", "Show a pool of resources", TAG, gives=one_of(views.POOL), query=SCOPE, ids=IN_PATH)
UPDATE = Operation(
    run=_update,
    rule="update_resource",
    summary="Give a pool another definition while it is in use",
    tag=TAG,
    envelope="resource",
    plural="resources",
    takes={"title": "ResourceUpdate", **schemas.POOL_UPDATE},
    gives=one_of(views.POOL),
    query=SCOPE,
    ids=IN_PATH,
)
DELETE = Operation(
    _delete, "delete_resource", "Remove a pool of resources", TAG, gives=views.REMOVED, query=_REMOVAL, ids=IN_PATH
)
USAGE = Operation(
    _usage,
    "get_resource_usage",
    "Show how full a pool is",
    TAG,
    gives=views.answer("usage", views.USAGE),
    query=SCOPE,
    ids=IN_PATH,
)
HISTORY_OF_POOL = Operation(
    run=_history_of,
    rule="get_resource_history",
    summary="Show what was done with a pool and its values, last things first; it outlives the pool",
    tag=TAG,
    gives=views.answer("events", views.EVENTS),
    query={**SCOPE, **_HISTORY},
    ids=IN_PATH,
)
HISTORY = Operation(
    run=_history,
    rule="get_resource_history",
    summary="Show what was done with all pools, last things first",
    tag=TAG,
    gives=views.answer("events", views.EVENTS),
    query=_HISTORY,
)
CHECK = Operation(
    _check, "check_resources", "Show what is not as it should be", TAG, gives=views.answer("findings", views.FINDINGS)
)
KEYS = Operation(
    run=_keys,
    rule="get_resource_keys",
    summary="Show every key that there can be in the store",
    tag=TAG,
    gives=views.answer("keys", {"type": "array", "items": {"type": "string"}}),
)
RECONCILE = Operation(
    run=_reconcile,
    rule="reconcile_resources",
    summary="Find values that nobody wants any more; give them back unless dry_run",
    tag=TAG,
    envelope="reconcile",
    plural="reconciles",
    takes={"title": "ResourceReconcile", **schemas.RECONCILE},
    gives=views.answer("report", views.REPORT),
)
