"""The questions that every noun asks: whose is it, may he see it, what does he ask of a list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from oslo_context.context import RequestContext

from lbaas_scheduler.domain.listing import Listing, Marker, read_marker
from lbaas_scheduler.errors import InvalidRequest, NotFound
from lbaas_scheduler.schemas.attributes import Noun, convert

Row = TypeVar("Row", bound=Any)

_ID = re.compile(r"[!-~]{1,36}")

MAX_FILTER_VALUES = 10_000
"""Databases bound the parameters of a statement, SQLite at 32,766."""

Filters = Mapping[str, Any]
Fields = Sequence[str]
Sorts = Sequence[tuple[str, bool]]
"""Attribute, and whether ascending."""


def owner(context: RequestContext, values: Mapping[str, Any]) -> str:
    """Whose a new object is: the caller's, or whom an administrator names.

    :raises InvalidRequest: somebody else's, or nobody's.
    """
    named = values.get("tenant_id")
    if named is not None and named != context.project_id and not context.is_admin:
        raise InvalidRequest(reason="only an administrator may create objects of another tenant", attribute="tenant_id")
    tenant_id = named if named is not None else context.project_id
    if not tenant_id:
        raise InvalidRequest(reason="the request belongs to no tenant; give a 'tenant_id'", attribute="tenant_id")
    return str(tenant_id)


def is_id(value: Any) -> bool:
    """Whether ``value`` can be an id at all; a database need not be asked for what it may choke on."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def visible(context: RequestContext, row: Row | None, missing: NotFound) -> Row:
    """``row``, if it exists and the caller may know that it does.

    :raises NotFound: ``missing``.
    """
    if row is None or not (context.is_admin or row.tenant_id == context.project_id):
        raise missing
    return row


def listing(
    context: RequestContext,
    noun: Noun,
    filters: Filters | None = None,
    sorts: Sorts | None = None,
    limit: int | None = None,
    marker: str | None = None,
    page_reverse: bool = False,
    key: str = "id",
) -> Listing:
    """What a caller asks of a list, judged and converted like the attributes themselves.

    :param marker: an id, or what a link has (:class:`~lbaas_scheduler.domain.listing.Marker`).
    :param key: the attribute that markers are, and that breaks ties.
    :raises InvalidRequest: an attribute that is unknown or has no column, a value that it cannot have, a bad limit.
    """
    if not isinstance(filters, Mapping | None):
        raise InvalidRequest(reason="'filters' must map attributes to values", attribute="filters")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidRequest(reason="'limit' must be an integer of at least 0 (0 = no limit)", attribute="limit")
    ordered = Listing(
        filters={name: _filter_values(noun, name, values) for name, values in (filters or {}).items()},
        tenant_id=None if context.is_admin else (context.project_id or ""),
        sorts=_sorts(sorts),
        limit=limit or None,
        page_reverse=page_reverse,
    )
    return ordered if marker is None else replace(ordered, marker=_marker(marker, len(ordered.sorts_before(key))))


def _marker(text: Any, sorted_by: int) -> Marker:
    marker = read_marker(text, sorted_by) if isinstance(text, str) else None
    if marker is None or not is_id(marker.id):
        raise InvalidRequest(reason="'marker' must be the id of an object in the list, or a link's", attribute="marker")
    return marker


def _sorts(sorts: Sorts | None) -> tuple[tuple[str, bool], ...]:
    wanted = [tuple(each) if isinstance(each, list | tuple) else (each,) for each in sorts or ()]
    for each in wanted:
        if len(each) != 2 or not isinstance(each[0], str) or not isinstance(each[1], bool):
            raise InvalidRequest(reason="'sorts' must be pairs of an attribute and whether ascending", attribute="sorts")
    return tuple((str(name), not ascending) for name, ascending in wanted)


def projected(document: dict[str, Any], fields: Fields | None) -> dict[str, Any]:
    """Only ``fields`` of it; names that are no attributes are left out. None or empty = all."""
    if not fields:
        return document
    asked = {fields} if isinstance(fields, str) else set(fields)
    return {name: value for name, value in document.items() if name in asked}


def wants(fields: Fields | None, *names: str) -> bool:
    """Whether a caller who asked for ``fields`` will see one of ``names``."""
    return not fields or not {fields if isinstance(fields, str) else "", *fields}.isdisjoint(names)


def _filter_values(noun: Noun, name: str, values: Any) -> list[Any]:
    attribute = noun.attributes.get(name)
    if attribute is None or not attribute.filtered:
        possible = ", ".join(sorted(known for known, each in noun.attributes.items() if each.filtered))
        raise InvalidRequest(reason=f"{noun.collection} cannot be filtered by {name!r}; possible: {possible}", attribute=name)
    given = values if isinstance(values, list | tuple | set | frozenset) else [values]
    if len(given) > MAX_FILTER_VALUES:
        raise InvalidRequest(reason=f"'{name}' is filtered by more than {MAX_FILTER_VALUES} values", attribute=name)
    return [convert(noun, name, value) for value in given]
