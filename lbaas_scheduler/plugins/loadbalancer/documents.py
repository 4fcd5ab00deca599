"""From rows to what drivers see: the whole desired state of VIPs, in as many statements for a hundred as for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy.engine import Connection, Row

from lbaas_scheduler.db import members, networks, pool_monitors, pools, vips
from lbaas_scheduler.domain.loadbalancers import (
    HealthMonitor,
    Member,
    Method,
    MonitorType,
    Persistence,
    Pool,
    Protocol,
    SessionPersistence,
    Vip,
)


def load(conn: Connection, vip_ids: Collection[str]) -> dict[str, Vip]:
    """VIP id → the VIP with all that belongs to it, in any status. VIPs that are gone or have no pool left are left out.

    Members and monitors that are being deleted are no part of it; pending, failed and inactive ones are.
    """
    rows = [row for row in vips.by_ids(conn, vip_ids) if row.pool_id is not None]
    built = _pools(conn, {row.pool_id for row in rows})
    places = networks.places(conn, {row.subnet_id for row in rows})
    return {row.id: _vip(row, built[row.pool_id], places) for row in rows if row.pool_id in built}


def pool_of(conn: Connection, row: Row[Any]) -> Pool:
    """A pool of which the row was read, with its members and monitors."""
    return _pool(row, _members(conn, {row.id}), _monitors(conn, {row.id}))


def monitors(conn: Connection, pool_id: str) -> tuple[HealthMonitor, ...]:
    return _monitors(conn, {pool_id}).get(pool_id, ())


def _pools(conn: Connection, pool_ids: Collection[str]) -> dict[str, Pool]:
    members_of = _members(conn, pool_ids)
    monitors_of = _monitors(conn, pool_ids)
    return {row.id: _pool(row, members_of, monitors_of) for row in pools.by_ids(conn, pool_ids)}


def _pool(
    row: Row[Any], members_of: Mapping[str, tuple[Member, ...]], monitors_of: Mapping[str, tuple[HealthMonitor, ...]]
) -> Pool:
    return Pool(
        id=row.id,
        protocol=Protocol(row.protocol),
        lb_method=Method(row.lb_method),
        admin_state_up=row.admin_state_up,
        members=members_of.get(row.id, ()),
        health_monitors=monitors_of.get(row.id, ()),
    )


def _members(conn: Connection, pool_ids: Collection[str]) -> dict[str, tuple[Member, ...]]:
    found: dict[str, list[Member]] = defaultdict(list)
    for row in members.of_pools(conn, pool_ids):
        if not row.leaving:
            found[row.pool_id].append(Member(row.id, row.address, row.protocol_port, row.weight, row.admin_state_up))
    return {pool_id: tuple(each) for pool_id, each in found.items()}


def _monitors(conn: Connection, pool_ids: Collection[str]) -> dict[str, tuple[HealthMonitor, ...]]:
    found: dict[str, list[HealthMonitor]] = defaultdict(list)
    for row in pool_monitors.of_pools(conn, pool_ids):
        found[row.pool_id].append(
            HealthMonitor(
                id=row.id,
                type=MonitorType(row.type),
                delay=row.delay,
                timeout=row.timeout,
                max_retries=row.max_retries,
                http_method=row.http_method,
                url_path=row.url_path,
                expected_codes=row.expected_codes,
                admin_state_up=row.admin_state_up,
            )
        )
    return {pool_id: tuple(each) for pool_id, each in found.items()}


def _vip(row: Row[Any], pool: Pool, places: Mapping[str, networks.Place]) -> Vip:
    place = places.get(row.subnet_id, networks.NOWHERE)
    return Vip(
        id=row.id,
        tenant_id=row.tenant_id,
        address=row.address,
        protocol_port=row.protocol_port,
        protocol=Protocol(row.protocol),
        pool=pool,
        subnet_cidr=place.cidr,
        network_id=place.network_id,
        connection_limit=row.connection_limit,
        session_persistence=persistence_of(row.persistence_type, row.cookie_name),
        admin_state_up=row.admin_state_up,
    )


def persistence_of(type_: str | None, cookie_name: str | None) -> SessionPersistence | None:
    return None if type_ is None else SessionPersistence(Persistence(type_), cookie_name)
