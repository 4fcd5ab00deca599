"""Placements: which device holds which resource, and the guarded claim that puts it there.

A claim is an UPDATE that carries its own condition, so that sums of concurrent claims commute and nobody over-commits; zero
rows mean that the device filled up or closed in between. It takes the device's hot row first, and with it the right to count what
else belongs to the device (vendors' own classes, networks per interface) without being overtaken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.db import candidate_sql, device_load, device_networks
from lbaas_scheduler.db.models import STANDARD_CLASSES, agents, device_agents, device_capacities, devices, placements
from lbaas_scheduler.db.models import device_load as load_table
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.capacity import UNLIMITED, VIPS, Amounts
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Candidate
from lbaas_scheduler.domain.requests import ScheduleRequest, Tenancy
from lbaas_scheduler.domain.trail import FIRST_EPOCH, Decision, Trail

CURRENT = "current"
"""The role of the placement that serves; a move adds one of role "target" beside it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """``trail`` is the decision's account as stored: a dict in the shape of :class:`~lbaas_scheduler.domain.trail.Trail`."""

    resource_id: str
    role: str
    service: str
    device_id: str
    tenant_id: str
    service_type_id: str
    amounts: Amounts
    networks: tuple[str, ...]
    score: float
    trail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Released:
    """``networks``: some of these, or all, are not wired to the device any more; () = all are as they were."""

    device_id: str
    networks: tuple[str, ...]


def claim(conn: Connection, request: ScheduleRequest, candidate: Candidate) -> str | None:
    """Take what ``request`` demands on the candidate's device, all or nothing.

    :returns: None = claimed; else the code of what stood in the way, and nothing was changed.
    """
    device_id = candidate.device.id
    if not _take(conn, device_id, request):
        return "claim.lost"
    own = _own_classes(request.demand)
    taken: dict[str, int] = {}
    for name, amount in own:
        if not _take_own(conn, device_id, name, amount):
            give_back(conn, device_id, {**_standard(request.demand), **taken}, ())
            return f"capacity.{name}"
        taken[name] = amount
    if request.networks and not device_networks.attach(conn, candidate.device, request.networks):
        give_back(conn, device_id, request.demand, ())
        return "network.vlans"
    return None


def insert(conn: Connection, request: ScheduleRequest, made: Decision, role: str = CURRENT) -> None:
    """Write down a claim that was made. A second one for the same resource and role violates the primary key."""
    values = {
        "resource_id": request.resource_id,
        "role": role,
        "service": request.service,
        "device_id": made.device_id,
        "tenant_id": request.tenant_id,
        "service_type_id": request.service_type_id,
        "amounts": dict(request.demand),
        "networks": list(request.networks),
        "score": made.score,
        "trail": made.trail.to_document(),
        "created_at": utcnow(),
    }
    conn.execute(_INSERT, values)


_INSERT = sa.insert(placements)


def release(conn: Connection, resource_id: str, role: str = CURRENT) -> bool:
    """Give back what a resource holds and forget its placement. May be called again, or without a claim.

    :returns: whether there was one.
    """
    return let_go(conn, resource_id, role) is not None


def let_go(conn: Connection, resource_id: str, role: str = CURRENT) -> Released | None:
    """As :func:`release`.

    :returns: what came of it; None = there was no placement.
    """
    placement = get(conn, resource_id, role)
    if placement is None:
        return None
    gone = conn.execute(sa.delete(placements).where(_key(resource_id, role)))
    if gone.rowcount == 0:  # somebody else released it since it was read
        return None
    freed = give_back(conn, placement.device_id, placement.amounts, placement.networks)
    return Released(placement.device_id, placement.networks if freed else ())


def give_back(conn: Connection, device_id: str, amounts: Amounts, networks: Collection[str]) -> bool:
    """Undo a claim on a device.

    :returns: whether one of the networks is not wired to it any more.
    """
    standard = _standard(amounts)
    if standard:
        _add(conn, device_id, {name: -amount for name, amount in standard.items()})
    for name, amount in _own_classes(amounts):
        conn.execute(_ADD_OWN, {"device": device_id, "name": name, "amount": -amount})
    return device_networks.detach(conn, device_id, networks)


