"""Filters, order and pages of a list, in SQL: the same for every noun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.models import UtcDateTime
from lbaas_scheduler.db.rows import AnyRow, AnySelect
from lbaas_scheduler.domain.listing import Listing, Marker
from lbaas_scheduler.errors import InvalidRequest

Columns = Mapping[str, sa.ColumnElement[Any]]
"""Attribute → what stands for it in SQL."""


_TOO_LARGE = 2**63


def matching(conn: Connection, base: AnySelect, columns: Columns, listing: Listing, key: str = "id") -> AnySelect:
    """``base``, narrowed to what ``listing`` asks for. Costs a statement where a marker has to be looked up, else none.

    :param key: the attribute that markers are, and that breaks ties.
    :raises InvalidRequest: an attribute that is no column, or a marker that says not where it stands, and is gone.
    """
    query = base.where(*_conditions(conn, columns, listing), *_tenant(columns, listing))
    order = _order(columns, listing, key)
    if listing.marker is not None:
        # Without the filters, which it may have ceased to fit.
        everything = base.where(*_tenant(columns, listing))
        query = query.where(_after(_marker_values(conn, everything, columns, listing, listing.marker, key), order))
    query = query.order_by(*(column.desc() if descending else column.asc() for column, descending in order))
    return query if listing.limit is None else query.limit(listing.limit)


def fetch(conn: Connection, query: AnySelect, listing: Listing) -> list[AnyRow]:
    """The rows, in the order that was asked for."""
    rows = list(conn.execute(query))
    return rows[::-1] if listing.page_reverse else rows


def page_of(query: AnySelect, id_column: sa.ColumnElement[Any]) -> sa.Subquery:
    """The ids of a page, to be joined with: MariaDB has no LIMIT inside IN, and a list of ids may be too long for a statement."""
    return query.with_only_columns(id_column.label("id"), maintain_column_froms=True).subquery("page")


def _column(columns: Columns, name: str) -> sa.ColumnElement[Any]:
    if name not in columns:
        raise InvalidRequest(reason=f"cannot filter or sort by '{name}'; possible: {', '.join(sorted(columns))}", attribute=name)
    return columns[name]


def _conditions(conn: Connection, columns: Columns, listing: Listing) -> list[sa.ColumnElement[bool]]:
    return [_one_of(_exact(conn, name, _column(columns, name)), values) for name, values in listing.filters.items()]


def _exact(conn: Connection, name: str, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """MariaDB's collation takes "a" and "a " for the same. Of names, which indexes serve, none ends in a blank."""
    padded = conn.dialect.name == "mysql" and name in ("description", "status_description")
    return sa.collate(column, "utf8mb4_nopad_bin") if padded else column


def _tenant(columns: Columns, listing: Listing) -> list[sa.ColumnElement[bool]]:
    return [] if listing.tenant_id is None else [columns["tenant_id"] == listing.tenant_id]


def _one_of(column: sa.ColumnElement[Any], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    given = [value for value in values if value is not None]
    if len(given) == len(values):
        return column.in_(given)
    return sa.or_(column.in_(given), column.is_(None))


def _order(columns: Columns, listing: Listing, key: str) -> list[tuple[sa.ColumnElement[Any], bool]]:
    sorts = [*((name, descending) for name, descending in listing.sorts_before(key)), (key, dict(listing.sorts).get(key, False))]
    return [(_sortable(_column(columns, name)), descending != listing.page_reverse) for name, descending in sorts]


def _sortable(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """What can be ordered and compared, and sorts the same in every database: NULLs come first in one and last in another."""
    if isinstance(column.type, sa.Boolean):
        return sa.case((column, 1), else_=0)
    if getattr(column, "nullable", True) and isinstance(column.type, sa.String | sa.Integer):
        return sa.func.coalesce(column, _of_null(column))
    return column  # as it is, so that an index may give the order: a page by id reads no more than the page


def _of_null(column: sa.ColumnElement[Any]) -> Any:
    """What stands for NULL in an order: no number is negative where there may be none."""
    return "" if isinstance(column.type, sa.String) else -1


def _marker_values(
    conn: Connection, everything: AnySelect, columns: Columns, listing: Listing, marker: Marker, key: str
) -> Sequence[Any]:
    """What the marker's object is ordered by: as the marker tells, else as it is now."""
    names = [name for name, _ in listing.sorts_before(key)]
    if marker.values is not None:
        return (*(_comparable(columns[name], value) for name, value in zip(names, marker.values, strict=True)), marker.id)
    keys = [_sortable(columns[name]) for name in (*names, key)]
    wanted = everything.where(columns[key] == marker.id)
    row = conn.execute(wanted.with_only_columns(*keys, maintain_column_froms=True)).one_or_none()
    if row is None:
        raise InvalidRequest(reason=f"marker '{marker.id}' is not in the list", attribute="marker")
    return tuple(row)


def _comparable(column: sa.ColumnElement[Any], value: Any) -> Any:
    """An attribute's value in a marker as a value of :func:`_sortable`.

    :raises InvalidRequest: it is none.
    """
    if value is None:
        return _of_null(column)
    if isinstance(column.type, UtcDateTime) and isinstance(value, str):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    if isinstance(column.type, sa.String) and isinstance(value, str):
        return value
    if isinstance(column.type, sa.Boolean | sa.Integer) and isinstance(value, int) and abs(value) < _TOO_LARGE:
        return int(value)
    raise InvalidRequest(reason="the marker is none that a link of this list has", attribute="marker")


def _after(values: Sequence[Any], keys: Sequence[tuple[sa.ColumnElement[Any], bool]]) -> sa.ColumnElement[bool]:
    """Lexicographically past ``values``: k1 > a OR (k1 = a AND k2 > b) OR …"""
    cases = []
    for index, (key, descending) in enumerate(keys):
        equal = [other == value for (other, _), value in zip(keys[:index], values[:index], strict=True)]
        beyond = key < values[index] if descending else key > values[index]
        cases.append(sa.and_(*equal, beyond))
    return sa.or_(*cases)
