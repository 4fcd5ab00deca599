"""Placement rules, as administrators wrote them. There are few; a placement reads all of its service's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import quotas
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.db.rule_models import placement_rules
from lbaas_scheduler.domain.clock import utcnow

C = placement_rules.c


def next_position(conn: Connection) -> int:
    """After the last rule. Whoever asks at the same time waits until the transaction ends, and gets another one."""
    quotas.take_turn(conn, quotas.NOBODY, "placement_rule")
    return (conn.scalar(sa.select(sa.func.max(C.position))) or 0) + 1


def insert(conn: Connection, values: Mapping[str, Any]) -> None:
    """:raises DBDuplicateEntry: the name is taken."""
    conn.execute(sa.insert(placement_rules).values(created_at=utcnow(), **values))


def hold(conn: Connection, rule_id: str) -> None:
    """Keep other changes of a rule out until the transaction ends."""
    # By a write of nothing: neither SQLite nor Galera has SELECT ... FOR UPDATE.
    conn.execute(sa.update(placement_rules).where(C.id == rule_id).values(position=C.position))


def update(conn: Connection, rule_id: str, values: Mapping[str, Any]) -> bool:
    """:returns: False: there is no such rule.
    :raises DBDuplicateEntry: the name is taken."""
    if not values:
        return find(conn, rule_id) is not None
    return bool(conn.execute(sa.update(placement_rules).where(C.id == rule_id).values(**values)).rowcount)


def delete(conn: Connection, rule_id: str) -> bool:
    return bool(conn.execute(sa.delete(placement_rules).where(C.id == rule_id)).rowcount)


def find(conn: Connection, rule_id: str) -> AnyRow | None:
    return conn.execute(sa.select(placement_rules).where(C.id == rule_id)).one_or_none()


def rows(conn: Connection) -> list[AnyRow]:
    """All rules in the order in which they are tried."""
    return list(conn.execute(sa.select(placement_rules).order_by(C.position, C.name)))


def of_service(conn: Connection, service: str) -> list[AnyRow]:
    """The enabled rules of a service in the order in which they are tried."""
    return list(conn.execute(_OF_SERVICE, {"service": service}))


_OF_SERVICE = (
    sa.select(placement_rules).where(C.service == sa.bindparam("service"), C.enabled.is_(True)).order_by(C.position, C.name)
)