def get(conn: Connection, resource_id: str, role: str = CURRENT) -> Placement | None:
    row = conn.execute(sa.select(placements).where(_key(resource_id, role))).one_or_none()
    return None if row is None else _placement(row)


def decision(conn: Connection, resource_id: str) -> Decision | None:
    """The decision behind a placement, as it was made; but for the agent, which is the one that drives the device now."""
    row = conn.execute(
        sa.select(placements, devices.c.name.label("device_name"), devices.c.device_type, agents.c.host)
        .join(devices, devices.c.id == placements.c.device_id)
        .outerjoin(device_agents, device_agents.c.device_id == placements.c.device_id)
        .outerjoin(agents, agents.c.id == device_agents.c.agent_id)
        .where(_key(resource_id, CURRENT))
    ).one_or_none()
    if row is None:
        return None
    return Decision(
        resource_id=resource_id,
        device_id=row.device_id,
        device_name=row.device_name,
        device_type=row.device_type,
        agent_host=row.host or "",
        score=row.score,
        epoch=FIRST_EPOCH,
        trail=Trail.from_document(row.trail),
    )


def current(conn: Connection, resource_ids: Iterable[str]) -> dict[str, Placement]:
    """Resource id → where it is."""
    wanted = placements.c.resource_id.in_(list(resource_ids))
    rows = conn.execute(sa.select(placements).where(wanted, placements.c.role == CURRENT))
    return {row.resource_id: _placement(row) for row in rows}


def count_on_device(conn: Connection, device_id: str) -> int:
    """How many resources hold something of a device."""
    count = sa.select(sa.func.count()).select_from(placements).where(placements.c.device_id == device_id)
    return conn.scalar(count) or 0


def adjust(conn: Connection, resource_id: str, amounts: Amounts, role: str = CURRENT) -> str | None:
    """Change what a placed resource holds on its device, all or nothing. The caller has locked the resource's deployment row.

    :returns: None = done; else the code of the resource class that has no room, and nothing was changed.
    """
    placement = get(conn, resource_id, role)
    if placement is None:
        return None
    changes = {name: amounts.get(name, 0) - placement.amounts.get(name, 0) for name in {*amounts, *placement.amounts}}
    grown: dict[str, int] = {}
    for name, amount in sorted(changes.items()):
        if amount <= 0:
            continue
        if not _grow(conn, placement.device_id, name, amount):
            give_back(conn, placement.device_id, grown, ())
            return f"capacity.{name}"
        grown[name] = amount
    give_back(conn, placement.device_id, {name: -amount for name, amount in changes.items() if amount < 0}, ())
    conn.execute(sa.update(placements).where(_key(resource_id, role)).values(amounts=dict(amounts)))
    return None


def _grow(conn: Connection, device_id: str, name: str, amount: int) -> bool:
    if name in STANDARD_CLASSES:
        return _add(conn, device_id, {name: amount}, guarded=True)
    return _take_own(conn, device_id, name, amount)


def _take(conn: Connection, device_id: str, request: ScheduleRequest) -> bool:
    """Take the standard classes; only of a device that is open for new resources, and to the tenant."""
    names, values = _amounts(_standard(request.demand))
    claim = claim_statement(names, request.tenancy is Tenancy.DEDICATED)
    return bool(conn.execute(claim, {"device": device_id, "tenant": request.tenant_id, **values}).rowcount)


@lru_cache(maxsize=64)
def claim_statement(names: tuple[str, ...], dedicated: bool = False) -> sa.Update:
    """The guarded UPDATE of a claim. ``names``: standard classes, ascending."""
    conditions = [
        *_conditions(names, guarded=True),
        load_table.c.open == device_load.constant(1),
        candidate_sql.open_to_tenant(dedicated),
    ]
    given: list[tuple[sa.Column[Any], Any]] = [(load_table.c.dedicated_to, sa.bindparam("tenant"))] if dedicated else []
    return sa.update(load_table).where(*conditions).ordered_values(*given, *_additions(names))


