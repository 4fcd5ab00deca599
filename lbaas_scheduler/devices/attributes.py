"""From attributes, as an administrator writes them, to a device, and back to what may be shown of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from lbaas_scheduler.allocator.kinds import ranges, vlan
from lbaas_scheduler.db.models import STANDARD_CLASSES
from lbaas_scheduler.devices.schema import SECRET_KEY
from lbaas_scheduler.domain import capacity as capacities
from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.capacity import UNLIMITED, Capacity
from lbaas_scheduler.domain.devices import FLAT, Device, Interface, Management
from lbaas_scheduler.domain.merging import merged
from lbaas_scheduler.domain.statuses import AdminState, Form
from lbaas_scheduler.errors import InvalidRequest

DEFAULT_SERVICE = "LoadBalancer"

OPERATIONAL = frozenset({"name", "description", "admin_state"})
"""Changes that are no vendor's business. They go through even when the device's handler or encryption key is lost: a device can
always be taken out of service."""


@dataclass(frozen=True, slots=True)
class DeviceType:
    """What the registry must know of a vendor's handler."""

    service: str
    name: str
    traits: frozenset[str]


def new_device(device_id: str, attributes: Mapping[str, Any], kind: DeviceType) -> Device:
    """The device that checked attributes describe, its secrets in ``management.secret``.

    :raises InvalidRequest: attributes contradict each other.
    """
    tenant_id = attributes.get("tenant_id")
    blank = Device(
        id=device_id,
        name="",
        service=kind.service,
        device_type=kind.name,
        tenant_id=tenant_id,
        shared=tenant_id is None,
        traits=kind.traits,
        capacities={capacities.VIPS: Capacity(UNLIMITED)},
    )
    return changed_device(blank, attributes, kind)


def changed_device(device: Device, changes: Mapping[str, Any], kind: DeviceType) -> Device:
    """``device``, which has its secrets in ``management.secret``, after checked changes.

    Of ``management``, ``capacity`` and ``extra`` the keys that are not named stay, and null removes one; ``capabilities`` and
    ``interfaces`` are lists, and replaced.

    :raises InvalidRequest: the outcome would contradict itself.
    """
    values: dict[str, Any] = {
        key: changes[key] for key in ("name", "description", "zone", "shared", "agent_host") if key in changes
    }
    if "form" in changes:
        values["form"] = Form(changes["form"])
    if "admin_state" in changes:
        values["admin_state"] = AdminState(changes["admin_state"])
    if "management" in changes:
        values["management"] = _management(changes["management"], device.management)
    if "capabilities" in changes:
        values["traits"] = _traits(changes["capabilities"], kind)
    if "capacity" in changes:
        values["capacities"] = _capacities(changes["capacity"], device.capacities)
    if "interfaces" in changes:
        values["interfaces"] = _interfaces(changes["interfaces"])
    if "extra" in changes:
        values["extra"] = _extra(merged(device.extra, changes["extra"]))
    changed = replace(device, **values)
    if not changed.shared and changed.tenant_id is None:
        raise InvalidRequest("A device that is not shared belongs to a tenant: give its tenant_id, or set shared to true.")
    return changed


def limits(device: Device) -> dict[str, int]:
    """Standard resource class → limit."""
    return {name: it.limit for name, it in device.capacities.items() if name in STANDARD_CLASSES}


def describe(device: Device, secret_set: bool) -> dict[str, Any]:
    """A device for people. Secrets are not in it; ``management.secret_set`` says whether there are any."""
    management = device.management
    return {
        "id": device.id,
        "name": device.name,
        "description": device.description,
        "service": device.service,
        "device_type": device.device_type,
        "form": device.form.value,
        "tenant_id": device.tenant_id,
        "shared": device.shared,
        "zone": device.zone,
        "admin_state": device.admin_state.value,
        "status": device.status.value,
        "status_description": device.status_description,
        "management": {
            **management.parameters,
            "address": management.address,
            "port": management.port,
            "user": management.user,
            "secret_set": secret_set,
        },
        "capabilities": sorted(device.traits),
        "capacity": {name: asdict(it) for name, it in sorted(device.capacities.items())},
        "interfaces": [asdict(interface) for interface in device.interfaces],
        "agent_host": device.agent_host,
        "extra": dict(device.extra),
        "generation": device.generation,
    }


