"""A whole server on a database with tables, and agents whose devices are dictionaries. The test says when an agent works."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from oslo_context.context import RequestContext

from lbaas_scheduler.cmd import wiring
from lbaas_scheduler.conf import opts
from lbaas_scheduler.db import counters, deployments, moves
from lbaas_scheduler.db.fleet_models import moves as move_table
from lbaas_scheduler.db.models import agents as agent_table
from lbaas_scheduler.db.models import deployments as deployment_table
from lbaas_scheduler.db.models import device_load, devices, placements
from lbaas_scheduler.devices.secrets import generate_key
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.plugins.callbacks import AgentCallbacks
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.plugins.loadbalancer.plugin import LoadBalancerPlugin
from lbaas_scheduler.plugins.loadbalancer.reports import Reports
from lbaas_scheduler.plugins.reconciler import Reconciler
from lbaas_scheduler.rpc.agent_api import VipChange
from lbaas_scheduler.rpc.codec import to_document
from tests.database import configured
from tests.direct import DirectOutbox

ADMIN = RequestContext(project_id="operator", is_admin=True, overwrite=False)
TENANT = RequestContext(project_id="tenant", is_admin=False, overwrite=False)

Body = dict[str, Any]
Job = Callable[[], None]


class Agents:
    """All agents. What they are told waits until :meth:`work`; what devices serve is in ``served``.

    ``broken``: device id → the error that it answers every apply with. ``refused``: VIPs that no device takes that does not have
    them. ``silent``: devices that do nothing and say nothing. ``messages``: of those with several changes, to whom, and how many.
    ``watch``: called after everything that changes what a device serves.
    """

    def __init__(self) -> None:
        self.served: dict[str, dict[str, Deployment]] = defaultdict(dict)
        self.broken: dict[str, str] = {}
        self.refused: set[str] = set()
        self.messages: list[tuple[str, int]] = []
        self.silent: set[str] = set()
        self.resynced: list[tuple[str, str | None]] = []
        self.watch: Callable[[], None] = lambda: None
        self.callbacks: AgentCallbacks | None = None
        self._waiting: deque[tuple[str, Job]] = deque()
        self._newest: dict[tuple[str, str], tuple[Version, bool]] = {}

    def create_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        self._waiting.append((device["id"], lambda: self._apply(host, device["id"], deployment)))

    update_vip = create_vip

    def delete_vip(self, host: str, device: Mapping[str, Any], vip_id: str, version: Version) -> None:
        self._waiting.append((device["id"], lambda: self._remove(host, device["id"], vip_id, version)))

    def change_vips(self, host: str, changes: Sequence[VipChange]) -> None:
        self.messages.append((host, len(changes)))
        for change in changes:
            getattr(self, change.verb)(host, **change.arguments)

    def resync(self, host: str, device_id: str | None = None) -> None:
        self.resynced.append((host, device_id))

    def agent_updated(self, host: str, admin_state_up: bool) -> None:
        """Nothing to do."""

    def work(self, steps: int = 10_000) -> int:
        """Carry out what waits now; what they are told meanwhile waits for the next time. :returns: how much was done."""
        done, turn = 0, len(self._waiting)
        while turn and done < steps:
            turn -= 1
            device_id, job = self._waiting.popleft()
            if device_id not in self.silent:
                job()
                done += 1
        return done

    def forget(self) -> None:
        """The agents die with what they were about to do."""
        self._waiting.clear()

    def holders(self, vip_id: str) -> list[str]:
        return sorted(device_id for device_id, vips in self.served.items() if vip_id in vips)

    def _apply(self, host: str, device_id: str, deployment: Deployment) -> None:
        vip_id = deployment.vip.id
        if self._is_stale(device_id, vip_id, (deployment.version, False)):
            return
        error = self.broken.get(device_id)
        if vip_id in self.refused and vip_id not in self.served[device_id]:
            error = "refused"
        if error is None:
            self.served[device_id][vip_id] = deployment
            self.watch()
        self._report(host, device_id, Result(vip_id, deployment.version, error))

    def _remove(self, host: str, device_id: str, vip_id: str, version: Version) -> None:
        if self._is_stale(device_id, vip_id, (version, True)):
            return
        self.served[device_id].pop(vip_id, None)
        self.watch()
        self._report(host, device_id, Result(vip_id, version, removed=True))

    def _is_stale(self, device_id: str, vip_id: str, order: tuple[Version, bool]) -> bool:
        """Casts of two threads may come in the other order; agents drop what is older than what they know."""
        known = self._newest.get((device_id, vip_id))
        if known is not None and order < known:
            return True
        self._newest[device_id, vip_id] = order
        return False

    def _report(self, host: str, device_id: str, result: Result) -> None:
        assert self.callbacks is not None
        self.callbacks.report_results(None, host, {device_id: [to_document(result)]})


class Lab:
    """Another server on the same database is ``Lab(lab.url, agents=lab.agents)``."""

    def __init__(self, url: str, agents: Agents | None = None, **scheduler: Any) -> None:
        self.url = url
        self.conf = configured(url, sqlite_synchronous=False)
        opts.register_all(self.conf)
        self.conf.set_override("encryption_keys", [generate_key()], "security")
        self.conf.set_override("device_handlers", ["fake"], "LoadBalancer")
        for name, value in {"cast_deadline_seconds": 600, **scheduler}.items():
            self.option(name, value)
        self.agents = agents or Agents()
        self.plant = wiring.assemble(self.conf, self.agents, DirectOutbox)  # type: ignore[arg-type]
        parts = self.plant.parts
        self.database = parts.database
        self.registry = parts.registry
        self.fleet = parts.fleet
        self.mover = parts.fleet.mover
        self.monitor = parts.fleet.monitor
        self.service_types = parts.service_types
        reports = Reports(parts.connector)
        cast = parts.caster.cast
        self.callbacks = AgentCallbacks(parts.database, parts.agents, reports, documents.load, cast=cast)
        if agents is None:
            self.agents.callbacks = self.callbacks
        self.seconds = 1000.0
        self.reconciler = Reconciler(
            parts.database,
            parts.caster,
            self.plant.assignments,
            reports,
            self.conf,
            monotonic=lambda: self.seconds,
            breaker=parts.fleet.breaker,
            more=parts.fleet.mover.steps(),
        )
        self.seconds += self.conf.scheduler.agent_down_seconds
        for plugin in self.plant.plugins:
            plugin.start()
        self.balancers = next(it for it in self.plant.plugins if isinstance(it, LoadBalancerPlugin))

    def close(self) -> None:
        for plugin in self.plant.plugins:
            plugin.stop()
        self.database.dispose()

    def option(self, name: str, value: Any) -> None:
        self.conf.set_override(name, value, "scheduler")

    # --- the fleet ---

    def furnish(self, *names: str, vips: int = 10, **attributes: Any) -> None:
        """A network, and devices by these names, each driven by an agent of its own."""
        networks = self.plant.parts.networks
        network = networks.create_network(ADMIN, {"name": "front", "shared": True})
        self.subnet_id = networks.create_subnet(ADMIN, {"network_id": network["id"], "cidr": "10.0.0.0/16"})["id"]
        self.ids: dict[str, str] = {}
        for name in names:
            self.add_device(name, vips, **attributes)

    def add_device(self, name: str, vips: int = 10, **attributes: Any) -> str:
        self.heartbeat(f"host-{name}")
        body = {"name": name, "device_type": "fake", "agent_host": f"host-{name}", "capacity": {"VIPS": vips}, **attributes}
        self.ids[name] = self.registry.enrol(body).id
        return self.ids[name]

    def heartbeat(self, host: str, ago: float = 0) -> None:
        now = utcnow()
        state = {"host": host, "agent_type": "Loadbalancer agent", "binary": "lbaas-scheduler-agent", "topic": "t"}
        state |= {"configurations": {"device_drivers": ["fake"]}, "started_at": now.isoformat(), "sent_at": now.isoformat()}
        self.callbacks.report_state(None, state)
        if ago:
            aged = sa.update(agent_table).where(agent_table.c.host == host)
            self.database.write(lambda conn: conn.execute(aged.values(heartbeat_at=now - timedelta(seconds=ago))))

    def change(self, name: str, **extra: Any) -> None:
        """Tell a fake device what goes wrong from now on, and nothing else."""
        before = dict.fromkeys(self.registry.get(self.ids[name]).extra)
        self.registry.update(self.ids[name], {"extra": {**before, **extra}})

    def only(self, *names: str) -> None:
        """No other device takes new resources."""
        for name, device_id in self.ids.items():
            self.registry.update(device_id, {"admin_state": "enabled" if name in names else "draining"})

    def open_all(self) -> None:
        self.only(*self.ids)

    # --- what tenants do ---

    def vip(self, on: str | None = None, **attributes: Any) -> str:
        """An ACTIVE VIP. ``on``: the device that it is to be on."""
        if on is not None:
            self.only(on)
        pool = {"subnet_id": self.subnet_id, "protocol": "HTTP", "lb_method": "ROUND_ROBIN"}
        pool_id = self.balancers.create_pool(TENANT, pool)["id"]
        body = {"subnet_id": self.subnet_id, "protocol": "HTTP", "protocol_port": 80, "pool_id": pool_id, **attributes}
        vip = self.balancers.create_vip(TENANT, body)
        if on is not None:
            self.open_all()
        self.agents.work()
        return str(vip["id"])

    def status(self, vip_id: str) -> str:
        return str(self.balancers.get_vip(TENANT, vip_id)["status"])

    def stats(self, vip_id: str, name: str, **counts: int) -> None:
        self.callbacks.report_stats(None, f"host-{name}", self.ids[name], {vip_id: to_document(VipStats(**counts))})

    # --- what operators do ---

    def move(self, vip_id: str, to: str | None = None) -> Body:
        return self.fleet.move_vip(ADMIN, vip_id, self.ids[to] if to else None)

    def last_move(self, vip_id: str) -> Any:
        return self.database.read(lambda conn: moves.get(conn, vip_id))

    # --- time ---

    def settle(self, cycles: int = 6) -> None:
        """Let servers and agents do what they have to, as often as it takes."""
        for _ in range(cycles):
            self.reconciler.run_once()
            self.agents.work()

    def make_due(self) -> None:
        """Everything that waits for a time waits no longer."""
        now = utcnow()

        def work(conn: sa.Connection) -> None:
            conn.execute(sa.update(deployment_table).where(deployment_table.c.due_at.is_not(None)).values(due_at=now))
            queued = move_table.c.state == "queued"
            conn.execute(sa.update(move_table).where(queued).values(due_at=now))

        self.database.write(work)

    def expire_moves(self) -> None:
        late = sa.update(move_table).where(move_table.c.state == "deploying").values(due_at=utcnow())
        self.database.write(lambda conn: conn.execute(late))

    def age_offline(self, seconds: float) -> None:
        since = utcnow() - timedelta(seconds=seconds)
        aged = sa.update(devices).where(devices.c.offline_since.is_not(None)).values(offline_since=since)
        self.database.write(lambda conn: conn.execute(aged))

    def check_all(self) -> None:
        """Every device is asked once."""
        self.database.write(lambda conn: conn.execute(sa.update(devices).values(check_due_at=utcnow())))
        self.monitor.run_once()

    # --- what is in the database ---

    def home(self, vip_id: str) -> str:
        """Name of the device that the VIP lives on."""
        return self.name(self.roles(vip_id)["current"])

    def roles(self, vip_id: str) -> dict[str, str]:
        columns = sa.select(placements.c.role, placements.c.device_id).where(placements.c.resource_id == vip_id)
        return {row.role.partition(":")[0]: row.device_id for row in self.database.read(lambda conn: conn.execute(columns).all())}

    def name(self, device_id: str) -> str:
        return next(name for name, id_ in self.ids.items() if id_ == device_id)

    def used(self) -> dict[str, int]:
        columns = sa.select(device_load.c.device_id, device_load.c.vips_used)
        rows = self.database.read(lambda conn: conn.execute(columns).all())
        return {self.name(row.device_id): row.vips_used for row in rows}

    def served(self, vip_id: str) -> list[str]:
        """Names of the devices that serve the VIP."""
        return sorted(self.name(device_id) for device_id in self.agents.holders(vip_id))

    def rows(self, vip_id: str) -> dict[str, deployments.DeploymentRow]:
        found = self.database.read(lambda conn: deployments.for_resources(conn, [vip_id]))
        return {self.name(row.device_id): row for row in found}

    def drift(self) -> list[counters.Drift]:
        return counters.check(self.database)

    def snapshot(self) -> dict[str, list[Any]]:
        """All that a move changes."""
        tables = (placements, device_load, deployment_table, move_table)
        return self.database.read(lambda conn: {it.name: sorted(map(repr, conn.execute(sa.select(it)).all())) for it in tables})
