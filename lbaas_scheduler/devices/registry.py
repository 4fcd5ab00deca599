"""The registry of devices: enrol, change, remove, look up."""

from __future__ import annotations

import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler import errors
from lbaas_scheduler.db import (
    agents,
    deployments,
    device_agents,
    device_capacities,
    device_checks,
    device_load,
    devices,
    move_queue,
    placements,
    sched_classes,
    schedulable,
)
from lbaas_scheduler.db.devices import StoredDevice
from lbaas_scheduler.db.models import devices as columns
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices import attributes as described
from lbaas_scheduler.devices import schema
from lbaas_scheduler.devices.assignments import Assignments
from lbaas_scheduler.devices.attributes import DeviceType
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.agents import Agent
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus
from lbaas_scheduler.scheduler.gate import HandlerGate
from lbaas_scheduler.sdk.handlers import DeviceHandler

MAX_ATTEMPTS = 5
"""How often a change that named no generation is tried again after somebody else changed the device in between."""

Reserve = Callable[[sa.Connection, str, str], None]
Guard = Callable[[Device], None]
"""Raises where its caller may not do something to a device. Asked at the same moment at which that is done."""

FILTERS = frozenset(
    {"id", "name", "service", "device_type", "form", "tenant_id", "shared", "zone", "admin_state", "status", "agent_host"}
)


