"""Pages of lists, and the links between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from lbaas_scheduler.api.operations import Call
from lbaas_scheduler.domain.listing import Marker, read_marker
from lbaas_scheduler.errors import InvalidRequest, NotFound
from lbaas_scheduler.schemas.access import projected
from lbaas_scheduler.schemas.checker import shown, violation

Document = dict[str, Any]
Search = Callable[..., list[Document]]
"""Takes filters, fields, sorts, limit, marker and page_reverse."""


def answer(call: Call, collection: str, search: Search, key: str = "id", order: Sequence[tuple[str, bool]] = ()) -> Document:
    """``{collection: documents}``, with ``<collection>_links`` where the list is longer than the page.

    :param key: the attribute that markers are.
    :param order: attributes, and whether ascending, that the list is sorted by where nothing else is asked.
    """
    query = call.query
    size = page_size(call)
    sorts = query.sorts or order
    sorted_by = [name for name, _ in sorts if name != key]
    # These are what a link is made of, and one more than the page says whether there is a next one.
    fields = list(dict.fromkeys([*query.fields, key, *sorted_by])) if query.fields else None
    page = {"limit": size + 1, "marker": query.marker, "page_reverse": query.page_reverse}
    try:
        found = search(filters=query.filters, fields=fields, sorts=sorts, **page)
    except InvalidRequest as error:
        if error.details.get("attribute") == "marker":
            # LBaaS v1 looks the marker's object up, and does not find it.
            raise NotFound(resource="Marker", id=shown(query.marker)) from None
        raise
    more = len(found) > size
    if more:
        found = found[1:] if query.page_reverse else found[:-1]
    markers = [_marker(document, key, sorted_by) for document in found[:1] + found[-1:]]
    links = _links(call, markers, more) if query.limit or more else []
    body: Document = {collection: [projected(document, query.fields) for document in found]}
    return {**body, f"{collection}_links": links} if links else body


def _marker(document: Document, key: str, sorted_by: Sequence[str]) -> str:
    """Tells what the object is ordered by: the next page is found though the object be deleted or changed by then."""
    values = (document[name] for name in sorted_by)
    plain = (value if isinstance(value, str | int | float | None) else str(value) for value in values)
    return str(Marker(document[key], tuple(plain)))


def page_size(call: Call) -> int:
    largest = int(call.services.conf.api.max_page_size)
    return min(call.query.limit, largest) if call.query.limit else largest


def matching(documents: Sequence[Document], filters: Mapping[str, Sequence[str]], known: Mapping[str, Any]) -> list[Document]:
    """Those that fit all filters; of a filter's values one must hold, in whatever case.

    :raises InvalidRequest: as :func:`check`.
    """
    check(filters, known)
    wanted = {name: {value.lower() for value in values} for name, values in filters.items()}
    return [it for it in documents if all(str(it[name]).lower() in values for name, values in wanted.items())]


def check(filters: Mapping[str, Sequence[str]], known: Mapping[str, Any]) -> None:
    """:raises InvalidRequest: a filter that is not among ``known``, or a value that it cannot have."""
    for name, values in filters.items():
        if name not in known:
            possible = ", ".join(sorted(known))
            raise InvalidRequest(reason=f"cannot filter by {shown(name)}; possible: {possible}", attribute=name[:64])
        reason = next((reason for value in values if (reason := violation(known[name], value))), None)
        if reason is not None:
            raise InvalidRequest(reason=f"invalid value for filter '{name}': {reason}.", attribute=name)


def in_memory(documents: Sequence[Document], known: Mapping[str, Any], key: str = "id") -> Search:
    """A search over what was read as a whole: short lists, which no index serves.

    Ordered by ``key`` where nothing else is asked, and among equals.

    :param known: attributes that may be sorted by; a filter is the caller's business.
    """

    def search(
        *, limit: int, sorts: Sequence[tuple[str, bool]] = (), marker: str | None = None, page_reverse: bool = False, **_rest: Any
    ) -> list[Document]:
        found = sorted(documents, key=lambda document: str(document[key]))
        for name, ascending in reversed(sorts):
            if name not in known:
                raise InvalidRequest(reason=f"cannot sort by {shown(name)}; possible: {', '.join(sorted(known))}")
            found.sort(key=lambda document, name=name: _comparable(document.get(name)), reverse=not ascending)  # type: ignore[misc]
        if marker is None:
            return found[-limit:] if page_reverse else found[:limit]
        order = [*((name, ascending) for name, ascending in sorts if name != key), (key, dict(sorts).get(key, True))]
        place = _place(found, order, marker)
        if page_reverse:
            return [it for it in found if _beyond(place, _key_of(it, order), order)][-limit:]
        return [it for it in found if _beyond(_key_of(it, order), place, order)][:limit]

    return search


Key = Sequence[tuple[int, Any]]


def _place(found: Sequence[Document], order: Sequence[tuple[str, bool]], text: str) -> Key:
    """Where a marker stands among documents that are ordered so."""
    marker = read_marker(text, len(order) - 1)
    if marker.values is not None:
        return [_comparable(value) for value in (*marker.values, marker.id)]
    key = order[-1][0]
    document = next((document for document in found if document[key] == marker.id), None)
    if document is None:
        raise InvalidRequest(reason=f"marker {shown(marker.id)} is not in the list", attribute="marker")
    return _key_of(document, order)


def _key_of(document: Document, order: Sequence[tuple[str, bool]]) -> Key:
    return [_comparable(document.get(name)) for name, _ in order]


def _beyond(this: Key, other: Key, order: Sequence[tuple[str, bool]]) -> bool:
    pairs = zip(this, other, order, strict=True)
    return next(((mine > theirs) is ascending for mine, theirs, (_, ascending) in pairs if mine != theirs), False)


def _comparable(value: Any) -> tuple[int, Any]:
    """Numbers and booleans by value, all else by its text; what is absent comes first."""
    if value is None:
        return (0, "")
    return (1, value) if isinstance(value, int | float) else (2, str(value))


def _links(call: Call, keys: Sequence[str], more: bool) -> list[Document]:
    if not keys:
        return []
    backwards = call.query.page_reverse
    came_from_a_page = call.query.marker is not None
    links = []
    if came_from_a_page if backwards else more:
        links.append({"rel": "next", "href": _href(call, marker=keys[-1])})
    if more if backwards else came_from_a_page:
        links.append({"rel": "previous", "href": _href(call, marker=keys[0], page_reverse="True")})
    return links


def _href(call: Call, **changes: str) -> str:
    kept = {name: values for name, values in call.query.given.items() if name not in ("marker", "page_reverse", "limit")}
    return f"{call.url}?{urlencode({**kept, 'limit': page_size(call), **changes}, doseq=True)}"
