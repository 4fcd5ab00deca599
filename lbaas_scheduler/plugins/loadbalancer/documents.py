"""From rows to what drivers see: the whole desired state of VIPs, in as many statements for a hundred as for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy.engine import Connection

from lbaas_scheduler.db import desired, members, pool_monitors
from lbaas_scheduler.db.rows import AnyRow
from lbaas_scheduler.domain.loadbalancers import (
    ForwardedFor,
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
from lbaas_scheduler.plugins.device_scheduler.service_type_schema import FORWARDED_FOR


def load(conn: Connection, vip_ids: Collection[str]) -> dict[str, Vip]:
    """VIP id → the VIP with all that belongs to it, in any status. VIPs that are gone or have no pool left are left out.

    Members and monitors that are being deleted are no part of it; pending, failed and inactive ones are.
    """
    rows = desired.rows(conn, vip_ids)
    members_of = _members(conn, {row.pool_id for row in rows if row.has_members})
    monitors_of = _monitors(conn, {row.pool_id for row in rows if row.has_monitors})
    return {row.id: _vip(row, members_of, monitors_of) for row in rows}


def pool_of(conn: Connection, row: AnyRow) -> Pool:
    """A pool of which the outline was read, with its members and monitors."""
    return Pool(
        id=row.id,
        protocol=Protocol(row.protocol),
        lb_method=Method(row.lb_method),
        admin_state_up=row.admin_state_up,
        members=_members(conn, {row.id}).get(row.id, ()) if row.has_members else (),
        health_monitors=monitors(conn, row.id) if row.has_monitors else (),
    )


def monitors(conn: Connection, pool_id: str) -> tuple[HealthMonitor, ...]:
    return _monitors(conn, {pool_id}).get(pool_id, ())


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


def _vip(row: AnyRow, members_of: Mapping[str, tuple[Member, ...]], monitors_of: Mapping[str, tuple[HealthMonitor, ...]]) -> Vip:
    pool = Pool(
        id=row.pool_id,
        protocol=Protocol(row.pool_protocol),
        lb_method=Method(row.pool_lb_method),
        admin_state_up=row.pool_admin_state_up,
        members=members_of.get(row.pool_id, ()),
        health_monitors=monitors_of.get(row.pool_id, ()),
    )
    return Vip(
        id=row.id,
        tenant_id=row.tenant_id,
        address=row.address,
        protocol_port=row.protocol_port,
        protocol=Protocol(row.protocol),
        pool=pool,
        subnet_cidr=row.cidr or "",
        network_id=row.network_id or "",
        connection_limit=row.connection_limit,
        session_persistence=persistence_of(row.persistence_type, row.cookie_name),
        admin_state_up=row.admin_state_up,
        forwarded_for=ForwardedFor(row.service_type_options.get(FORWARDED_FOR) or ForwardedFor.REPLACE),
    )


def persistence_of(type_: str | None, cookie_name: str | None) -> SessionPersistence | None:
    return None if type_ is None else SessionPersistence(Persistence(type_), cookie_name)