class Registry:
    """The fleet. Vendors' handlers are asked outside of transactions, bounded in time.

    :param handlers: (service, device type) → handler.
    :param handler_timeout_seconds: what one call of a handler may take.
    :param reserve: asked before a tenant's own device is stored, in its transaction; raises when the tenant has enough.
    """

    def __init__(
        self,
        database: Database,
        handlers: Mapping[tuple[str, str], DeviceHandler],
        vault: Vault,
        assignments: Assignments,
        handler_timeout_seconds: float = 1.0,
        reserve: Reserve | None = None,
    ) -> None:
        self._database = database
        self._handlers = handlers
        self._vault = vault
        self._assignments = assignments
        self._reserve = reserve
        by_service: dict[str, dict[str, DeviceHandler]] = defaultdict(dict)
        for (service, device_type), handler in handlers.items():
            by_service[service][device_type] = handler
        self._gates = {service: HandlerGate(mine, handler_timeout_seconds) for service, mine in by_service.items()}

    def enrol(self, attributes: Mapping[str, Any]) -> Device:
        """Register a device and give it an agent.

        :raises InvalidRequest: an attribute is wrong, by our rules or by the vendor's.
        :raises UnknownDeviceType: no handler is loaded for its type.
        :raises ConfigurationError: it has secrets, and there is no key to encrypt them with.
        """
        schema.check_new(attributes)
        kind = self._kind(attributes.get("service", described.DEFAULT_SERVICE), attributes["device_type"])
        device = described.new_device(str(uuid.uuid4()), attributes, kind)
        secret = self._vault.seal(device.management.secret)
        self._validate(device)
        self._database.write(lambda conn: self._insert(conn, device, secret))
        return _without_secret(device)

    def update(
        self, device_id: str, changes: Mapping[str, Any], generation: int | None = None, guard: Guard | None = None
    ) -> Device:
        """Change a device. What ``changes`` does not name stays; secrets that ``management`` does not name stay as well.

        A change of what drivers see (management, interfaces, extra) makes all that is on the device be applied anew. A device
        that is enabled is not evacuated any longer.

        :param generation: change only the state that has this generation.
        :raises StaleGeneration: the device has another generation by now.
        :raises Conflict: it is to be pinned to a host whose agent cannot take it over now.
        :raises InvalidRequest, UnknownDeviceType, ConfigurationError: as :meth:`enrol`.
        :raises DeviceNotFound: there is no such device.
        """
        schema.check_changes(changes)
        for _ in range(MAX_ATTEMPTS):
            before = self.stored(device_id)
            if guard is not None:
                guard(before.device)
            if generation is not None and before.device.generation != generation:
                break
            after, secret = self._changed(before, changes)
            if self._database.write(partial(self._update, before=before, device=after, secret=secret)):
                return replace(_without_secret(after), generation=after.generation + 1)
        raise errors.StaleGeneration(resource="Device", id=device_id)

    def remove(self, device_id: str, guard: Guard | None = None) -> None:
        """Remove a device that carries nothing, with all that is known of it.

        :raises DeviceInUse: names how many placements are left.
        :raises DeviceNotFound: there is no such device.
        """
        self._database.write(lambda conn: _remove(conn, device_id, guard))

    def set_status(self, device_id: str, status: DeviceStatus, description: str = "") -> bool:
        """Record what monitoring found, and open or close the device accordingly.

        :returns: whether it is news.
        """

        def work(conn: sa.Connection) -> bool:
            schedulable.lock(conn, [device_id])
            news = devices.set_status(conn, device_id, status, description[:255])
            device_checks.mark_offline(conn, device_id, status is DeviceStatus.OFFLINE)
            schedulable.refresh(conn, self._assignments.heard_since(), [device_id])
            return news

        return self._database.write(work)

    def get(self, device_id: str) -> Device:
        """A device, without its secrets.

        :raises DeviceNotFound: there is no such device.
        """
        return self.stored(device_id).device

    def list(
        self, filters: Mapping[str, Sequence[Any]] | None = None, marker: str | None = None, limit: int | None = None
    ) -> list[Device]:
        """Devices ordered by id.

        :param filters: attribute → accepted values, see :data:`FILTERS`.
        :raises InvalidRequest: an unknown filter.
        """
        return [stored.device for stored in self._page(filters, marker, limit)]

    def describe(self, device_id: str, guard: Guard | None = None) -> dict[str, Any]:
        """A device for people: its attributes without secrets, its usage and its agent.

        :raises DeviceNotFound: there is no such device.
        """
        stored = self.stored(device_id)
        if guard is not None:
            guard(stored.device)
        return self._describe([stored])[0]

    def describe_all(
        self,
        filters: Mapping[str, Sequence[Any]] | None = None,
        marker: str | None = None,
        limit: int | None = None,
        only: Callable[[Device], bool] | None = None,
    ) -> Sequence[dict[str, Any]]:
        """As :meth:`list`, for people.

        :param only: what no column says; read are all that fit ``filters``.
        """
        if only is None:
            return self._describe(self._page(filters, marker, limit))
        found = [stored for stored in self._page(filters, marker, None) if only(stored.device)]
        return self._describe(found[:limit])

    def agent_host(self, device_id: str) -> str | None:
        """Host of the agent that drives the device now; None = nobody does, or there is no such device."""
        binding = self._database.read(lambda conn: device_agents.by_devices(conn, [device_id]).get(device_id))
        return binding.host if binding else None

    def rotate_secrets(self) -> int:
        """Encrypt all secrets anew with the first key.

        :returns: how many devices have secrets.
        """
        sealed = self._database.read(devices.sealed_secrets)
        for device_id, token in sealed.items():
            anew = self._vault.rotate(token)
            # One that changed meanwhile was sealed with the first key by whoever changed it.
            self._database.write(partial(devices.set_secret, device_id=device_id, seen=token, secret=anew))
        return len(sealed)

    def stored(self, device_id: str) -> StoredDevice:
        """A device with its sealed secrets.

        :raises DeviceNotFound: there is no such device.
        """
        found = self._database.read(lambda conn: devices.get(conn, device_id))
        if found is None:
            raise errors.DeviceNotFound(id=device_id)
        return found

    def _kind(self, service: str, device_type: str) -> DeviceType:
        handler = self._handlers.get((service, device_type))
        if handler is None:
            known = sorted(name for of_service, name in self._handlers if of_service == service)
            raise errors.UnknownDeviceType(device_type=device_type, service=service, known=", ".join(known) or "none")
        return DeviceType(service, device_type, frozenset(handler.traits))

    def _changed(self, before: StoredDevice, changes: Mapping[str, Any]) -> tuple[Device, str]:
        """The device after the changes, and its sealed secrets."""
        device = before.device
        if changes.keys() <= described.OPERATIONAL:
            kind = DeviceType(device.service, device.device_type, device.traits)
            return described.changed_device(device, changes, kind), before.secret
        kind = self._kind(device.service, device.device_type)
        opened = replace(device, management=replace(device.management, secret=self._vault.open(before.secret)))
        after = described.changed_device(opened, changes, kind)
        self._validate(after)
        same = after.management.secret == opened.management.secret
        return after, before.secret if same else self._vault.seal(after.management.secret)

    def _validate(self, device: Device) -> None:
        """Let the vendor check the device. No text of the vendor's code carries a secret further.

        :raises InvalidRequest: the vendor refuses it.
        :raises DriverError: the handler is broken or slow.
        """
        self._gates[device.service].call(device.device_type, lambda handler: _ask(handler, device))

    def _insert(self, conn: sa.Connection, device: Device, secret: str) -> None:
        if devices.get(conn, device.id) is not None:
            return  # The answer to the COMMIT got lost, and this is the second try.
        if device.tenant_id is not None and self._reserve is not None:
            self._reserve(conn, device.tenant_id, "device")
        class_id = _class_of(conn, device)
        devices.insert(conn, device, secret, class_id)
        device_load.insert(conn, device.id, class_id, described.limits(device))
        device_capacities.insert(conn, device.id, device.capacities)
        self._assignments.assign(conn, [device.id])

    def _update(self, conn: sa.Connection, before: StoredDevice, device: Device, secret: str) -> bool:
        # In the order in which others take their locks: deployments, the hot row, all else.
        if secret != before.secret or _is_reached_otherwise(before.device, device):
            deployments.bump_device(conn, device.id, clock.utcnow())
        schedulable.lock(conn, [device.id])
        if device.agent_host not in (None, before.device.agent_host):
            self._assignments.require_able(conn, device.id, device.device_type, device.agent_host)
        class_id = _class_of(conn, device)
        if not devices.update(conn, device, secret, class_id):
            return False
        if device.admin_state is AdminState.ENABLED and before.device.admin_state is not AdminState.ENABLED:
            # Else what leaves it and what comes to it would go round and round.
            move_queue.end_evacuation(conn, device.id)
        device_load.reshape(conn, device.id, class_id, described.limits(device))
        device_capacities.replace(conn, device.id, device.capacities)
        self._assignments.assign(conn, [device.id])
        return True

    def _page(self, filters: Mapping[str, Sequence[Any]] | None, marker: str | None, limit: int | None) -> Sequence[StoredDevice]:
        wanted = dict(filters or {})
        unknown = sorted(wanted.keys() - FILTERS)
        if unknown:
            raise errors.InvalidRequest(f"Unknown filter {unknown[0][:64]!r}; known are {', '.join(sorted(FILTERS))}.")
        accepted = {name: [_as_column(name, value) for value in values] for name, values in wanted.items()}
        return self._database.read(lambda conn: devices.list_page(conn, accepted, marker, limit))

    def _describe(self, found: Sequence[StoredDevice]) -> Sequence[dict[str, Any]]:
        ids = [stored.device.id for stored in found]
        usage, drivers = self._database.read(lambda conn: (_usage(conn, ids), _drivers(conn, ids)))
        heard_since = self._assignments.heard_since()
        documents = []
        for stored in found:
            agent = drivers.get(stored.device.id)
            documents.append(
                {
                    **described.describe(stored.device, bool(stored.secret)),
                    "usage": usage.get(stored.device.id, {}),
                    "agent": agent and {"id": agent.id, "host": agent.host, "alive": agent.alive(heard_since)},
                    "created_at": stored.created_at.isoformat(),
                    "updated_at": stored.updated_at.isoformat(),
                }
            )
        return documents


