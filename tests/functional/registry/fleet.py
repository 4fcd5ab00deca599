"""A server's registry and agents on a real database with tables. The bus is a list of what was sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from oslo_messaging import MessageDeliveryFailure

from lbaas_scheduler.db import agents as agent_store
from lbaas_scheduler.db import deployments, device_agents, models
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.assignments import Assignments
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.devices.secrets import Vault, generate_key
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.agents import LOADBALANCER_AGENT
from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.plugins.agents import AgentDirectory
from lbaas_scheduler.plugins.casts import Caster
from lbaas_scheduler.rpc.agent_api import VipChange
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.handlers import DeviceHandler
from lbaas_scheduler.vendors.fake.handler import FakeHandler
from tests.database import configured
from tests.direct import DirectOutbox

SERVICE = "LoadBalancer"
AGENT_DOWN_SECONDS = 75.0
KEY = generate_key()


class Broken(Exception):
    """A poisoned VIP."""


@dataclass
class Bus:
    """The agents, as the server reaches them."""

    away: bool = False
    sent: list[tuple[Any, ...]] = field(default_factory=list)
    together: list[int] = field(default_factory=list)
    updated: list[tuple[str, bool]] = field(default_factory=list)
    resynced: list[tuple[str, str | None]] = field(default_factory=list)

    def create_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        self._send("create", host, device["id"], deployment.vip.id, deployment.version)

    def update_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        self._send("update", host, device["id"], deployment.vip.id, deployment.version)

    def delete_vip(self, host: str, device: Mapping[str, Any], vip_id: str, version: Version) -> None:
        self._send("delete", host, device["id"], vip_id, version)

    def change_vips(self, host: str, changes: Sequence[VipChange]) -> None:
        self.together.append(len(changes))
        for change in changes:
            getattr(self, change.verb)(host, **change.arguments)

    def resync(self, host: str, device_id: str | None = None) -> None:
        self._check()
        self.resynced.append((host, device_id))

    def agent_updated(self, host: str, admin_state_up: bool) -> None:
        self._check()
        self.updated.append((host, admin_state_up))

    def casts(self) -> list[tuple[str, str, str]]:
        """(verb, host, VIP id), sorted."""
        return sorted((verb, host, vip_id) for verb, host, _, vip_id, _ in self.sent)

    def _send(self, *cast: Any) -> None:
        self._check()
        self.sent.append(cast)

    def _check(self) -> None:
        if self.away:
            raise MessageDeliveryFailure("the broker is away")


class Fleet:
    """One server. Another one on the same database is ``Fleet(fleet.url)``."""

    def __init__(self, url: str, handlers: Mapping[tuple[str, str], DeviceHandler] | None = None) -> None:
        self.url = url
        self.conf = configured(url)
        self.database = Database.open(self.conf)
        self.bus = Bus()
        self.poisoned: set[str] = set()
        self.vault = Vault([KEY])
        self.assignments = Assignments(self.database, AGENT_DOWN_SECONDS)
        known = {(SERVICE, "fake"): FakeHandler(self.conf)} if handlers is None else handlers
        self.registry = Registry(self.database, known, self.vault, self.assignments)
        self.caster = Caster(self.database, self.bus, self.load_vips)
        self.agents = self.new_directory()

    def new_directory(self, monotonic: Callable[[], float] = time.monotonic) -> AgentDirectory:
        outbox = DirectOutbox(self.caster, self.bus)
        return AgentDirectory(self.database, self.assignments, outbox, outbox, AGENT_DOWN_SECONDS, monotonic)

    def load_vips(self, _conn: sa.Connection, vip_ids: Collection[str]) -> dict[str, Vip]:
        """As the LoadBalancer plugin builds them from rows."""
        if broken := self.poisoned & set(vip_ids):
            raise Broken(f"{broken} cannot be built")
        return {vip_id: documents.vip(id=vip_id, port=80) for vip_id in vip_ids}

    def report(
        self,
        host: str,
        drivers: Any = ("fake",),
        *,
        ago: float = 0,
        first: bool = False,
        started_at: str = "2012-11-30T00:00:00+00:00",
    ) -> None:
        """An agent reports, ``ago`` seconds before now."""
        sent_at = clock.utcnow() - timedelta(seconds=ago)
        self.agents.report(
            {
                "host": host,
                "binary": "lbaas-scheduler-agent",
                "topic": "lbaas_scheduler_agent",
                "agent_type": LOADBALANCER_AGENT,
                "started_at": started_at,
                "sent_at": sent_at.isoformat(),
                "configurations": {"device_drivers": list(drivers), "devices": 0},
                "start_flag": first,
            }
        )

    def silence(self, *hosts: str) -> None:
        """Make agents look as if they had not reported for longer than they may."""
        long_ago = clock.utcnow() - timedelta(seconds=AGENT_DOWN_SECONDS + 60)
        aged = sa.update(models.agents).where(models.agents.c.host.in_(hosts)).values(heartbeat_at=long_ago)
        self.database.write(lambda conn: conn.execute(aged))
        # So long ago that the server does not remember a recent report either.
        self.agents = self.new_directory()

    def enrol(self, **attributes: Any) -> str:
        """:returns: the device's id."""
        return self.registry.enrol({"device_type": "fake", **attributes}).id

    def deploy(self, vip_id: str, device_id: str, due_at: datetime | None = None) -> None:
        due = due_at or clock.utcnow()
        self.database.write(lambda conn: deployments.create(conn, vip_id, device_id, epoch=1, due_at=due))

    def settle(self, vip_id: str, device_id: str) -> None:
        row = self.row(vip_id, device_id)
        assert self.database.write(lambda conn: deployments.settle(conn, vip_id, device_id, row.version))

    def row(self, vip_id: str, device_id: str) -> deployments.DeploymentRow:
        found = self.database.read(lambda conn: deployments.get(conn, vip_id, device_id))
        assert found is not None
        return found

    def hosts(self) -> dict[str, str]:
        """Device id → host of its agent."""
        ids = [device.id for device in self.registry.list()]
        return {key: it.host for key, it in self.database.read(lambda conn: device_agents.by_devices(conn, ids)).items()}

    def agent_id(self, host: str) -> str:
        found = self.database.read(lambda conn: agent_store.find(conn, LOADBALANCER_AGENT, host))
        assert found is not None
        return found.id

    def load(self, device_id: str) -> Any:
        """The device's hot row."""
        wanted = sa.select(models.device_load).where(models.device_load.c.device_id == device_id)
        return self.database.read(lambda conn: conn.execute(wanted).one_or_none())

    def open(self) -> set[str]:
        """Ids of the devices that take new resources."""
        wanted = sa.select(models.device_load.c.device_id).where(models.device_load.c.open == 1)
        return set(self.database.read(lambda conn: list(conn.scalars(wanted))))

    def raw(self, table: sa.Table) -> list[dict[str, Any]]:
        return self.database.read(lambda conn: [dict(row) for row in conn.execute(sa.select(table)).mappings()])
