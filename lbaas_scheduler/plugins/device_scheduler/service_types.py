"""Service types: what tenants name instead of devices, and what an administrator means by each name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa
from oslo_db.exception import DBDuplicateEntry, DBReferenceError

from lbaas_scheduler.db import deployments
from lbaas_scheduler.db import service_types as store
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.merging import merged
from lbaas_scheduler.domain.service_types import ServiceDefinition, ServiceType, ServiceTypeChoice
from lbaas_scheduler.errors import (
    Conflict,
    InvalidRequest,
    ServiceProviderNotFound,
    ServiceTypeInUse,
    ServiceTypeNotFound,
    UnknownDeviceType,
)
from lbaas_scheduler.plugins.device_scheduler import service_type_schema as schema
from lbaas_scheduler.plugins.device_scheduler import wishes

MAX_ATTEMPTS = 5


class ServiceTypes:
    """All service types. Exactly one is the default, from the first start on.

    :param device_types: service → the device types that handlers are loaded for.
    :param plugins: service → name of the plugin that serves it.
    :param algorithms: service → names of the algorithms that are loaded for it.
    """

    def __init__(
        self,
        database: Database,
        device_types: Mapping[str, Collection[str]],
        plugins: Mapping[str, str],
        algorithms: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._database = database
        self._device_types = device_types
        self._plugins = plugins
        self._algorithms = algorithms or {}

    def ensure_default(self, name: str) -> ServiceType:
        """At start: make sure that there is a default. One that an administrator chose stays, whatever its name.

        Any number of servers may start at once.
        """
        for _ in range(MAX_ATTEMPTS):
            try:
                return self._database.write(lambda conn: self._ensure_default(conn, name))
            except DBDuplicateEntry:
                continue  # Another server has just created it.
        raise Conflict(reason="the default service type changes too often")

    def create(self, attributes: Mapping[str, Any]) -> ServiceType:
        """:raises InvalidRequest: an attribute is wrong.
        :raises UnknownDeviceType: a definition names a device type that no handler is loaded for.
        :raises Conflict: the name is taken.
        """
        schema.check_new(attributes)
        service_type = self._changed(ServiceType(id=str(uuid.uuid4()), name=attributes["name"]), attributes)

        def work(conn: sa.Connection) -> ServiceType:
            store.take_turn(conn)
            if service_type.default:
                store.clear_default(conn)
            store.insert(conn, service_type)
            return service_type

        return self._save(work, service_type.name, service_type.id)

    def update(self, service_type_id: str, changes: Mapping[str, Any]) -> ServiceType:
        """Change what ``changes`` names, down to the keys of ``options``. ``default`` true takes the default from who had it.

        Where another ``forwarded_for`` is asked for, all VIPs of the service type are due to be applied anew.

        :raises ServiceTypeNotFound: there is no such one. As :meth:`create` besides.
        """
        schema.check_changes(changes)

        def work(conn: sa.Connection) -> ServiceType:
            store.take_turn(conn)  # what this change does not name is written as it is read here
            before = store.get(conn, service_type_id)
            if before is None:
                raise ServiceTypeNotFound(id=service_type_id)
            after = self._changed(before, changes)
            if before.default and not after.default:
                raise InvalidRequest("There must be a default service type: make another one the default instead.")
            if after.default and not before.default:
                store.clear_default(conn)
            if before.options.get(schema.FORWARDED_FOR) != after.options.get(schema.FORWARDED_FOR):
                deployments.bump_service_type(conn, service_type_id, clock.utcnow())
            store.update(conn, after)
            return after

        return self._save(work, changes.get("name"), service_type_id)

    def delete(self, service_type_id: str) -> None:
        """:raises ServiceTypeInUse: something refers to it.
        :raises Conflict: it is the default.
        :raises ServiceTypeNotFound: there is no such one.
        """
        for _ in range(MAX_ATTEMPTS):
            try:
                return self._database.write(lambda conn: _delete(conn, service_type_id))
            except DBReferenceError:
                continue  # A VIP of it was being created: it is counted now.
        raise Conflict(reason=f"service type {service_type_id} is used and left too often to be deleted")

    def get(self, service_type_id: str) -> ServiceType:
        """:raises ServiceTypeNotFound: there is no such one."""
        found = self._database.read(lambda conn: store.get(conn, service_type_id))
        if found is None:
            raise ServiceTypeNotFound(id=service_type_id)
        return found

    def list(self, filters: Mapping[str, Sequence[Any]] | None = None) -> list[ServiceType]:
        """By name. ``filters``: id, name, description, enabled or default → accepted values."""
        found = self._database.read(store.list_all)
        return [it for it in found if all(_matches(it, name, values) for name, values in (filters or {}).items())]

    def resolve(self, conn: sa.Connection, name_or_id: str | None) -> ServiceType:
        """The service type that a resource names; None = the default.

        :raises ServiceProviderNotFound: it is unknown or disabled.
        """
        found = store.find(conn, name_or_id)
        if found is None or not found.enabled:
            shown = name_or_id if name_or_id is not None else (found.name if found else "default")
            raise ServiceProviderNotFound(service_type=shown)
        return found

    def choose(self, conn: sa.Connection, name_or_id: str | None, service: str) -> ServiceTypeChoice:
        """What the service type that a resource names means for its service.

        A service type without any definition leaves everything open, for every service.

        :raises ServiceProviderNotFound: it is unknown, disabled, or has definitions and none for the service.
        """
        service_type = self.resolve(conn, name_or_id)
        if service_type.definition_for(service) is None and service_type.definitions:
            raise ServiceProviderNotFound(
                f"Service type '{service_type.name}' has no definition for service {service}.", service_type=service_type.name
            )
        return _choice(service_type, service)

    def chosen(self, conn: sa.Connection, service_type_id: str, service: str) -> ServiceTypeChoice:
        """What the service type that a resource was placed by means now, even if it is not offered any more."""
        found = store.get(conn, service_type_id)
        return ServiceTypeChoice(service_type_id, "") if found is None else _choice(found, service)

    def _ensure_default(self, conn: sa.Connection, name: str) -> ServiceType:
        store.take_turn(conn)
        present = store.find(conn, None)
        if present is not None:
            return present
        named = next((it for it in store.list_all(conn) if it.name == name), None)
        if named is not None:
            made = replace(named, default=True)
            store.update(conn, made)
        else:
            made = ServiceType(id=str(uuid.uuid4()), name=name, description="Created at the first start", default=True)
            store.insert(conn, made)
        return made

    def _changed(self, service_type: ServiceType, changes: Mapping[str, Any]) -> ServiceType:
        values = {key: changes[key] for key in ("name", "description", "enabled", "default") if key in changes}
        if "service_definitions" in changes:
            values["definitions"] = self._definitions(changes["service_definitions"])
        if "options" in changes:
            values["options"] = merged(service_type.options, changes["options"])
            wishes.check("options", values["options"], set().union(*self._algorithms.values()))
        return replace(service_type, **values)

    def _definitions(self, given: Sequence[Mapping[str, Any]] | None) -> tuple[ServiceDefinition, ...]:
        made = tuple(self._definition(it) for it in given or ())
        services = [definition.service for definition in made]
        for service in services:
            if services.count(service) > 1:
                raise InvalidRequest(f"service_definitions: there may be one definition per service; {service} has several.")
        return made

    def _definition(self, given: Mapping[str, Any]) -> ServiceDefinition:
        service, driver = given["service"], given.get("driver")
        if service not in self._plugins:
            known = ", ".join(sorted(self._plugins)) or "none"
            raise InvalidRequest(f"service_definitions: unknown service {service!r}; loaded: {known}.")
        plugin = given.get("plugin") or self._plugins[service]
        if plugin != self._plugins[service]:
            raise InvalidRequest(f"service_definitions: service {service} is served by plugin '{self._plugins[service]}'.")
        known_types = sorted(self._device_types.get(service, ()))
        if driver is not None and driver not in known_types:
            raise UnknownDeviceType(device_type=driver, service=service, known=", ".join(known_types) or "none")
        return ServiceDefinition(service, plugin, driver)

    def _save(self, work: Callable[[sa.Connection], ServiceType], name: str | None, service_type_id: str) -> ServiceType:
        """Write. Two that are made the default at once become it one after the other."""
        for _ in range(MAX_ATTEMPTS):
            try:
                return self._database.write(work)
            except DBDuplicateEntry:
                if name is not None and self._is_taken(name, service_type_id):
                    raise Conflict(reason=f"there is a service type named '{name}' already") from None
        raise Conflict(reason="the default service type changes too often")

    def _is_taken(self, name: str, service_type_id: str) -> bool:
        return any(it.name == name and it.id != service_type_id for it in self._database.read(store.list_all))


def describe(service_type: ServiceType) -> dict[str, Any]:
    """A service type for people."""
    return {
        "id": service_type.id,
        "name": service_type.name,
        "description": service_type.description,
        "enabled": service_type.enabled,
        "default": service_type.default,
        "service_definitions": [asdict(definition) for definition in service_type.definitions],
        "options": dict(service_type.options),
    }


def _delete(conn: sa.Connection, service_type_id: str) -> None:
    store.take_turn(conn)  # else it may become the default meanwhile
    found = store.get(conn, service_type_id)
    if found is None:
        raise ServiceTypeNotFound(id=service_type_id)
    if found.default:
        raise Conflict(reason=f"service type {service_type_id} is the default; make another one the default first")
    users = store.users(conn, service_type_id)
    if users:
        named = " and ".join(f"{count} {noun}(s)" for noun, count in users.items())
        raise ServiceTypeInUse(f"Service type {service_type_id} is still in use by {named}.", id=service_type_id, **users)
    store.delete(conn, service_type_id)


def _choice(service_type: ServiceType, service: str) -> ServiceTypeChoice:
    definition = service_type.definition_for(service)
    types = frozenset({definition.driver}) if definition and definition.driver else frozenset()
    wanted = {name: value for name, value in service_type.options.items() if name not in (schema.EVACUATE, schema.FORWARDED_FOR)}
    return ServiceTypeChoice(service_type.id, service_type.name, types, wishes.read(wanted))


def _matches(service_type: ServiceType, name: str, values: Sequence[Any]) -> bool:
    document = describe(service_type)
    if name not in ("id", "name", "description", "enabled", "default"):
        raise InvalidRequest(f"Unknown filter {name[:64]!r}; known are id, name, description, enabled, default.")
    return str(document[name]).lower() in {str(value).lower() for value in values}
