"""Devices for whoever calls: administrators all of them, tenants their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oslo_context.context import RequestContext

from lbaas_scheduler.devices.registry import Guard, Registry
from lbaas_scheduler.devices.tenants import TenantDevices, seen
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.plugins.casts import Casts

Document = dict[str, Any]
Filters = Mapping[str, Sequence[Any]]

_REACHES_THE_DEVICE = frozenset({"management", "extra", "interfaces", "agent_host"})
"""Changes of a device that its agent must know of."""


class Devices:
    """Every method raises what the registry's method of the same kind raises, and DeviceNotFound of what is not the caller's."""

    def __init__(self, registry: Registry, caster: Casts, tenants: TenantDevices) -> None:
        self._registry = registry
        self._caster = caster
        self._tenants = tenants

    def create(self, context: RequestContext, attributes: Mapping[str, Any]) -> Document:
        accepted = attributes if context.is_admin else self._tenants.accept(context.project_id, attributes)
        return _shown(context, self._registry.describe(self._registry.enrol(accepted).id))

    def get(self, context: RequestContext, device_id: str) -> Document:
        return _shown(context, self._registry.describe(device_id, self._guard(context)))

    def list(self, context: RequestContext, filters: Filters | None, marker: str | None, limit: int | None) -> list[Document]:
        if context.is_admin:
            return list(self._registry.describe_all(filters, marker, limit))
        mine = context.project_id
        wanted = dict(filters or {})
        if not mine or mine not in wanted.get("tenant_id", [mine]):
            wanted["tenant_id"] = []  # what is asked is judged all the same
        else:
            wanted["tenant_id"] = [mine]
        found = self._registry.describe_all(wanted, marker, limit, lambda device: self._tenants.owns(mine, device))
        return [seen(it) for it in found]

    def update(self, context: RequestContext, device_id: str, device: Mapping[str, Any]) -> Document:
        changes = dict(device) if isinstance(device, Mapping) else device
        generation = changes.pop("generation", None) if isinstance(changes, dict) else None
        if generation is not None and (isinstance(generation, bool) or not isinstance(generation, int)):
            raise InvalidRequest("generation must be an integer, as the device was read with.")
        guard = self._guard(context)
        if guard is not None:
            guard(self._registry.get(device_id))  # first: of a foreign one nothing is said at all
            self._tenants.check_changes(changes)
        before = self._registry.agent_host(device_id)
        self._registry.update(device_id, changes, generation, guard)
        if _REACHES_THE_DEVICE & changes.keys():
            self._caster.tell_of(device_id, before, self._registry.agent_host(device_id))
        return _shown(context, self._registry.describe(device_id, guard))

    def delete(self, context: RequestContext, device_id: str) -> None:
        before = self._registry.agent_host(device_id)
        self._registry.remove(device_id, self._guard(context))
        self._caster.tell_of(device_id, before)

    def _guard(self, context: RequestContext) -> Guard | None:
        """None for administrators, who may do anything."""
        if context.is_admin:
            return None
        return lambda device: self._tenants.check_owner(context.project_id, device)


def _shown(context: RequestContext, document: Document) -> Document:
    return document if context.is_admin else seen(document)