def _ask(handler: DeviceHandler, device: Device) -> None:
    hidden = sorted(device.management.secret.values(), key=len, reverse=True)
    try:
        handler.validate_device(device)
    except errors.InvalidRequest as error:
        raise errors.InvalidRequest(_scrub(error.message, hidden)) from None
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        raise errors.DriverError(_scrub(f"The handler failed: {trace}", hidden)) from None


def _scrub(text: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        if secret:
            text = text.replace(secret, "***")
    return text


def _is_reached_otherwise(before: Device, after: Device) -> bool:
    """Whether what drivers see of a device has changed."""
    return (_without_secret(before).management, before.extra, before.interfaces) != (
        _without_secret(after).management,
        after.extra,
        after.interfaces,
    )


def _without_secret(device: Device) -> Device:
    return replace(device, management=replace(device.management, secret={}))


def _class_of(conn: sa.Connection, device: Device) -> int:
    return sched_classes.find_or_create(
        conn,
        service=device.service,
        device_type=device.device_type,
        zone=device.zone,
        form=device.form,
        tenant_id=device.tenant_id,
        shared=device.shared,
        traits=device.traits,
    )


def _remove(conn: sa.Connection, device_id: str, guard: Guard | None) -> None:
    # First, so that a claim that is under way is either seen by the count or comes too late.
    if not device_load.close(conn, device_id):
        raise errors.DeviceNotFound(id=device_id)
    if guard is not None and (found := devices.get(conn, device_id)) is not None:
        guard(found.device)
    left = max(placements.count_on_device(conn, device_id), deployments.count_on_device(conn, device_id))
    if left:
        raise errors.DeviceInUse(id=device_id, count=left)
    # Everything else of the device goes with it: its rows refer to it with ON DELETE CASCADE.
    devices.delete(conn, device_id)


def _usage(conn: sa.Connection, device_ids: Collection[str]) -> dict[str, dict[str, dict[str, int]]]:
    standard, own = device_load.usage(conn, device_ids), device_capacities.usage(conn, device_ids)
    return {
        device_id: {
            name: {"used": it.used, "limit": it.limit} for name, it in sorted({**classes, **own.get(device_id, {})}.items())
        }
        for device_id, classes in standard.items()
    }


def _drivers(conn: sa.Connection, device_ids: Collection[str]) -> dict[str, Agent]:
    known = {agent.id: agent for agent in agents.list_all(conn)}
    return {device_id: known[it.agent_id] for device_id, it in device_agents.by_devices(conn, device_ids).items()}


def _as_column(name: str, value: Any) -> Any:
    """Filters may come from a query string, where everything is text."""
    if isinstance(columns.c[name].type, sa.Boolean) and isinstance(value, str):
        if value.lower() not in ("true", "false", "1", "0"):
            raise errors.InvalidRequest(f"Filter {name} must be true or false.")
        return value.lower() in ("true", "1")
    return value
