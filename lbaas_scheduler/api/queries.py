"""Query strings: filters, fields, order and page of a list, as LBaaS v1 clients spell them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.schemas import converters

CONTROLS = ("fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir")
"""Parameters that are no filters."""

_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Query:
    """``limit`` None = not given, 0 = no limit. ``sorts``: attribute and whether ascending."""

    filters: Mapping[str, list[str]] = field(default_factory=dict)
    fields: Sequence[str] = ()
    limit: int | None = None
    marker: str | None = None
    page_reverse: bool = False
    sorts: Sequence[tuple[str, bool]] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    """Everything as it was given, for the links to other pages."""


def parse(params: Mapping[str, str | list[str]]) -> Query:
    """:raises InvalidRequest: names the parameter that is wrong."""
    given = {name: value if isinstance(value, list) else [value] for name, value in params.items()}
    for name, values in given.items():
        if name != "fields" and any("\x00" in text for text in (name, *values)):
            raise InvalidRequest(reason="the query string has characters that are no text", attribute=name[:64])
    return Query(
        filters={name: values for name, values in given.items() if name not in CONTROLS},
        fields=tuple(name for name in given.get("fields", ()) if name),
        limit=_limit(_single(given, "limit")),
        marker=_single(given, "marker"),
        page_reverse=_flag("page_reverse", _single(given, "page_reverse")),
        sorts=_sorts(given.get("sort_key", []), given.get("sort_dir", [])),
        given=given,
    )


def _single(given: Mapping[str, list[str]], name: str) -> str | None:
    values = given.get(name, [])
    if len(values) > 1:
        raise InvalidRequest(reason=f"'{name}' may be given once", attribute=name)
    return values[0] if values else None


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise InvalidRequest(reason="'limit' must be an integer of at least 0 (0 = no limit)", attribute="limit")
    return int(text)


def _flag(name: str, text: str | None) -> bool:
    value = converters.boolean(text) if text is not None else False
    if not isinstance(value, bool):
        raise InvalidRequest(reason=f"'{name}' must be true or false", attribute=name)
    return value


def _sorts(keys: Sequence[str], directions: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    if directions and len(keys) != len(directions):
        raise InvalidRequest(reason="there must be as many 'sort_dir' as 'sort_key', or none", attribute="sort_dir")
    for direction in directions:
        if direction not in ("asc", "desc"):
            raise InvalidRequest(reason="'sort_dir' must be asc or desc", attribute="sort_dir")
    return tuple(zip(keys, (direction == "asc" for direction in directions or ["asc"] * len(keys)), strict=True))