def _management(given: Mapping[str, Any] | None, before: Management) -> Management:
    if given is not None and "secret_set" in given:
        raise InvalidRequest("management.secret_set is read-only; leave it out.")
    fields = {"address": before.address, "port": before.port, "user": before.user}
    after = merged({**before.parameters, **before.secret, **fields}, given)
    port = after.get("port")
    return Management(
        address=after.get("address", ""),
        port=None if port is None else int(port),
        user=after.get("user", ""),
        parameters={key: value for key, value in after.items() if key not in fields and not SECRET_KEY.fullmatch(key)},
        secret={key: value for key, value in after.items() if SECRET_KEY.fullmatch(key)},
    )


def _traits(given: Collection[str] | None, kind: DeviceType) -> frozenset[str]:
    if given is None:
        return kind.traits
    for name in sorted(set(given) - kind.traits):
        if name in traits.STANDARD or not traits.is_trait(name):
            raise InvalidRequest(
                f"capabilities: device type '{kind.name}' does not have {name[:64]!r}; it has "
                f"{', '.join(sorted(kind.traits))}; names of your own start with CUSTOM_."
            )
    return frozenset(given)


def _capacities(given: Mapping[str, Any], before: Mapping[str, Capacity]) -> dict[str, Capacity]:
    made = {capacities.VIPS: Capacity(UNLIMITED), **{name: it for name, it in before.items() if name not in given}}
    for name, value in given.items():
        if name not in STANDARD_CLASSES and not name.startswith("CUSTOM_"):
            raise InvalidRequest(
                f"capacity: unknown resource class {name!r}; known are {', '.join(STANDARD_CLASSES)}; "
                "names of your own start with CUSTOM_."
            )
        if value is not None:
            made[name] = _capacity(name, value if isinstance(value, Mapping) else {"total": value})
    return made


def _capacity(name: str, given: Mapping[str, Any]) -> Capacity:
    total, reserved = int(given["total"]), int(given.get("reserved", 0))
    if total == UNLIMITED and reserved:
        raise InvalidRequest(f"capacity.{name}: nothing can be reserved of an unlimited total.")
    if total != UNLIMITED and reserved > total:
        raise InvalidRequest(f"capacity.{name}.reserved must not be more than the total.")
    return Capacity(total, reserved, float(given.get("allocation_ratio", 1.0)))


def _interfaces(given: Collection[Mapping[str, Any]]) -> tuple[Interface, ...]:
    made = tuple(_interface(it) for it in given)
    if len({interface.name for interface in made}) < len(made):
        raise InvalidRequest("interfaces: every interface must have a name of its own.")
    return made


def _interface(given: Mapping[str, Any]) -> Interface:
    name, kind, vlans = given["name"], given.get("kind", FLAT), given.get("vlans", "")
    most = int(given.get("max_vlans", UNLIMITED))
    if kind == FLAT:
        if vlans:
            raise InvalidRequest(f"interfaces: {name[:64]} is flat and has no use for vlans; give it the kind vlan or vxlan.")
    else:
        ids = ranges.parse("vlan", "vlans", vlans or f"{vlan.FIRST}-{vlan.LAST}", vlan.FIRST, vlan.LAST).size
        if most > ids:
            raise InvalidRequest(f"interfaces: {name[:64]} has {ids} vlans, which is less than its max_vlans {most}.")
        # What runs out first is found out before a device is chosen.
        most = ids if most == UNLIMITED else most
    return Interface(name, most, given.get("physical_network", ""), kind, vlans)


def _extra(given: Any, path: str = "extra") -> Any:
    """Secrets have one place, where they are encrypted; one put elsewhere by mistake would be stored and shown in clear."""
    if isinstance(given, Mapping):
        for key, value in given.items():
            if SECRET_KEY.fullmatch(key):
                raise InvalidRequest(f"{path}.{key} looks like a secret, and extra is not encrypted; put it into management.")
            _extra(value, f"{path}.{key}")
    elif isinstance(given, list):
        for value in given:
            _extra(value, path)
    return given
