"""The statements that read the fleet for the scheduler.

Building a statement of this size in SQLAlchemy takes longer than any database needs to run it. So each *shape* of a
statement is built once, and a page only binds values to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from lbaas_scheduler.db import device_load as device_loads
from lbaas_scheduler.db.device_load import constant
from lbaas_scheduler.db.models import (
    STANDARD_CLASSES,
    agents,
    device_agents,
    device_capacities,
    device_load,
    device_networks,
    devices,
    placements,
    sched_classes,
)
from lbaas_scheduler.db.rows import AnyRow, AnySelect
from lbaas_scheduler.domain.capacity import UNLIMITED
from lbaas_scheduler.domain.fleet import PageQuery, Source
from lbaas_scheduler.domain.requests import ScheduleRequest, Tenancy
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus

Load = device_load.c

Statement = tuple[AnySelect, dict[str, Any]]
"""A statement that is kept, and the values for this once."""

MAX_SHAPES = 256

PIVOT_STEPS = 1_000_000

VERSION = sa.select(sa.func.coalesce(sa.func.max(sched_classes.c.id), constant(0))).scalar_subquery().label("version")
"""Of the device classes: so that reading a page tells whether the classes it was read for are still all there are."""


HEARD_SINCE = sa.bindparam("heard_since", type_=agents.c.heartbeat_at.type)

_COUNTERS = tuple(f"{name.lower()}_{suffix}" for name in STANDARD_CLASSES for suffix in ("used", "max"))
_LOAD_COLUMNS = ("seq", "device_id", "rank", *_COUNTERS)
"""What a page reads of ``device_load``."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a page's statement looks like, apart from values. ``demand``: names of resource classes, ascending.

    The size is part of it, since PostgreSQL plans for a LIMIT that it cannot see as if it were a tenth of the table.
    """

    source: Source
    size: int
    classes: int
    demand: tuple[str, ...]
    networks: int
    seen: bool
    hinted: bool
    dedicated: bool


def page(query: PageQuery, heard_since: datetime) -> Statement:
    """One page of schedulable devices with room for the demand, with their agents. Order it with :func:`in_order`.

    :param heard_since: ``agent_silent`` is true of agents whose last report is older.
    """
    request = query.request
    demand = sorted(request.demand.items())
    shape = Shape(
        source=query.source,
        size=query.size,
        classes=len(query.class_ids),
        demand=tuple(name for name, _ in demand),
        networks=len(request.networks),
        seen=bool(query.seen),
        hinted=request.device_hint is not None,
        dedicated=request.tenancy is Tenancy.DEDICATED,
    )
    values: dict[str, Any] = {"tenant": request.tenant_id, "heard_since": heard_since}
    values |= {f"class_{number}": class_id for number, class_id in enumerate(sorted(query.class_ids))}
    values |= {f"amount_{number}": amount for number, (_, amount) in enumerate(demand)}
    values |= {f"network_{number}": network_id for number, network_id in enumerate(request.networks)}
    if query.seen:
        values["seen"] = sorted(query.seen)
    if request.device_hint is not None:
        values["hint"] = request.device_hint
    if query.source is Source.RANDOM:
        values["pivot"] = int(query.pivot * PIVOT_STEPS)
    return _page(shape), values


@lru_cache(MAX_SHAPES)
def _page(shape: Shape) -> AnySelect:
    """Each class is read off the index by itself, up to a whole page, and the heads are merged: an index keyed by class first
    gives an order within a class only."""
    heads = [head for number in range(shape.classes) for head in _heads(shape, number)]
    merged = _merged(shape, heads) if len(heads) > 1 else heads[0].subquery("merged")
    device_id = merged.c.device_id
    hosts_tenant = sa.exists().where(placements.c.tenant_id == sa.bindparam("tenant"), placements.c.device_id == device_id)
    wired = (
        sa.exists()
        .where(device_networks.c.network_id == sa.bindparam(f"network_{number}"), device_networks.c.device_id == device_id)
        .label(f"wired_{number}")
        for number in range(shape.networks)
    )
    return (
        sa.select(
            *merged.c,
            devices.c.generation,
            agents.c.host.label("agent_host"),
            (agents.c.heartbeat_at < HEARD_SINCE).label("agent_silent"),
            agents.c.admin_state_up.label("agent_up"),
            hosts_tenant.label("hosts_tenant"),
            *wired,
            VERSION,
        )
        .select_from(merged)
        .join(devices, devices.c.id == device_id)
        .outerjoin(device_agents, device_agents.c.device_id == device_id)
        .outerjoin(agents, agents.c.id == device_agents.c.agent_id)
    )


def _merged(shape: Shape, heads: Sequence[AnySelect]) -> sa.Subquery:
    """The first of the first, so that what follows looks at one page, whatever the number of classes."""
    union = sa.union_all(*heads).subquery("heads")
    first = sa.select(*(union.c[name] for name in ("part", *_LOAD_COLUMNS)))
    return first.order_by(*_order(shape.source, union.c)).limit(constant(shape.size)).subquery("merged")


def _heads(shape: Shape, number: int) -> list[AnySelect]:
    """The first rows of one class in the order of the source; a RANDOM page goes round at the end."""
    base = sa.select(*(Load[name] for name in _LOAD_COLUMNS)).where(
        Load.class_id == sa.bindparam(f"class_{number}"), Load.open == constant(1), *_room(shape.demand)
    )
    base = base.where(open_to_tenant(shape.dedicated))
    if shape.seen:
        base = base.where(Load.device_id.not_in(sa.bindparam("seen", expanding=True)))
    if shape.hinted:
        base = base.where(Load.device_id == sa.bindparam("hint"))
    base = base.where(*_near(shape))
    if shape.source is Source.RANDOM:
        highest = sa.select(sa.func.max(Load.seq)).correlate(None).scalar_subquery()
        # In whole numbers, since each database rounds in its own way.
        start = device_loads.integer_division(highest * sa.bindparam("pivot", type_=sa.BigInteger), sa.literal(PIVOT_STEPS)) + 1
        parts = [base.where(Load.seq >= start).order_by(Load.seq), base.where(Load.seq < start).order_by(Load.seq)]
    else:
        parts = [base.order_by(*_order(shape.source, Load))]
    # A SELECT of its own around each: SQLite takes no LIMIT in the branches of a UNION.
    return [
        sa.select(constant(turn).label("part"), part.limit(constant(shape.size)).subquery()) for turn, part in enumerate(parts)
    ]


def _order(source: Source, c: Any) -> tuple[sa.ColumnElement[Any], ...]:
    """The order of a source, over the columns of ``device_load`` or of what was selected from it."""
    match source:
        case Source.BY_FILL:
            return c.rank.desc(), c.seq.desc()
        case Source.BY_AGE:
            return (c.seq,)
        case Source.RANDOM:
            return (c.seq,) if c is Load else (c.part, c.seq)
    return c.rank, c.seq


def _near(shape: Shape) -> list[sa.ColumnElement[bool]]:
    """What else a source asks of a device: that it is near to the tenant or to the networks of the request."""
    of_tenant = sa.select(placements.c.device_id).where(placements.c.tenant_id == sa.bindparam("tenant")).correlate(None)
    on_network = [
        sa.select(device_networks.c.device_id).where(device_networks.c.network_id == sa.bindparam(f"network_{number}"))
        for number in range(shape.networks)
    ]
    match shape.source:
        case Source.HOSTING_TENANT:
            return [Load.device_id.in_(of_tenant)]
        case Source.HOSTING_NETWORK:
            return [sa.or_(sa.false(), *(Load.device_id.in_(wired) for wired in on_network))]
        case Source.WIRED:
            return [Load.device_id.in_(wired) for wired in on_network] or [sa.false()]
        case Source.FIRST_OF_TENANT:
            return [sa.not_(of_tenant.exists())]
        case Source.FIRST_OF_NETWORK:
            return [sa.not_(wired.exists()) for wired in on_network]
    return []


def open_to_tenant(dedicated: bool) -> sa.ColumnElement[bool]:
    """That no other tenant has the device to itself; for a ``dedicated`` request, that the tenant has it or can get it."""
    tenant = sa.bindparam("tenant", type_=Load.dedicated_to.type)
    free = Load.dedicated_to == sa.literal_column("''")
    return sa.or_(Load.dedicated_to == tenant, sa.and_(free, Load.vips_used == 0) if dedicated else free)


def _room(demand: Sequence[str]) -> list[sa.ColumnElement[bool]]:
    """Room for the whole demand: the same conditions that guard the claim."""
    return [room_for(name, amount_bind(number)) for number, name in enumerate(demand)]


def amount_bind(number: int) -> sa.BindParameter[int]:
    """The amount of the ``number``-th resource class of a demand, in ascending order of the names."""
    return sa.bindparam(f"amount_{number}", type_=sa.BigInteger)


def room_for(resource_class: str, amount: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """That a device of ``device_load`` has room for ``amount`` of ``resource_class``."""
    if resource_class in STANDARD_CLASSES:
        used, limit = Load[f"{resource_class.lower()}_used"], Load[f"{resource_class.lower()}_max"]
        return sa.or_(limit == constant(UNLIMITED), used + amount <= limit)
    own = device_capacities.c
    return sa.exists().where(
        own.device_id == Load.device_id,
        own.resource_class == resource_class,
        sa.or_(own.limit == constant(UNLIMITED), own.used + amount <= own.limit),
    )


FOLLOWING = sa.select(Load.device_id).where(Load.seq > sa.bindparam("seq")).order_by(Load.seq).limit(sa.bindparam("size"))
"""The devices that were registered next."""


def in_order(rows: Sequence[AnyRow], query: PageQuery) -> list[AnyRow]:
    """Merge the heads of the classes into one page in the order of the source."""
    return sorted(rows, key=_KEYS.get(query.source, _by_load))[: query.size]


def _by_load(row: AnyRow) -> tuple[int, ...]:
    return row.rank, row.seq


_KEYS: Mapping[Source, Callable[[AnyRow], tuple[int, ...]]] = {
    Source.BY_FILL: lambda row: (-row.rank, -row.seq),
    Source.BY_AGE: lambda row: (row.seq,),
    Source.RANDOM: lambda row: (row.part, row.seq),
}


def census(request: ScheduleRequest, heard_since: datetime, known: Collection[str]) -> Statement:
    """The whole fleet of the request's service, counted by class and by what speaks against a device (NULL = nothing)."""
    fleet = _fleet(request, known, Load.class_id, _code(request).label("code")).subquery()
    counted = sa.select(fleet.c.class_id, fleet.c.code, sa.func.count().label("devices"))
    return counted.group_by(fleet.c.class_id, fleet.c.code), _values(request, heard_since)