def _amounts(amounts: Amounts) -> tuple[tuple[str, ...], dict[str, int]]:
    """The names, ascending, and the values to bind for them."""
    names = tuple(sorted(amounts))
    return names, {f"amount_{number}": amounts[name] for number, name in enumerate(names)}


def _add(conn: Connection, device_id: str, amounts: Amounts, *, guarded: bool = False) -> bool:
    """Change the counters of standard classes, with what is derived from them; whether the row was there and had room."""
    names, values = _amounts(amounts)
    return bool(conn.execute(_addition(names, guarded), {"device": device_id, **values}).rowcount)


@lru_cache(maxsize=64)
def _addition(names: tuple[str, ...], guarded: bool) -> sa.Update:
    """Built once per set of classes: building it takes longer than running it."""
    vacating = [] if guarded else _vacating(names)
    return sa.update(load_table).where(*_conditions(names, guarded)).ordered_values(*vacating, *_additions(names))


def _conditions(names: tuple[str, ...], guarded: bool) -> list[sa.ColumnElement[bool]]:
    room = [candidate_sql.room_for(name, candidate_sql.amount_bind(number)) for number, name in enumerate(names)]
    return [load_table.c.device_id == sa.bindparam("device"), *(room if guarded else ())]


def _additions(names: tuple[str, ...]) -> list[tuple[sa.Column[Any], Any]]:
    after = {name: device_load.used(name) + candidate_sql.amount_bind(number) for number, name in enumerate(names)}
    return [*device_load.derived_values(used_after=after), *((device_load.used(name), value) for name, value in after.items())]


def _vacating(names: tuple[str, ...]) -> list[tuple[sa.Column[Any], Any]]:
    """The last VIP that leaves ends what one tenant had to itself."""
    if VIPS not in names:
        return []
    left = device_load.used(VIPS) + candidate_sql.amount_bind(names.index(VIPS))
    return [(load_table.c.dedicated_to, sa.case((left > 0, load_table.c.dedicated_to), else_=sa.literal_column("''")))]


def _take_own(conn: Connection, device_id: str, name: str, amount: int) -> bool:
    return bool(conn.execute(_TAKE_OWN, {"device": device_id, "name": name, "amount": amount}).rowcount)


_OWN = device_capacities.c
_AMOUNT = sa.bindparam("amount", type_=sa.BigInteger)
_ADD_OWN = (
    sa.update(device_capacities)
    .where(_OWN.device_id == sa.bindparam("device"), _OWN.resource_class == sa.bindparam("name"))
    .values(used=_OWN.used + _AMOUNT)
)
_TAKE_OWN = _ADD_OWN.where(sa.or_(_OWN.limit == UNLIMITED, _OWN.used + _AMOUNT <= _OWN.limit))


def _standard(amounts: Amounts) -> dict[str, int]:
    return {name: amounts[name] for name in STANDARD_CLASSES if name in amounts}


def _own_classes(amounts: Amounts) -> list[tuple[str, int]]:
    """Vendors' own classes, ascending: every transaction takes them in the same order."""
    return sorted((name, amount) for name, amount in amounts.items() if name not in STANDARD_CLASSES)


def _key(resource_id: str, role: str) -> sa.ColumnElement[bool]:
    return sa.and_(placements.c.resource_id == resource_id, placements.c.role == role)


def _placement(row: AnyRow) -> Placement:
    return Placement(
        resource_id=row.resource_id,
        role=row.role,
        service=row.service,
        device_id=row.device_id,
        tenant_id=row.tenant_id,
        service_type_id=row.service_type_id,
        amounts=row.amounts,
        networks=tuple(row.networks),
        score=row.score,
        trail=row.trail,
    )
