"""The hot row of a device: what a placement reads, orders by and counts up.

``open`` and ``rank`` are derived from the counters, and computed by the database in the very UPDATE that changes a counter. This
module is the one place that says how; the claim of a placement imports it.

MariaDB evaluates SET from left to right and lets later assignments see earlier ones: put derived columns first
(:func:`derived_values` with ``sa.Update.ordered_values``). Integer division is spelt differently as well, hence the two small
constructs at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from lbaas_scheduler.db.chunks import chunks
from lbaas_scheduler.db.models import STANDARD_CLASSES, device_load
from lbaas_scheduler.domain import capacity
from lbaas_scheduler.domain.capacity import UNLIMITED, Usage

FULL = 10_000
"""The highest rank: the fullest standard class has nothing left."""


def constant(number: int) -> sa.ColumnElement[int]:
    """A number of ours, in the text: what is no parameter need not be bound each time, and a plan can be made for it."""
    return sa.literal_column(str(number), sa.BigInteger)


_ZERO, _ONE, _FULL = constant(0), constant(1), constant(FULL)

Expressions = Mapping[str, sa.ColumnElement[Any]]
"""Resource class → what its column is about to become."""


def used(resource_class: str) -> sa.Column[int]:
    """The counter of a standard class."""
    return device_load.c[f"{resource_class.lower()}_used"]


def limit(resource_class: str) -> sa.Column[int]:
    """The limit of a standard class; −1 = unlimited."""
    return device_load.c[f"{resource_class.lower()}_max"]


def rank_expression(used_after: Expressions | None = None, limit_after: Expressions | None = None) -> sa.ColumnElement[int]:
    """Fill of the fullest standard class in 1/10,000, given what the columns are about to become (default: what they are)."""
    counters, limits = used_after or {}, limit_after or {}
    return greatest(*(_fill(counters.get(name, used(name)), limits.get(name, limit(name))) for name in STANDARD_CLASSES))


def open_expression(
    used_after: Expressions | None = None,
    limit_after: Expressions | None = None,
    schedulable_after: sa.ColumnElement[Any] | None = None,
) -> sa.ColumnElement[int]:
    """1 while the device may take one more resource: it is schedulable and :data:`~capacity.VIPS`, which every resource needs at
    least one of, is not used up. Other classes count only for those that demand them, and the claim guards these."""
    counter = (used_after or {}).get(capacity.VIPS, used(capacity.VIPS))
    most = (limit_after or {}).get(capacity.VIPS, limit(capacity.VIPS))
    schedulable = device_load.c.schedulable if schedulable_after is None else schedulable_after
    return sa.case((sa.and_(schedulable == _ONE, sa.or_(most < _ZERO, counter < most)), _ONE), else_=_ZERO)


def derived_values(
    used_after: Expressions | None = None,
    limit_after: Expressions | None = None,
    schedulable_after: sa.ColumnElement[Any] | None = None,
) -> list[tuple[sa.Column[Any], sa.ColumnElement[int]]]:
    """``open`` and ``rank``, to stand first in ``ordered_values``."""
    return [
        (device_load.c.open, open_expression(used_after, limit_after, schedulable_after)),
        (device_load.c.rank, rank_expression(used_after, limit_after)),
    ]


def insert(conn: sa.Connection, device_id: str, class_id: int, limits: Mapping[str, int]) -> None:
    """A new device: empty, and closed until :func:`set_schedulable` opens it."""
    columns = {limit(name).name: limits.get(name, UNLIMITED) for name in STANDARD_CLASSES}
    rank = FULL if any(value == 0 for value in columns.values()) else 0
    conn.execute(
        sa.insert(device_load).values(device_id=device_id, class_id=class_id, schedulable=0, open=0, rank=rank, **columns)
    )


def reshape(conn: sa.Connection, device_id: str, class_id: int, limits: Mapping[str, int]) -> bool:
    """Another class, or other limits. Limits may fall below what is used: the device is simply full then.

    :returns: whether the device exists.
    """
    after = {name: sa.literal(limits.get(name, UNLIMITED), sa.BigInteger) for name in STANDARD_CLASSES}
    values: list[tuple[Any, Any]] = derived_values(limit_after=after)
    values += [(limit(name), value) for name, value in after.items()]
    values.append((device_load.c.class_id, sa.literal(class_id)))
    changed = sa.update(device_load).where(device_load.c.device_id == device_id).ordered_values(*values)
    return bool(conn.execute(changed).rowcount)


def set_schedulable(conn: sa.Connection, device_ids: Collection[str], schedulable: bool) -> int:
    """Open or close devices for new resources.

    :returns: how many rows were changed; rows that are right already are not written.
    """
    flag = sa.literal(int(schedulable), sa.SmallInteger)
    values = [*derived_values(schedulable_after=flag), (device_load.c.schedulable, flag)]
    return sum(
        conn.execute(
            sa.update(device_load)
            .where(device_load.c.device_id.in_(ids), device_load.c.schedulable != int(schedulable))
            .ordered_values(*values)
        ).rowcount
        for ids in chunks(device_ids)
    )


def close(conn: sa.Connection, device_id: str) -> bool:
    """Keep every claim out until the transaction ends, by writing the row that a claim writes.

    :returns: whether the device exists.
    """
    closed = sa.update(device_load).where(device_load.c.device_id == device_id).values(open=0, schedulable=0)
    return bool(conn.execute(closed).rowcount)


def usage(conn: sa.Connection, device_ids: Collection[str]) -> dict[str, dict[str, Usage]]:
    """Device id → standard class → how full. Unlimited classes that nothing uses are left out, but for VIPS."""
    found: dict[str, dict[str, Usage]] = {}
    for ids in chunks(device_ids):
        for row in conn.execute(sa.select(device_load).where(device_load.c.device_id.in_(ids))).mappings():
            classes = {name: Usage(row[used(name)], row[limit(name)]) for name in STANDARD_CLASSES}
            found[row["device_id"]] = {
                name: it for name, it in classes.items() if name == capacity.VIPS or it.used or it.limit != UNLIMITED
            }
    return found


def delete(conn: sa.Connection, device_id: str) -> None:
    conn.execute(sa.delete(device_load).where(device_load.c.device_id == device_id))


def _fill(counter: sa.ColumnElement[Any], most: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    return sa.case(
        (most < _ZERO, _ZERO),
        (counter >= most, _FULL),
        # Here 0 <= counter < most, so the divisor is not 0.
        else_=integer_division(counter * _FULL, most),
    )


class greatest(FunctionElement[int]):  # noqa: N801 - named like the SQL function
    """The greatest of several expressions, none of them NULL."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(greatest)
def _greatest(element: greatest, compiler: Any, **kw: Any) -> str:
    return f"GREATEST({compiler.process(element.clauses, **kw)})"


@compiles(greatest, "sqlite")
def _greatest_sqlite(element: greatest, compiler: Any, **kw: Any) -> str:
    return f"MAX({compiler.process(element.clauses, **kw)})"


class integer_division(FunctionElement[int]):  # noqa: N801 - named like an SQL function
    """Quotient of two non-negative integers, rounded down."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(integer_division)
def _integer_division(element: integer_division, compiler: Any, **kw: Any) -> str:
    dividend, divisor = (compiler.process(clause.self_group(), **kw) for clause in element.clauses)
    return f"(({dividend}) / ({divisor}))"


@compiles(integer_division, "mysql")
@compiles(integer_division, "mariadb")
def _integer_division_mysql(element: integer_division, compiler: Any, **kw: Any) -> str:
    # "/" yields a decimal that is rounded, up as well, to a few digits; FLOOR over it can be one too high.
    dividend, divisor = (compiler.process(clause.self_group(), **kw) for clause in element.clauses)
    return f"(({dividend}) DIV ({divisor}))"
