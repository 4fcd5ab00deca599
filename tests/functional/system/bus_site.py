"""A server that answers REST, with a broker that can be broken, and what requests cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import oslo_messaging
import requests
import sqlalchemy as sa

from lbaas_scheduler.db import models
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.domain import traits
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.transport import get_server, get_transport
from tests.agent_side import bus_conf
from tests.factories import add_agent, add_devices, new_device
from tests.functional.system.test_server_process import Server
from tests.rig.daemon import Daemon
from tests.rig.proxy import Proxy
from tests.rig.rabbitmq import RabbitMQ

WRITERS = 8
ROUNDS = 12
OPTIONS = """
agent_down_seconds = 3600
cast_deadline_seconds = 2
"""


class Agent:
    """Remembers the highest revision of each VIP that it was sent."""

    target = oslo_messaging.Target(version=topics.VERSION)

    def __init__(self) -> None:
        self.heard: dict[str, int] = {}

    def create_vip(self, context: Any, device: Any, deployment: Any) -> None:
        vip_id, (_, revision) = deployment["vip"]["id"], deployment["version"]
        self.heard[vip_id] = max(revision, self.heard.get(vip_id, 0))

    update_vip = create_vip

    def change_vips(self, context: Any, changes: Any) -> None:
        for change in changes:
            self.create_vip(context, change["device"], change["deployment"])


class Site:
    """A server with REST, some VIPs, and a broker behind a proxy. What is cast is heard by an agent that is on the near side."""

    def __init__(self, folder: Path, database: Database, url: str, broker: RabbitMQ, spawn: Callable[..., Daemon]) -> None:
        self.broker, self.database = broker, database
        self.proxy = Proxy(broker.amqp_port)
        vhost = broker.create_vhost()
        bus = vhost.replace(f":{broker.amqp_port}/", f":{self.proxy.port}/")
        self.agent = Agent()
        self._transport = get_transport(bus_conf(vhost))
        self._listener = get_server(self._transport, topics.AGENTS, "agent-1", [self.agent])
        self._listener.start()
        add_agent(database)
        database.write(lambda conn: conn.execute(sa.insert(models.agent_drivers).values(agent_id="agent-1", device_type="fake")))
        add_devices(database, new_device(traits=traits.STANDARD, vips=100))
        self._server = Server(folder, url, bus=bus, more=f"[scheduler]{OPTIONS}")
        self.daemon = self._server.run(spawn)
        network = self._server.create("networks", "network", name="front")
        subnet = self._server.create("subnets", "subnet", network_id=network["id"], cidr="10.0.0.0/16")
        pool = {"subnet_id": subnet["id"], "protocol": "TCP", "lb_method": "ROUND_ROBIN"}
        vip = {"subnet_id": subnet["id"], "protocol": "TCP", "protocol_port": 80}
        self.vips = []
        for _ in range(WRITERS):
            pool_id = self._server.create("lb/pools", "pool", **pool)["id"]
            self.vips.append(self._server.create("lb/vips", "vip", **vip, pool_id=pool_id)["id"])

    def close(self) -> None:
        self.daemon.kill()
        self.proxy.close()
        self._listener.stop()
        self._listener.wait()
        self._transport.cleanup()

    def seconds(self) -> tuple[float, float]:
        """The 95th percentile of PUT and of GET of VIPs, with some clients at once."""
        timings = self.timings()
        return tuple(sorted(kind)[int(len(timings) * 0.95)] for kind in zip(*timings, strict=True))  # type: ignore[return-value]

    def timings(self, rounds: int = ROUNDS) -> list[tuple[float, float]]:
        """Seconds of a PUT and of the GET after it. Every answer is 200."""
        with ThreadPoolExecutor(WRITERS) as clients:
            return [pair for pairs in clients.map(lambda vip_id: self._client(vip_id, rounds), self.vips) for pair in pairs]

    def _client(self, vip_id: str, rounds: int) -> list[tuple[float, float]]:
        url = f"http://127.0.0.1:{self._server.port}/v2.0/lb/vips/{vip_id}"
        with requests.Session() as session:
            bodies = [{"vip": {"name": f"name-{n}"}} for n in range(rounds)]
            return [(_timed(session, "PUT", url, body), _timed(session, "GET", url)) for body in bodies]

    def health_seconds(self) -> float:
        began = time.monotonic()
        requests.get(f"http://127.0.0.1:{self._server.port}/healthcheck", timeout=60)
        return time.monotonic() - began

    def wanted(self) -> dict[str, int]:
        """VIP id → the revision that is to be on its device."""
        columns = sa.select(models.deployments.c.resource_id, models.deployments.c.desired_revision)
        return {row.resource_id: row.desired_revision for row in self.database.read(lambda conn: conn.execute(columns).all())}


def _timed(session: requests.Session, method: str, url: str, body: Any = None) -> float:
    began = time.monotonic()
    answer = session.request(method, url, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return time.monotonic() - began


Change = Callable[[Site], None]

OUTAGES: dict[str, tuple[Change, Change]] = {
    "stopped": (lambda site: site.broker.stop(), lambda site: site.broker.start()),
    "a black hole": (lambda site: site.proxy.swallow(), lambda site: site.proxy.pass_on()),
    "in alarm": (lambda site: site.broker.alarm(True), lambda site: site.broker.alarm(False)),
}
"""What breaks the bus, and what mends it."""
