"""Pages of lists, and the links between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from lbaas_scheduler.api.operations import Call
from lbaas_scheduler.errors import InvalidRequest, NotFound
from lbaas_scheduler.schemas.access import projected
from lbaas_scheduler.schemas.checker import shown, violation

Document = dict[str, Any]
Search = Callable[..., list[Document]]
"""Takes filters, fields, sorts, limit, marker and page_reverse."""


def answer(call: Call, collection: str, search: Search, key: str = "id") -> Document:
    """``{collection: documents}``, with ``<collection>_links`` where the list is longer than the page.

    :param key: the attribute that markers are.
    """
    query = call.query
    size = page_size(call)
    # The key is what a link is made of, and one more than the page says whether there is a next one.
    fields = list(dict.fromkeys([*query.fields, key])) if query.fields else None
    page = {"limit": size + 1, "marker": query.marker, "page_reverse": query.page_reverse}
    try:
        found = search(filters=query.filters, fields=fields, sorts=query.sorts, **page)
    except InvalidRequest as error:
        if error.details.get("attribute") == "marker":
            # LBaaS v1 looks the marker's object up, and does not find it.
            raise NotFound(resource="Marker", id=shown(query.marker)) from None
        raise
    more = len(found) > size
    if more:
        found = found[1:] if query.page_reverse else found[:-1]
    links = _links(call, [document[key] for document in found], more) if query.limit or more else []
    body: Document = {collection: [projected(document, query.fields) for document in found]}
    return {**body, f"{collection}_links": links} if links else body


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


def in_memory(documents: Sequence[Document], known: Mapping[str, Any], key: str = "id", ordered: bool = False) -> Search:
    """A search over what was read as a whole: short lists, which no index serves.

    Ordered by ``key`` where nothing else is asked, and among equals.

    :param known: attributes that may be sorted by; a filter is the caller's business.
    :param ordered: the documents have an order of their own, which takes the place of the key's.
    """

    def search(
        *, limit: int, sorts: Sequence[tuple[str, bool]] = (), marker: str | None = None, page_reverse: bool = False, **_rest: Any
    ) -> list[Document]:
        found = list(documents) if ordered else sorted(documents, key=lambda document: str(document[key]))
        for name, ascending in reversed(sorts):
            if name not in known:
                raise InvalidRequest(reason=f"cannot sort by {shown(name)}; possible: {', '.join(sorted(known))}")
            found.sort(key=lambda document, name=name: _comparable(document.get(name)), reverse=not ascending)  # type: ignore[misc]
        return _window(found, key, limit, marker, page_reverse)

    return search


def _window(ordered: list[Document], key: str, limit: int, marker: str | None, page_reverse: bool) -> list[Document]:
    if marker is None:
        return ordered[-limit:] if page_reverse else ordered[:limit]
    place = next((number for number, document in enumerate(ordered) if document[key] == marker), None)
    if place is None:
        raise InvalidRequest(reason=f"marker {shown(marker)} is not in the list", attribute="marker")
    return ordered[max(0, place - limit) : place] if page_reverse else ordered[place + 1 : place + 1 + limit]


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
