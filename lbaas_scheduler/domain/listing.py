"""What is asked of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Listing:
    """Filters, order and page.

    ``filters``: attribute → values, of which one must hold (None = NULL). ``tenant_id`` None = of all tenants.
    ``sorts``: attribute and whether descending; the id breaks ties. ``limit`` None = all. ``marker``: id of the row that the
    page follows or, with ``page_reverse``, ends before.
    """

    filters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tenant_id: str | None = None
    sorts: Sequence[tuple[str, bool]] = ()
    limit: int | None = None
    marker: str | None = None
    page_reverse: bool = False
