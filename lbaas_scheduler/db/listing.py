"""Filters, order and pages of a list, in SQL: the same for every noun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.rows import AnyRow, AnySelect
from lbaas_scheduler.domain.listing import Listing
from lbaas_scheduler.errors import InvalidRequest

Columns = Mapping[str, sa.ColumnElement[Any]]
"""Attribute → what stands for it in SQL."""


def matching(conn: Connection, base: AnySelect, columns: Columns, listing: Listing, key: str = "id") -> AnySelect:
    """``base``, narrowed to what ``listing`` asks for. Costs a statement where there is a marker, else none.

    :param key: the attribute that markers are, and that breaks ties.
    :raises InvalidRequest: an attribute that is no column, or a marker that is not in the list.
    """
    query = base.where(*_conditions(columns, listing))
    order = _order(columns, listing, key)
    if listing.marker is not None:
        wanted = query.where(columns[key] == listing.marker)
        query = query.where(_after(_marker_values(conn, wanted, order, listing.marker), order))
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


def _conditions(columns: Columns, listing: Listing) -> list[sa.ColumnElement[bool]]:
    conditions = [_one_of(_column(columns, name), values) for name, values in listing.filters.items()]
    if listing.tenant_id is not None:
        conditions.append(columns["tenant_id"] == listing.tenant_id)
    return conditions


def _one_of(column: sa.ColumnElement[Any], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    given = [value for value in values if value is not None]
    if len(given) == len(values):
        return column.in_(given)
    return sa.or_(column.in_(given), column.is_(None))


def _order(columns: Columns, listing: Listing, key: str) -> list[tuple[sa.ColumnElement[Any], bool]]:
    sorts = [(name, descending) for name, descending in listing.sorts if name != key]
    sorts.append((key, dict(listing.sorts).get(key, False)))
    return [(_sortable(_column(columns, name)), descending != listing.page_reverse) for name, descending in sorts]


def _sortable(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """What can be ordered and compared, and sorts the same in every database: NULLs come first in one and last in another."""
    if isinstance(column.type, sa.Boolean):
        return sa.case((column, 1), else_=0)
    if isinstance(column.type, sa.String) and getattr(column, "nullable", True):
        return sa.func.coalesce(column, "")
    return column  # as it is, so that an index may give the order: a page by id reads no more than the page


def _marker_values(
    conn: Connection, wanted: AnySelect, keys: Sequence[tuple[sa.ColumnElement[Any], bool]], marker: str
) -> Sequence[Any]:
    row = conn.execute(wanted.with_only_columns(*(key for key, _ in keys), maintain_column_froms=True)).one_or_none()
    if row is None:
        raise InvalidRequest(reason=f"marker '{marker}' is not in the list", attribute="marker")
    return tuple(row)


def _after(values: Sequence[Any], keys: Sequence[tuple[sa.ColumnElement[Any], bool]]) -> sa.ColumnElement[bool]:
    """Lexicographically past ``values``: k1 > a OR (k1 = a AND k2 > b) OR …"""
    cases = []
    for index, (key, descending) in enumerate(keys):
        equal = [other == value for (other, _), value in zip(keys[:index], values[:index], strict=True)]
        beyond = key < values[index] if descending else key > values[index]
        cases.append(sa.and_(*equal, beyond))
    return sa.or_(*cases)
