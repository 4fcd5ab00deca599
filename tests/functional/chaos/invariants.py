"""What must hold when everything is whole again, looked at from outside: in the tables, on the devices, in the allocator's store.

Each check returns sentences, one for each thing that is wrong; none of them means that all is well.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from lbaas_scheduler.allocator.core.drivers import Query, StateDriver
from lbaas_scheduler.allocator.core.states import Allocation
from lbaas_scheduler.allocator.manager import ResourceAllocator
from lbaas_scheduler.db import counters, fleet_models, models
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.statuses import Status
from tests.functional.chaos.ledger import GONE, MAYBE, Entry

UNSETTLED = [*(status for status in Status if status.pending), Status.ERROR]
TABLES = {"vip": models.vips, "pool": models.pools, "member": models.members, "health_monitor": models.health_monitors}


def unsettled(conn: Connection) -> list[str]:
    """What the product has still to do by itself; nothing of it may be left."""
    found = []
    for noun, table in [*((noun, TABLES[noun]) for noun in ("vip", "pool", "member")), ("association", models.pool_monitors)]:
        for row in conn.execute(table.select().where(table.c.status.in_(UNSETTLED))).mappings():
            name = row.get("id") or f"{row['pool_id']}/{row['monitor_id']}"
            found.append(f"{noun} {name} is {row['status']}: {row['status_description'] or 'no cause is named'}")
    table = models.deployments
    owed = sa.or_(table.c.due_at.is_not(None), table.c.applied_revision < table.c.desired_revision, table.c.operation != "apply")
    for row in conn.execute(table.select().where(owed)):
        revisions = f"revision {row.applied_revision} of {row.desired_revision}, epoch {row.epoch}, {row.attempts} casts"
        found.append(
            f"VIP {row.resource_id} on {row.device_id}: {row.operation} is owed, {revisions}, due {row.due_at}: {row.error}"
        )
    moves = fleet_models.moves
    for row in conn.execute(moves.select().where(moves.c.state.not_in(["done", "failed"]))):
        found.append(f"the move of VIP {row.resource_id} from {row.source_id} to {row.target_id} is {row.state}: {row.error}")
    return found + _devices(conn)


def _devices(conn: Connection) -> list[str]:
    found = []
    load = models.device_load
    joined = models.devices.join(load, load.c.device_id == models.devices.c.id)
    for row in conn.execute(sa.select(models.devices, load.c.schedulable).select_from(joined)):
        if not row.schedulable:
            found.append(f"device {row.id} takes nothing: {row.admin_state}, {row.status} ({row.status_description})")
    evacuations = fleet_models.evacuations
    for row in conn.execute(evacuations.select().where(evacuations.c.finished_at.is_(None))):
        found.append(f"the evacuation of {row.device_id} goes on, though nobody wants it any more")
    return found


def placed_once(conn: Connection) -> list[str]:
    """Each VIP has one placement and one deployment, on the same device; nothing else has any."""
    vips = set(conn.scalars(sa.select(models.vips.c.id)))
    placed, deployed = defaultdict(list), defaultdict(list)
    for row in conn.execute(models.placements.select()):
        placed[row.resource_id].append((row.role, row.device_id))
    for row in conn.execute(models.deployments.select()):
        deployed[row.resource_id].append(row.device_id)
    found = []
    for vip_id in sorted(vips | placed.keys() | deployed.keys()):
        where = placed[vip_id]
        if vip_id not in vips:
            found.append(f"VIP {vip_id} is gone, and placed {where} and deployed on {deployed[vip_id]}")
        elif [role for role, _ in where] != ["current"] or deployed[vip_id] != [where[0][1]]:
            found.append(f"VIP {vip_id} is placed {where} and deployed on {deployed[vip_id]}")
    return found


def devices_as_the_database(conn: Connection, rack: Path) -> list[str]:
    """Each device has what was placed there, as the tables say, and no more."""
    wanted = {(row.device_id, row.resource_id): row for row in conn.execute(models.deployments.select())}
    present = {(path.stem, vip_id): told for path in rack.glob("*.json") for vip_id, told in _vips(path)}
    found = [
        f"VIP {vip_id} is on device {device_id}, where it should not be" for device_id, vip_id in present.keys() - wanted.keys()
    ]
    found += [f"VIP {vip_id} is missing on device {device_id}" for device_id, vip_id in wanted.keys() - present.keys()]
    documents = _documents(conn)
    segments = {(row.device_id, row.network_id): row.segment for row in conn.execute(models.device_networks.select())}
    for key in sorted(wanted.keys() & present.keys()):
        row, told = wanted[key], present[key]
        version = [row.epoch, row.desired_revision]
        if told["version"] != version:
            found.append(f"VIP {key[1]} is at version {told['version']} on device {key[0]}, should be {version}")
        vlan, given = segments.get((key[0], told["document"]["network_id"])), told["wiring"].get("segment")
        if given != vlan:
            found.append(f"VIP {key[1]} uses VLAN {given} on device {key[0]}, should use {vlan}")
        if key[1] not in documents:  # which can be for the time that its removal takes
            found.append(f"VIP {key[1]} is on device {key[0]} and has no pool any more")
            continue
        found += [f"VIP {key[1]} on device {key[0]}: {text}" for text in _differences(told["document"], documents[key[1]])]
    return found


def _vips(path: Path) -> Iterable[tuple[str, Any]]:
    return json.loads(path.read_text())["vips"].items()


def _documents(conn: Connection) -> dict[str, dict[str, Any]]:
    """VIP → what its device should know of it, told by the tables alone."""
    by_pool: dict[str, tuple[set[Any], set[Any]]] = defaultdict(lambda: (set(), set()))
    for row in conn.execute(models.members.select()):
        by_pool[row.pool_id][0].add((row.id, row.address, row.protocol_port, row.weight, row.admin_state_up))
    monitors = models.health_monitors
    joined = sa.select(models.pool_monitors.c.pool_id, monitors).join_from(models.pool_monitors, monitors)
    for row in conn.execute(joined):
        by_pool[row.pool_id][1].add((row.id, row.type, row.delay, row.timeout, row.max_retries))
    found = {}
    for vip, pool in _with_pools(conn):
        members, checks = by_pool[pool.id]
        found[vip.id] = {
            "address": vip.address,
            "port": vip.protocol_port,
            "limit": vip.connection_limit,
            "method": pool.lb_method,
            "members": members,
            "monitors": checks,
        }
    return found


def _with_pools(conn: Connection) -> Iterator[tuple[Any, Any]]:
    pools = {row.id: row for row in conn.execute(models.pools.select())}
    for vip in conn.execute(models.vips.select()):
        if vip.pool_id in pools:
            yield vip, pools[vip.pool_id]


def _differences(told: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    pool = told["pool"]
    seen = {
        "address": told["address"],
        "port": told["protocol_port"],
        "limit": told["connection_limit"],
        "method": pool["lb_method"],
        "members": {(it["id"], it["address"], it["protocol_port"], it["weight"], it["admin_state_up"]) for it in pool["members"]},
        "monitors": {(it["id"], it["type"], it["delay"], it["timeout"], it["max_retries"]) for it in pool["health_monitors"]},
    }
    for name, value in seen.items():
        if value != wanted[name]:
            yield f"{name} is {value}, should be {wanted[name]}"


def counted(database: Database) -> list[str]:
    """Counters are what the placements add up to."""
    return [str(drift) for drift in counters.check(database)]


def quotas(conn: Connection, limits: Mapping[str, int]) -> list[str]:
    """No tenant has more than it may have."""
    found = []
    for noun, limit in limits.items():
        per_tenant = Counter(conn.scalars(sa.select(TABLES[noun].c.tenant_id)))
        found += [f"{tenant} has {count} {noun}s of {limit}" for tenant, count in per_tenant.items() if count > limit]
    return found


def addresses_held_once(conn: Connection, allocator: ResourceAllocator, driver: StateDriver) -> list[str]:
    """Each VIP has the one address that is its own, and nobody else has any."""
    vips = {row.id: row.address for row in conn.execute(models.vips.select())}
    wanted = {vip_id: int(IPv4Address(address)) & 0xFFFFFFFF for vip_id, address in vips.items()}
    found = [str(finding) for finding in allocator.check()] + _held(driver, "vip", wanted)
    repeated = [address for address, count in Counter(vips.values()).items() if count > 1]
    return found + [f"address {address} is given more than once" for address in repeated]


def segments_held_once(conn: Connection, driver: StateDriver) -> list[str]:
    """Each network that is wired to a device has the one VLAN id there that is its own, and nobody else has any."""
    rows = list(conn.execute(models.device_networks.select()))
    found = [f"network {row.network_id} has no VLAN on device {row.device_id}" for row in rows if row.segment is None]
    repeated = [place for place, count in Counter((row.device_id, row.segment) for row in rows).items() if count > 1]
    found += [f"VLAN {segment} of device {device_id} is given more than once" for device_id, segment in repeated]
    return found + _held(driver, "wiring", {f"{row.device_id}/{row.network_id}": row.segment for row in rows})


def _held(driver: StateDriver, owner_type: str, wanted: Mapping[str, int | None]) -> list[str]:
    """Compare the values that owners of a type should have with what the allocator's store says, in both directions."""
    found, holders = [], defaultdict(list)
    for stored in driver.read(Query(Allocation)):
        state = stored.state
        if state.owner_type == owner_type:
            holders[state.owner_id].append(state.number & 0xFFFFFFFF)
            if state.status != "active":
                found.append(f"the value {state.number:x} of {owner_type} {state.owner_id} is {state.status}")
    for owner_id in sorted(wanted.keys() | holders.keys()):
        should = [wanted[owner_id]] if owner_id in wanted else []
        if holders[owner_id] != should:
            found.append(f"{owner_type} {owner_id} should hold {should}, and holds {holders[owner_id]}")
    return found


