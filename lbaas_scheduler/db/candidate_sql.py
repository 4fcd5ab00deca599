"""The statements that read the fleet for the scheduler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from lbaas_scheduler.db.models import (
    STANDARD_CLASSES,
    agents,
    device_agents,
    device_capacities,
    device_load,
    device_networks,
    devices,
    placements,
)
from lbaas_scheduler.domain.capacity import UNLIMITED
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus
from lbaas_scheduler.scheduler.algorithms.base import Source
from lbaas_scheduler.scheduler.framework import PageQuery

Load = device_load.c


def page(query: PageQuery) -> sa.Select[Any]:
    """One page of schedulable devices with room for the demand, with their agents.

    Each class is read off the index by itself, up to a whole page, and the heads are merged: an index keyed by class first
    gives an order within a class only.
    """
    heads = [head for class_id in sorted(query.class_ids) for head in _heads(query, class_id)]
    merged = sa.union_all(*heads).subquery("merged") if len(heads) > 1 else heads[0].subquery("merged")
    hosts_tenant = sa.exists().where(
        placements.c.tenant_id == query.request.tenant_id, placements.c.device_id == merged.c.device_id
    )
    return (
        sa.select(
            *merged.c,
            devices.c.generation,
            agents.c.host.label("agent_host"),
            agents.c.heartbeat_at,
            agents.c.admin_state_up.label("agent_up"),
            hosts_tenant.label("hosts_tenant"),
        )
        .join(devices, devices.c.id == merged.c.device_id)
        .join(device_agents, device_agents.c.device_id == merged.c.device_id)
        .join(agents, agents.c.id == device_agents.c.agent_id)
    )


def _heads(query: PageQuery, class_id: int) -> list[sa.Select[Any]]:
    """The first rows of one class in the order of the source; a RANDOM page goes round at the end."""
    base = sa.select(device_load).where(Load.class_id == class_id, Load.open == 1, *_room(query.request))
    if query.seen:
        base = base.where(Load.device_id.not_in(sorted(query.seen)))
    if query.request.device_hint is not None:
        base = base.where(Load.device_id == query.request.device_hint)
    if query.source is Source.RANDOM:
        start = sa.select(sa.cast(sa.func.max(Load.seq) * query.pivot, sa.BigInteger)).scalar_subquery()
        parts = [base.where(Load.seq >= start).order_by(Load.seq), base.where(Load.seq < start).order_by(Load.seq)]
    else:
        parts = [base.order_by(*_ORDERS[query.source])]
    # A SELECT of its own around each: SQLite takes no LIMIT in the branches of a UNION.
    return [sa.select(sa.literal(number).label("part"), part.limit(query.size).subquery()) for number, part in enumerate(parts)]


_ORDERS: Mapping[Source, tuple[sa.ColumnElement[Any], ...]] = {
    Source.BY_LOAD: (Load.rank, Load.seq),
    Source.BY_FILL: (Load.rank.desc(), Load.seq.desc()),
    Source.BY_AGE: (Load.seq,),
}


def _room(request: ScheduleRequest) -> list[sa.ColumnElement[bool]]:
    """Room for the whole demand: the same conditions that guard the claim."""
    return [room_for(name, amount) for name, amount in sorted(request.demand.items())]


def room_for(resource_class: str, amount: int) -> sa.ColumnElement[bool]:
    """That a device of ``device_load`` has room for ``amount`` of ``resource_class``."""
    if resource_class in STANDARD_CLASSES:
        used, limit = Load[f"{resource_class.lower()}_used"], Load[f"{resource_class.lower()}_max"]
        return sa.or_(limit == UNLIMITED, used + amount <= limit)
    own = device_capacities.c
    return sa.exists().where(
        own.device_id == Load.device_id,
        own.resource_class == resource_class,
        sa.or_(own.limit == UNLIMITED, own.used + amount <= own.limit),
    )


def in_order(rows: Sequence[Row[Any]], query: PageQuery) -> list[Row[Any]]:
    """Merge the heads of the classes into one page in the order of the source."""
    return sorted(rows, key=_KEYS[query.source])[: query.size]


_KEYS: Mapping[Source, Callable[[Row[Any]], tuple[int, ...]]] = {
    Source.BY_LOAD: lambda row: (row.rank, row.seq),
    Source.BY_FILL: lambda row: (-row.rank, -row.seq),
    Source.BY_AGE: lambda row: (row.seq,),
    Source.RANDOM: lambda row: (row.part, row.seq),
}


def wired(conn: Connection, network_ids: Collection[str], device_ids: Collection[str]) -> dict[str, frozenset[str]]:
    """Device id → those of the networks that are wired to it already."""
    if not network_ids or not device_ids:
        return {}
    found: dict[str, set[str]] = defaultdict(set)
    c = device_networks.c
    for row in conn.execute(
        sa.select(c.device_id, c.network_id).where(c.network_id.in_(network_ids), c.device_id.in_(device_ids))
    ):
        found[row.device_id].add(row.network_id)
    return {device_id: frozenset(networks) for device_id, networks in found.items()}


def census(request: ScheduleRequest, heard_since: datetime) -> sa.Select[Any]:
    """The whole fleet of the request's service, counted by class and by what speaks against a device (NULL = nothing)."""
    fleet = _fleet(request, Load.class_id, _code(request, heard_since).label("code")).subquery()
    return sa.select(fleet.c.class_id, fleet.c.code, sa.func.count().label("devices")).group_by(fleet.c.class_id, fleet.c.code)


def census_sample(request: ScheduleRequest, heard_since: datetime, size: int) -> sa.Select[Any]:
    """The emptiest devices of the fleet, each with what speaks against it."""
    columns = (Load.class_id, Load.device_id, devices.c.name, _code(request, heard_since).label("code"))
    return _fleet(request, *columns).order_by(Load.rank, Load.seq).limit(size)


def _fleet(request: ScheduleRequest, *columns: Any) -> sa.Select[Any]:
    return (
        sa.select(*columns)
        .select_from(device_load)
        .join(devices, devices.c.id == Load.device_id)
        .outerjoin(device_agents, device_agents.c.device_id == Load.device_id)
        .outerjoin(agents, agents.c.id == device_agents.c.agent_id)
        .where(devices.c.service == request.service)
    )


def _code(request: ScheduleRequest, heard_since: datetime) -> sa.Case[Any]:
    """What speaks against a device, apart from its class: the first that applies."""
    whens = [
        (devices.c.admin_state == AdminState.DRAINING.value, "device.draining"),
        (devices.c.admin_state == AdminState.DISABLED.value, "device.disabled"),
        (devices.c.status != DeviceStatus.ONLINE.value, "device.offline"),
        (agents.c.id.is_(None), "agent.none"),
        (agents.c.admin_state_up.is_(False), "agent.disabled"),
        (agents.c.heartbeat_at < heard_since, "agent.down"),
        *((sa.not_(room_for(name, amount)), f"capacity.{name}") for name, amount in sorted(request.demand.items())),
    ]
    return sa.case(*whens, else_=sa.null())
