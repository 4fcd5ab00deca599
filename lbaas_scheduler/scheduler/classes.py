"""Device classes: what devices are filtered by, resolved in memory.

A fleet of thousands of devices has some tens of distinct combinations of service, type, zone, form, tenancy and traits.
Whether a request may use a device depends on its class alone, so the decision is made once per class, and SQL is
left with an index look-up by class id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lbaas_scheduler.domain.fleet import DeviceClass, Resolution
from lbaas_scheduler.domain.requests import ScheduleRequest, Tenancy


def resolve(classes: Sequence[DeviceClass], request: ScheduleRequest) -> Resolution:
    """Which classes may take the request, in tiers by tenancy; and why the others may not."""
    own, shared = set(), set()
    dropped: dict[int, tuple[str, str]] = {}
    for cls in classes:
        if cls.service != request.service:
            continue
        objection = next(_objections(cls, request), None)
        if objection is not None:
            dropped[cls.id] = objection
        elif cls.tenant_id == request.tenant_id:
            own.add(cls.id)
        else:
            shared.add(cls.id)
    tiers = (own, shared) if request.tenancy is Tenancy.PRIVATE_FIRST else (own | shared,)
    version = max((cls.id for cls in classes), default=0)
    return Resolution(tuple(frozenset(tier) for tier in tiers if tier), dropped, version)


def _objections(cls: DeviceClass, request: ScheduleRequest) -> Iterator[tuple[str, str]]:
    if request.device_types and cls.device_type not in request.device_types:
        yield "device_type", f"is of type {cls.device_type}; wanted: {', '.join(sorted(request.device_types))}"
    if not _tenancy_allows(cls, request):
        yield "tenancy", f"is not open to the tenant under policy {request.tenancy}"
    if request.zone is not None and cls.zone != request.zone:
        yield "zone", f"is in zone '{cls.zone}'; wanted: '{request.zone}'"
    if request.form is not None and cls.form != request.form:
        yield "form", f"is {cls.form}; wanted: {request.form}"
    missing = request.required - cls.traits
    if missing:
        yield f"trait.{min(missing)}", f"cannot do {', '.join(sorted(missing))}"
    unwanted = request.forbidden & cls.traits
    if unwanted:
        yield f"trait.{min(unwanted)}", f"has the forbidden {', '.join(sorted(unwanted))}"


def _tenancy_allows(cls: DeviceClass, request: ScheduleRequest) -> bool:
    own = cls.tenant_id == request.tenant_id
    if request.tenancy is Tenancy.PRIVATE_ONLY:
        return own
    if request.tenancy is Tenancy.SHARED_ONLY:
        return cls.shared
    return own or cls.shared
