"""Service types and their definitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db import quotas
from lbaas_scheduler.db.models import placements, pools, service_definitions, service_types, vips
from lbaas_scheduler.db.placements import CURRENT
from lbaas_scheduler.db.rows import AnySelect
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.service_types import ServiceDefinition, ServiceType


def take_turn(conn: sa.Connection) -> None:
    """Let nobody else change service types until the transaction ends: what is read from here on stays so."""
    quotas.take_turn(conn, quotas.NOBODY, "service_type")


def insert(conn: sa.Connection, service_type: ServiceType) -> None:
    """:raises DBDuplicateEntry: the name is taken; or it is the default, and there is one."""
    conn.execute(sa.insert(service_types).values(id=service_type.id, created_at=clock.utcnow(), **_columns(service_type)))
    _insert_definitions(conn, service_type)


def update(conn: sa.Connection, service_type: ServiceType) -> bool:
    """Write all of a service type. :returns: False: there is no such one."""
    changed = sa.update(service_types).where(service_types.c.id == service_type.id).values(_columns(service_type))
    if not conn.execute(changed).rowcount:
        return False
    conn.execute(sa.delete(service_definitions).where(service_definitions.c.service_type_id == service_type.id))
    _insert_definitions(conn, service_type)
    return True


def clear_default(conn: sa.Connection) -> None:
    """No service type is the default, until another is made it in the same transaction."""
    conn.execute(sa.update(service_types).where(service_types.c.default_slot == 1).values(default_slot=None))


def delete(conn: sa.Connection, service_type_id: str) -> bool:
    conn.execute(sa.delete(service_definitions).where(service_definitions.c.service_type_id == service_type_id))
    return bool(conn.execute(sa.delete(service_types).where(service_types.c.id == service_type_id)).rowcount)


def get(conn: sa.Connection, service_type_id: str) -> ServiceType | None:
    return _first(_read(conn, _BY_ID, wanted=service_type_id))


def find(conn: sa.Connection, name_or_id: str | None) -> ServiceType | None:
    """By id, else by name, else by name in whatever case (LBaaS v1 lowers it); None = the default one. Enabled or not."""
    if name_or_id is None:
        return _first(_read(conn, _DEFAULT))
    found = _read(conn, _NAMED, wanted=name_or_id)
    exact = _first([it for it in found if it.id == name_or_id]) or _first(found)
    return exact or next((it for it in list_all(conn) if it.name.lower() == name_or_id.lower()), None)


def list_all(conn: sa.Connection) -> list[ServiceType]:
    """Every service type, by name. There are few."""
    return _read(conn, _ALL)


def users(conn: sa.Connection, service_type_id: str) -> dict[str, int]:
    """What refers to the service type: noun → how many."""
    # One that moves has several placements, and lives in one of them.
    living = sa.select(placements).where(placements.c.role == CURRENT).subquery()
    counted = {
        noun: conn.scalar(sa.select(sa.func.count()).select_from(table).where(table.c.service_type_id == service_type_id)) or 0
        for noun, table in (("VIP", vips), ("pool", pools), ("placement", living))
    }
    # A VIP's placement is no further user beside the VIP.
    counted["placement"] = max(0, counted["placement"] - counted["VIP"])
    return {noun: count for noun, count in counted.items() if count}


def _columns(service_type: ServiceType) -> dict[str, Any]:
    return {
        "name": service_type.name,
        "description": service_type.description,
        "enabled": service_type.enabled,
        "default_slot": 1 if service_type.default else None,
        "options": dict(service_type.options),
    }


def _insert_definitions(conn: sa.Connection, service_type: ServiceType) -> None:
    rows = [{"service_type_id": service_type.id, **asdict(definition)} for definition in service_type.definitions]
    if rows:
        conn.execute(sa.insert(service_definitions), rows)


def _first(found: list[ServiceType]) -> ServiceType | None:
    return next(iter(found), None)


def _read(conn: sa.Connection, query: AnySelect, **values: str) -> list[ServiceType]:
    """A row for each definition, or one for a service type that has none."""
    rows: dict[str, list[Any]] = defaultdict(list)
    for row in conn.execute(query, values):
        rows[row.id].append(row)
    return [_from_row(of_one[0], _definitions(of_one)) for of_one in rows.values()]


def _definitions(rows: Iterable[Any]) -> Iterable[ServiceDefinition]:
    return (ServiceDefinition(row.service, row.plugin, row.driver) for row in rows if row.service is not None)


_WANTED: sa.BindParameter[str] = sa.bindparam("wanted")
_ALL = (
    sa.select(service_types, service_definitions.c.service, service_definitions.c.plugin, service_definitions.c.driver)
    .select_from(service_types.outerjoin(service_definitions, service_definitions.c.service_type_id == service_types.c.id))
    .order_by(service_types.c.name, service_definitions.c.service)
)
_DEFAULT = _ALL.where(service_types.c.default_slot == 1)
_BY_ID = _ALL.where(service_types.c.id == _WANTED)
_NAMED = _ALL.where(sa.or_(service_types.c.id == _WANTED, service_types.c.name == _WANTED))


def _from_row(row: Any, definitions: Iterable[ServiceDefinition]) -> ServiceType:
    return ServiceType(
        id=row.id,
        name=row.name,
        description=row.description,
        enabled=bool(row.enabled),
        default=row.default_slot == 1,
        definitions=tuple(definitions),
        options=row.options,
    )
