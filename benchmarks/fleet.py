"""A database with a fleet in it, and what a placement writes beside the claim."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.allocator import api as allocator_api
from lbaas_scheduler.conf import opts
from lbaas_scheduler.db import sched_classes
from lbaas_scheduler.db.allocator_models import allocator_allocations
from lbaas_scheduler.db.models import (
    agents,
    deployments,
    device_agents,
    device_load,
    devices,
    metadata,
    networks,
    placements,
    service_types,
    subnets,
    vips,
)
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.networks.local import LocalConnector
from lbaas_scheduler.sdk.networks import Reservation

SERVICE = "LoadBalancer"
TENANTS = 100
TRAITS = ("ADDRESS_IPV4", "METHOD_ROUND_ROBIN", "PROTOCOL_HTTP")
CLASSES = [(device_type, zone) for device_type in ("fake", "other") for zone in ("a", "b")]
SLOTS = 1_000_000
"""VIPs that the whole fleet has room for."""
POOL = ("10.0.0.1", "10.255.255.254")
CHUNK = 2000


@contextmanager
def server(kind: str) -> Iterator[str]:
    """URL of an empty database on a private instance that is started for the purpose and ended after it."""
    with servers(kind) as new_database:
        yield new_database()


@contextmanager
def servers(kind: str) -> Iterator[Callable[[], str]]:
    """Makes empty databases on one private instance that is started for the purpose and ended after it."""
    # The rig of the tests knows how to run the servers that are installed here.
    from tests.rig.mariadb import MariaDB  # noqa: PLC0415 - only where no URL was given
    from tests.rig.postgresql import PostgreSQL  # noqa: PLC0415
    from tests.rig.run import Run  # noqa: PLC0415

    with ExitStack() as stack:
        if kind == "sqlite":
            folder = stack.enter_context(TemporaryDirectory(prefix="lbaas-benchmark-"))
            numbers = itertools.count()
            yield lambda: f"sqlite:///{Path(folder) / f'fleet-{next(numbers)}.sqlite'}"
            return
        rig = Run.begin()
        stack.callback(rig.end)
        service: Any = rig.private({"postgresql": PostgreSQL, "mysql": MariaDB}[kind], f"benchmark-{kind}")
        service.start()
        yield service.create_database


def open_database(url: str) -> Database:
    conf = cfg.ConfigOpts()
    opts.register_all(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("connection", url, "database")
    return Database.open(conf)


def create(database: Database, size: int) -> None:
    """Tables, and a fleet of ``size`` devices with one agent per hundred."""
    metadata.create_all(database.engine)
    now = utcnow() + timedelta(days=1)  # so that no agent dies while it is measured
    hosts = [f"host-{number}" for number in range(max(1, size // 100))]
    agent = {
        "agent_type": "agent",
        "binary": "agent",
        "topic": "agent",
        "created_at": now,
        "started_at": now,
        "heartbeat_at": now,
    }
    _insert(database, agents, ({"id": host, "host": host, **agent} for host in hosts))
    classes = [database.write(lambda conn, it=it: _class(conn, *it)) for it in CLASSES]
    rows = [_device(number, classes, now) for number in range(size)]
    _insert(database, devices, (row for row, _ in rows))
    _insert(database, device_load, (load | {"vips_max": max(1, SLOTS // size)} for _, load in rows))
    bound = ({"device_id": row["id"], "agent_id": hosts[number % len(hosts)]} for number, (row, _) in enumerate(rows))
    _insert(database, device_agents, (it | {"assigned_at": now} for it in bound))
    _insert(database, service_types, iter([{"id": "default", "name": "default", "created_at": now}]))
    network = {"id": "net", "tenant_id": "t", "created_at": now}
    _insert(database, networks, iter([network]))
    subnet = {"id": "subnet", "network_id": "net", "cidr": "10.0.0.0/8", "ip_version": 4, "allocation_pools": [POOL]}
    _insert(database, subnets, iter([subnet | {"tenant_id": "t", "created_at": now}]))
    _analyze(database)


def drop(database: Database) -> None:
    metadata.drop_all(database.engine)


def new_request(tenant: str) -> ScheduleRequest:
    return ScheduleRequest(str(uuid.uuid4()), SERVICE, tenant, required=frozenset(TRAITS), demand={"VIPS": 1})


def connector(database: Database) -> LocalConnector:
    """Gives addresses of the subnet's pool, in the transaction of a placement."""
    conf = cfg.ConfigOpts()
    opts.register_all(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    driver, kinds = extensions.load_state_driver(conf), extensions.load_resources(conf)
    return LocalConnector(database, allocator_api.build(conf, driver, kinds, database))


def reservation(vip_id: str) -> Reservation:
    return Reservation(vip_id, "subnet", "net", "10.0.0.0/8", port_id=vip_id, address="")


INSERT_VIP = sa.insert(vips)
INSERT_ADDRESS = sa.insert(allocator_allocations)
ADDRESS = {it.name: 0 if isinstance(it.type, sa.Integer) else "" for it in allocator_allocations.c if not it.nullable}
INSERT_DEPLOYMENT = sa.insert(deployments)


def write_address(conn: sa.Connection, vip_id: str) -> str:
    """A row of an allocation, and nothing that makes sure that it is free."""
    address = {"id": vip_id, "domain": "net", "value": uuid.UUID(vip_id).hex, "pool_id": "subnet", "kind": "address"}
    conn.execute(INSERT_ADDRESS, ADDRESS | address | {"owner_type": "vip", "owner_id": vip_id, "created_at": utcnow()})
    return "10.0.0.9"


def write_vip(conn: sa.Connection, vip_id: str, device_id: str, tenant: str, address: str) -> None:
    """The VIP and its deployment."""
    now = utcnow()
    vip = {"id": vip_id, "tenant_id": tenant, "subnet_id": "subnet", "address": address, "port_id": vip_id, "protocol": "HTTP"}
    rest = {"protocol_port": 80, "pool_id": vip_id, "service_type_id": "default", "status": "PENDING_CREATE", "created_at": now}
    conn.execute(INSERT_VIP, vip | rest)
    deployment = {"resource_id": vip_id, "device_id": device_id, "operation": "apply", "epoch": 1, "desired_revision": 1}
    conn.execute(INSERT_DEPLOYMENT, deployment | {"due_at": now, "pending_since": now})


def overcommitted(database: Database) -> int:
    """How many VIPs are on devices beyond their limits, by the placements."""
    held = _held()
    over = sa.select(sa.func.coalesce(sa.func.sum(held.c.count - device_load.c.vips_max), 0)).join(
        held, held.c.device_id == device_load.c.device_id
    )
    return int(database.read(lambda conn: conn.scalar(over.where(held.c.count > device_load.c.vips_max))) or 0)


def drift(database: Database) -> int:
    """On how many devices the counter differs from the placements."""
    held = _held()
    wrong = (
        sa.select(sa.func.count())
        .select_from(device_load)
        .outerjoin(held, held.c.device_id == device_load.c.device_id)
        .where(device_load.c.vips_used != sa.func.coalesce(held.c.count, 0))
    )
    return int(database.read(lambda conn: conn.scalar(wrong)) or 0)


def _held() -> sa.Subquery:
    return sa.select(placements.c.device_id, sa.func.count().label("count")).group_by(placements.c.device_id).subquery()


def _class(conn: sa.Connection, device_type: str, zone: str) -> int:
    return sched_classes.find_or_create(
        conn, service=SERVICE, device_type=device_type, zone=zone, form="virtual", tenant_id=None, shared=True, traits=TRAITS
    )


def _device(number: int, classes: list[int], now: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    turn = number % len(CLASSES)
    device_type, zone = CLASSES[turn]
    device_id = str(uuid.uuid4())
    row = {"id": device_id, "name": f"device-{number}", "service": SERVICE, "device_type": device_type, "zone": zone}
    state = {
        "form": "virtual",
        "shared": True,
        "admin_state": "enabled",
        "status": "ONLINE",
        "created_at": now,
        "updated_at": now,
    }
    load = {"device_id": device_id, "class_id": classes[turn], "schedulable": 1, "open": 1}
    return row | state | {"traits": list(TRAITS), "class_id": classes[turn]}, load


def _insert(database: Database, table: sa.Table, rows: Iterator[dict[str, Any]]) -> None:
    for chunk in _batched(rows):
        database.write(lambda conn, chunk=chunk: conn.execute(sa.insert(table), chunk))


def _batched(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while chunk := list(itertools.islice(rows, CHUNK)):
        yield chunk


def _analyze(database: Database) -> None:
    """What a running server does by itself from time to time."""
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        for table in (devices, device_load, device_agents, agents, placements):
            command = "ANALYZE TABLE" if database.engine.dialect.name == "mysql" else "ANALYZE"
            conn.exec_driver_sql(f"{command} {table.name}").close()
