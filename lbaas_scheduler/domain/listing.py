"""What is asked of a list."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Marker:
    """Where a page begins: after an object, which may be gone by now or fit the filters no more.

    ``values``: what the object is ordered by besides its id, as it was when the page before was made; None = not told, so that
    it has to be looked up.

    As text it is the id, or ``<id>~<the values, as JSON in base64>``, which needs no escaping in a URL.
    """

    id: str
    values: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        if not self.values:
            return self.id
        return f"{self.id}~{base64.urlsafe_b64encode(json.dumps(self.values).encode()).decode().rstrip('=')}"


def read_marker(text: str, sorted_by: int) -> Marker:
    """:param sorted_by: how many attributes the list is ordered by besides the id; a text without as many values is an id."""
    if not sorted_by:
        return Marker(text, ())
    id_, tilde, encoded = text.rpartition("~")
    values = _values(encoded) if tilde else None
    return Marker(text) if values is None or len(values) != sorted_by else Marker(id_, values)


def _values(encoded: str) -> tuple[Any, ...] | None:
    try:
        found = json.loads(base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(value, str | int | float | None) for value in found):
        return None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Listing:
    """Filters, order and page.

    ``filters``: attribute → values, of which one must hold (None = NULL). ``tenant_id`` None = of all tenants.
    ``sorts``: attribute and whether descending; the id breaks ties. ``limit`` None = all. ``marker``: what the page follows or,
    with ``page_reverse``, ends before.
    """

    filters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tenant_id: str | None = None
    sorts: Sequence[tuple[str, bool]] = ()
    limit: int | None = None
    marker: Marker | None = None
    page_reverse: bool = False

    def sorts_before(self, key: str) -> list[tuple[str, bool]]:
        """What the rows are ordered by before ``key``, which breaks ties."""
        return [(name, descending) for name, descending in self.sorts if name != key]
