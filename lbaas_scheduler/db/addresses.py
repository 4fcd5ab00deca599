"""The addresses that are taken, per subnet. The primary key is what keeps two VIPs apart, whoever is faster.

Values are 32 hexadecimal digits, so that the order of the text is the order of the numbers in every database.
"""

from __future__ import annotations

import sqlalchemy as sa
from oslo_db.exception import DBDuplicateEntry
from sqlalchemy.engine import Connection

from lbaas_scheduler.db.models import addresses

FIRST_LOOK = 256
"""Taken addresses that are read before counting begins: enough for most subnets."""


def to_value(number: int) -> str:
    return f"{number:032x}"


def is_taken(conn: Connection, subnet_id: str, number: int) -> bool:
    query = sa.select(addresses.c.value).where(addresses.c.subnet_id == subnet_id, addresses.c.value == to_value(number))
    return conn.execute(query).first() is not None


def take(conn: Connection, subnet_id: str, number: int, owner_id: str) -> bool:
    """Take an address. Within a savepoint: a refusal leaves the transaction usable.

    :returns: False = somebody has it.
    """
    try:
        with conn.begin_nested():
            conn.execute(sa.insert(addresses).values(subnet_id=subnet_id, value=to_value(number), owner_id=owner_id))
    except DBDuplicateEntry:
        return False
    return True


def release(conn: Connection, owner_id: str) -> int:
    """Free all addresses of an owner. :returns: how many there were."""
    return conn.execute(sa.delete(addresses).where(addresses.c.owner_id == owner_id)).rowcount


def count(conn: Connection, subnet_id: str) -> int:
    return conn.execute(sa.select(sa.func.count()).select_from(addresses).where(addresses.c.subnet_id == subnet_id)).scalar_one()


def first_free(conn: Connection, subnet_id: str, first: int, last: int) -> int | None:
    """The lowest address of ``first``..``last`` that nobody has; None = all are taken.

    Reads a few hundred of those taken; where these leave no gap, halves the range by counting: memory stays constant, and the
    index is read twice at most, however large the subnet.
    """
    query = sa.select(addresses.c.value).where(_between(subnet_id, first, last)).order_by(addresses.c.value).limit(FIRST_LOOK)
    taken = [int(value, 16) for value in conn.execute(query).scalars()]
    for expected, number in enumerate(taken, start=first):
        if number != expected:
            return expected
    low = first + len(taken)
    if low > last:
        return None
    if len(taken) < FIRST_LOOK:
        return low
    return _first_free_by_count(conn, subnet_id, low, last)


def _first_free_by_count(conn: Connection, subnet_id: str, low: int, high: int) -> int | None:
    taken = _count(conn, subnet_id, low, high)
    if taken == high - low + 1:
        return None
    # As many as are taken cannot fill more than as many places.
    high = min(high, low + taken)
    while low < high:
        middle = (low + high) // 2
        if _count(conn, subnet_id, low, middle) == middle - low + 1:
            low = middle + 1
        else:
            high = middle
    return low


def _count(conn: Connection, subnet_id: str, first: int, last: int) -> int:
    return conn.execute(sa.select(sa.func.count()).select_from(addresses).where(_between(subnet_id, first, last))).scalar_one()


def _between(subnet_id: str, first: int, last: int) -> sa.ColumnElement[bool]:
    return sa.and_(addresses.c.subnet_id == subnet_id, addresses.c.value.between(to_value(first), to_value(last)))