def as_clients_were_told(conn: Connection, entries: Iterable[Entry]) -> list[str]:
    """What was acknowledged is there, with the values that were acknowledged; what was deleted is not."""
    rows = {noun: {row["id"]: row for row in conn.execute(table.select()).mappings()} for noun, table in TABLES.items()}
    bound = {(row.pool_id, row.monitor_id) for row in conn.execute(models.pool_monitors.select())}
    found = []
    for entry in entries:
        row = rows[entry.noun].get(entry.id)
        if row is None:
            found += (
                [] if entry.state in (GONE, MAYBE) else [f"{entry.noun} {entry.id}, whose creation was acknowledged, is lost"]
            )
        elif entry.state == GONE:
            found.append(f"{entry.noun} {entry.id}, whose deletion was acknowledged, is {row.get('status', 'there')}")
        else:
            found += _wrong_values(entry, row, bound)
    return found


def _wrong_values(entry: Entry, row: Mapping[str, Any], bound: set[tuple[str, str]]) -> Iterator[str]:
    for name, possible in entry.values.items():
        monitor_id = name.removeprefix("monitor ")
        value = (entry.id, monitor_id) in bound if monitor_id != name else row[name]
        if value not in possible:
            yield f"{entry.noun} {entry.id}: {name} is {value!r}, while clients were told {possible}"
