"""Placement rules: written by administrators, tried in order, the first that matches shapes a request."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import placement_rules as store
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.merging import merged
from lbaas_scheduler.domain.placement_rules import Match, PlacementRule
from lbaas_scheduler.errors import Conflict, InvalidRequest, PlacementRuleNotFound
from lbaas_scheduler.plugins.device_scheduler import placement_rule_schema as schema
from lbaas_scheduler.plugins.device_scheduler import wishes

T = TypeVar("T")

Document = dict[str, Any]

FILTERS = ("id", "name", "service", "enabled")
_OBJECTS = ("match", "wishes")


class PlacementRules:
    """All rules.

    :param services: names of the services that are loaded.
    :param algorithms: service → names of the algorithms that are loaded for it.
    """

    def __init__(self, database: Database, services: Collection[str], algorithms: Mapping[str, Collection[str]]) -> None:
        self._database = database
        self._services = services
        self._algorithms = algorithms

    def create(self, attributes: Mapping[str, Any]) -> Document:
        """Without a ``position`` the rule comes last. ``service`` may be left out where only one is loaded.

        :raises InvalidRequest: an attribute is wrong; says what would be right.
        :raises Conflict: the name is taken.
        """
        schema.check_new(attributes, self._services)
        rule_id = str(uuid.uuid4())
        objects = {name: merged({}, attributes.get(name)) for name in _OBJECTS}
        values = {"description": "", "enabled": True, **attributes, **objects, "id": rule_id}
        values.setdefault("service", next(iter(self._services)))
        schema.check_whole(values["match"], values["wishes"], self._algorithms.get(values["service"], ()))

        def work(conn: Connection) -> Document:
            position = values.get("position")
            if position is None:
                position = min(store.next_position(conn), schema.MAX_POSITION)
            store.insert(conn, {**values, "position": position})
            return _found(conn, rule_id)

        return self._save(work, attributes["name"])

    def update(self, rule_id: str, changes: Mapping[str, Any]) -> Document:
        """What ``changes`` does not name stays, down to the keys of ``match`` and ``wishes``.

        :raises PlacementRuleNotFound: there is no such one. As :meth:`create` besides."""
        schema.check_changes(changes)

        def work(conn: Connection) -> Document:
            store.hold(conn, rule_id)  # what this change does not name is written as it is read here
            before = _found(conn, rule_id)
            objects = {name: merged(before[name], changes[name]) for name in _OBJECTS if name in changes}
            after = {**before, **changes, **objects}
            schema.check_whole(after["match"], after["wishes"], self._algorithms.get(before["service"], ()))
            store.update(conn, rule_id, {**changes, **objects})
            return _found(conn, rule_id)

        return self._save(work, changes.get("name"))

    def delete(self, rule_id: str) -> None:
        """:raises PlacementRuleNotFound: there is no such one."""
        if not self._database.write(lambda conn: store.delete(conn, rule_id)):
            raise PlacementRuleNotFound(id=rule_id)

    def get(self, rule_id: str) -> Document:
        """:raises PlacementRuleNotFound: there is no such one."""
        return self._database.read(lambda conn: _found(conn, rule_id))

    def list(self, filters: Mapping[str, Sequence[Any]] | None = None) -> list[Document]:
        """In the order in which they are tried. ``filters``: id, name, service or enabled → accepted values."""
        for name in filters or {}:
            if name not in FILTERS:
                raise InvalidRequest(f"Unknown filter {name[:64]!r}; known are {', '.join(FILTERS)}.")
        documents = [_document(row) for row in self._database.read(store.rows)]
        return [it for it in documents if all(_accepts(it[name], values) for name, values in (filters or {}).items())]

    def of_service(self, conn: Connection, service: str) -> Sequence[PlacementRule]:
        """The enabled rules of a service in the order in which they are tried."""
        return [_rule(row) for row in store.of_service(conn, service)]

    def _save(self, work: Callable[[Connection], T], name: str | None) -> T:
        try:
            return self._database.write(work)
        except DBDuplicateEntry:
            raise Conflict(reason=f"there is a placement rule named '{name}' already") from None


def _accepts(value: Any, accepted: Any) -> bool:
    given = accepted if isinstance(accepted, list | tuple | set | frozenset) else [accepted]
    return str(value).lower() in {str(it).lower() for it in given}


def _found(conn: Connection, rule_id: str) -> Document:
    row = store.find(conn, rule_id) if isinstance(rule_id, str) else None
    if row is None:
        raise PlacementRuleNotFound(id=rule_id)
    return _document(row)


def _document(row: AnyRow) -> Document:
    names = ("id", "name", "service", "position", "description", "match", "wishes")
    return {**{name: getattr(row, name) for name in names}, "enabled": bool(row.enabled)}


def _rule(row: AnyRow) -> PlacementRule:
    conditions = {key: frozenset(schema.values(row.match, name)) for key, name in _CONDITIONS.items()}
    return PlacementRule(
        id=row.id,
        name=row.name,
        service=row.service,
        position=row.position,
        description=row.description,
        enabled=bool(row.enabled),
        match=Match(ports=schema.ports(row.match), names=tuple(schema.values(row.match, "name")), **conditions),
        wishes=wishes.read(row.wishes),
    )


_CONDITIONS = {"tenants": "tenant_id", "networks": "network_id", "subnets": "subnet_id", "protocols": "protocol"}
