"""Values of pools: take, look at, make final, give back."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.api import pages, wire
from lbaas_scheduler.api import resource_views as views
from lbaas_scheduler.api.crud import list_of, list_query, one_of
from lbaas_scheduler.api.operations import Call, Operation
from lbaas_scheduler.api.resources import IN_PATH, SCOPE, TAG, asked, owner_of, required, selector
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas import converters
from lbaas_scheduler.schemas import resources as schemas
from lbaas_scheduler.schemas.checker import shown

Document = dict[str, Any]

_FORCE: Document = {"force": {**wire.BOOLEAN, "description": "release what depends on it, too, and even if its owner lives"}}
_RELEASE: Document = {**SCOPE, "generation": schemas.GENERATION, **_FORCE}
_LIST: Document = {
    **list_query(views.ALLOCATION.filters),
    **{name: {"type": "array", "items": schema} for name, schema in views.OWNER_FILTERS.items()},
    "resting": {**wire.BOOLEAN, "description": "the quarantined ones, too"},
}
_KNOWN = {**views.ALLOCATION.filters, **views.OWNER_FILTERS}
_OWNER: Document = {**views.OWNER_FILTERS, **_FORCE}


def _index(call: Call) -> Document:
    filters = dict(call.query.filters)
    scope = _single(filters, "scope")
    place = selector(call, None if scope is None else _scope(scope))
    return _listed(call, filters, place)


def _everywhere(call: Call) -> Document:
    return _listed(call, dict(call.query.filters), None)


def _listed(call: Call, filters: dict[str, list[str]], place: Document | None) -> Document:
    asked_for = _single(filters, "resting")
    resting = False if asked_for is None else converters.boolean(asked_for)
    if not isinstance(resting, bool):
        raise InvalidRequest(reason="'resting' must be true or false", attribute="resting")
    pages.check(filters, _KNOWN)
    found = call.services.resources.allocations(call.context, place, resting=resting)
    # One of an owner's two halves is a filter as any other.
    flat = [{**it, "owner_type": it["owner"]["type"], "owner_id": it["owner"]["id"]} for it in found]
    kept = pages.matching(flat, filters, _KNOWN)
    shown_ = [{name: it[name] for name in it if name not in views.OWNER_FILTERS} for it in kept]
    return pages.answer(call, views.ALLOCATION.collection, pages.in_memory(shown_, views.ALLOCATION.filters))


def _single(filters: dict[str, list[str]], name: str) -> str | None:
    values = filters.pop(name, [])
    if len(values) > 1:
        raise InvalidRequest(reason=f"'{name}' may be given once", attribute=name)
    return values[0] if values else None


def _scope(text: str) -> str:
    pages.check({"scope": [text]}, {"scope": schemas.SCOPE})
    return text


def _create(call: Call) -> Document:
    body = dict(required(call, schemas.ALLOCATION_CREATE, "allocation"))
    place = selector(call, **asked(call, SCOPE))
    terms = _terms(body)
    request = {**body, "kind": place["kind"], "pool": place["name"], **({"scope": place["scope"]} if "scope" in place else {})}
    return {"allocation": _take(call, [request], terms)[0]}


def _create_many(call: Call) -> Document:
    body = dict(required(call, schemas.ALLOCATIONS_CREATE, "allocations"))
    terms = _terms(body)
    return {"allocations": _take(call, body["requests"], terms)}


def _terms(body: Document) -> Document:
    return {name: body.pop(name) for name in ("request_id", "ttl_seconds") if name in body}


def _take(call: Call, requests: list[Document], terms: Document) -> list[Document]:
    resources = call.services.resources
    take = resources.hold if "ttl_seconds" in terms else resources.allocate
    found: list[Document] = take(call.context, requests, **terms)
    return found


def _read(call: Call) -> Document:
    place = selector(call, **asked(call, SCOPE))
    return {"allocation": call.services.resources.allocation(call.context, call.ids["id"], place)}


def _commit(call: Call) -> Document:
    body = required(call, schemas.ALLOCATION_UPDATE, "allocation")
    place = selector(call, **asked(call, SCOPE))
    found = call.services.resources.commit(call.context, call.ids["id"], _whole(body.get("generation")), place)
    return {"allocation": found}


def _whole(number: Any) -> int | None:
    """In JSON, 3.0 is an integer."""
    return None if number is None else int(number)


def _release(call: Call) -> Document:
    given = asked(call, _RELEASE)
    place = selector(call, given.pop("scope", None))
    return call.services.resources.release(call.context, call.ids["id"], pool=place, **given)


def _release_value(call: Call) -> Document:
    body = required(call, schemas.RELEASE, "release")
    place = selector(call, **asked(call, SCOPE))
    return call.services.resources.release_value(call.context, place, body["value"], body["owner"])


def _release_owner(call: Call) -> Document:
    given = asked(call, _OWNER)
    owner = owner_of(given)
    if owner is None:
        raise InvalidRequest(reason=f"say whose: give 'owner_type' and 'owner_id', not {shown(call.query.given)}")
    return call.services.resources.release_owner(call.context, owner, **given)


_TAKES: Document = {"envelope": "allocation", "plural": "allocations"}

INDEX = Operation(
    run=_index,
    rule="get_resource_allocation",
    summary="List the values of a pool that are in use",
    tag=TAG,
    gives=list_of(views.ALLOCATION),
    query={**_LIST, **SCOPE},
    ids=IN_PATH,
)
EVERYWHERE = Operation(
    run=_everywhere,
    rule="get_all_resource_allocations",
    summary="List values in use, whichever their pool",
    tag=TAG,
    gives=list_of(views.ALLOCATION),
    query=_LIST,
)
CREATE = Operation(
    run=_create,
    rule="create_resource_allocation",
    summary="Take a value of a pool, with what its request brings; its owner and slot get the same one again",
    tag=TAG,
    status=201,
    takes={"title": "AllocationCreate", **schemas.ALLOCATION_CREATE},
    gives=one_of(views.ALLOCATION),
    query=SCOPE,
    ids=IN_PATH,
    **_TAKES,
)
CREATE_MANY = Operation(
    run=_create_many,
    rule="create_resource_allocations",
    summary="Take several values of whatever pools in one transaction: all of them, or none",
    tag=TAG,
    status=201,
    envelope="allocations",
    plural="allocations",
    takes={"title": "AllocationsCreate", **schemas.ALLOCATIONS_CREATE},
    gives=list_of(views.ALLOCATION),
)
READ = Operation(
    _read,
    "get_resource_allocation",
    "Show a value in use, with what hangs on it",
    TAG,
    gives=one_of(views.ALLOCATION),
    query=SCOPE,
    ids=IN_PATH,
)
UPDATE = Operation(
    run=_commit,
    rule="update_resource_allocation",
    summary="Make a hold final",
    tag=TAG,
    takes={"title": "AllocationUpdate", **schemas.ALLOCATION_UPDATE},
    gives=one_of(views.ALLOCATION),
    query=SCOPE,
    ids=IN_PATH,
    **_TAKES,
)
DELETE = Operation(
    _release,
    "delete_resource_allocation",
    "Give a value back, with what hangs on it",
    TAG,
    gives=views.RELEASED,
    query=_RELEASE,
    ids=IN_PATH,
)
RELEASE = Operation(
    run=_release_value,
    rule="delete_resource_allocation",
    summary="Give a value back that one knows by itself and its owner",
    tag=TAG,
    envelope="release",
    plural="releases",
    takes={"title": "ResourceRelease", **schemas.RELEASE},
    gives=views.RELEASED,
    query=SCOPE,
    ids=IN_PATH,
)
RELEASE_OWNER = Operation(
    _release_owner, "delete_resource_allocations", "Give back whatever an owner has", TAG, gives=views.RELEASED, query=_OWNER
)