def census_sample(request: ScheduleRequest, heard_since: datetime, known: Collection[str], size: int) -> Statement:
    """The emptiest devices of the fleet, each with what speaks against it."""
    columns = (Load.class_id, Load.device_id, devices.c.name, _code(request).label("code"))
    return _fleet(request, known, *columns).order_by(Load.rank, Load.seq).limit(size), _values(request, heard_since)


def _values(request: ScheduleRequest, heard_since: datetime) -> dict[str, Any]:
    amounts = {f"amount_{number}": amount for number, (_, amount) in enumerate(sorted(request.demand.items()))}
    return {"heard_since": heard_since, "tenant": request.tenant_id, **amounts}


def _fleet(request: ScheduleRequest, known: Collection[str], *columns: Any) -> AnySelect:
    fleet = (
        sa.select(*columns)
        .select_from(device_load)
        .join(devices, devices.c.id == Load.device_id)
        .outerjoin(device_agents, device_agents.c.device_id == Load.device_id)
        .outerjoin(agents, agents.c.id == device_agents.c.agent_id)
        .where(devices.c.service == request.service)
    )
    return fleet.where(Load.device_id.not_in(sorted(known))) if known else fleet


def _code(request: ScheduleRequest) -> sa.Case[Any]:
    """What speaks against a device, apart from its class: the first that applies."""
    whens: list[tuple[sa.ColumnElement[bool], str]] = []
    if request.exclude:
        whens.append((Load.device_id.in_(sorted(request.exclude)), "excluded"))
    if request.device_hint is not None:
        whens.append((Load.device_id != request.device_hint, "hint"))
    whens += [
        (devices.c.admin_state == AdminState.DRAINING.value, "device.draining"),
        (devices.c.admin_state == AdminState.DISABLED.value, "device.disabled"),
        (devices.c.status != DeviceStatus.ONLINE.value, "device.offline"),
        (agents.c.id.is_(None), "agent.none"),
        (agents.c.admin_state_up.is_(False), "agent.disabled"),
        (agents.c.heartbeat_at < HEARD_SINCE, "agent.down"),
    ]
    for number, name in enumerate(sorted(request.demand)):
        whens.append((sa.not_(room_for(name, amount_bind(number))), f"capacity.{name}"))
    whens.append((sa.not_(open_to_tenant(request.tenancy is Tenancy.DEDICATED)), "dedicated"))
    whens.append((Load.open == 0, "device.closed"))
    return sa.case(*whens, else_=sa.null())
