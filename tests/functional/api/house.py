"""The REST API over the real plugins and a real database, and agents that do at once what they are told."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import falcon.testing
from oslo_messaging import MessageDeliveryFailure

from lbaas_scheduler.cmd import wiring
from lbaas_scheduler.conf import opts
from lbaas_scheduler.devices.secrets import generate_key
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.plugins.callbacks import AgentCallbacks
from lbaas_scheduler.plugins.loadbalancer import documents
from lbaas_scheduler.plugins.loadbalancer.reports import Reports
from lbaas_scheduler.rpc.agent_api import VipChange
from lbaas_scheduler.rpc.codec import to_document
from tests.database import configured
from tests.direct import DirectOutbox

HOST = "agent-1"
ADMIN = {"X-Project-Id": "operator", "X-User-Id": "root", "X-Roles": "admin"}
ANNE = {"X-Project-Id": "anne", "X-User-Id": "anne", "X-Roles": "member"}
BERT = {"X-Project-Id": "bert", "X-User-Id": "bert", "X-Roles": "member"}
READER = {"X-Project-Id": "anne", "X-User-Id": "auditor", "X-Roles": "reader"}

Body = dict[str, Any]


def error_of(answer: falcon.testing.Result) -> tuple[int, str]:
    """Status, and what LBaaS v1 clients know the error by."""
    return answer.status_code, answer.json["NeutronError"]["type"]


class PromptAgents:
    """Agents that report success before the cast returns. ``idle``: they take everything and say nothing.

    ``received``: the last state of each VIP that they were given, by its id.
    """

    def __init__(self) -> None:
        self.callbacks: AgentCallbacks | None = None
        self.reset()

    def reset(self) -> None:
        """As before the first cast."""
        self.idle = False
        self.away = False
        self.error: str | None = None
        self.object_errors: dict[str, str] = {}
        self.casts: list[tuple[str, str]] = []
        self.received: dict[str, Deployment] = {}

    def create_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        self._apply("create_vip", host, device, deployment)

    def update_vip(self, host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        self._apply("update_vip", host, device, deployment)

    def delete_vip(self, host: str, device: Mapping[str, Any], vip_id: str, version: Version) -> None:
        self._report("delete_vip", host, device, Result(vip_id, version, error=self.error, removed=self.error is None))

    def change_vips(self, host: str, changes: Sequence[VipChange]) -> None:
        for change in changes:
            getattr(self, change.verb)(host, **change.arguments)

    def resync(self, host: str, device_id: str | None = None) -> None:
        self._check()

    def agent_updated(self, host: str, admin_state_up: bool) -> None:
        self._check()

    def _apply(self, verb: str, host: str, device: Mapping[str, Any], deployment: Deployment) -> None:
        self._check()
        self.received[deployment.vip.id] = deployment
        result = Result(deployment.vip.id, deployment.version, error=self.error, object_errors=self.object_errors)
        self._report(verb, host, device, result)

    def _report(self, verb: str, host: str, device: Mapping[str, Any], result: Result) -> None:
        self._check()
        self.casts.append((verb, result.vip_id))
        if not self.idle:
            assert self.callbacks is not None
            self.callbacks.report_results(None, host, {device["id"]: [to_document(result)]})

    def _check(self) -> None:
        if self.away:
            raise MessageDeliveryFailure("the broker is away")


class House:
    """``client`` speaks to the API in the process; ``app`` is what a WSGI server would serve. ``folder``: for files of a test."""

    def __init__(self, url: str, folder: Path | None = None, **api: Any) -> None:
        self.folder = folder
        self.conf = configured(url, sqlite_synchronous=False)
        opts.register_all(self.conf)
        self.conf.set_override("encryption_keys", [generate_key()], "security")
        self.conf.set_override("device_handlers", ["fake"], "LoadBalancer")
        for name, value in {"auth_strategy": "noauth", **api}.items():
            self.conf.set_override(name, value, "api")
        self.agents = PromptAgents()
        self.plant = wiring.assemble(self.conf, self.agents, DirectOutbox)  # type: ignore[arg-type]
        parts = self.plant.parts
        self.database = parts.database
        reports, cast = Reports(parts.connector), parts.caster.cast
        self.agents.callbacks = AgentCallbacks(parts.database, parts.agents, reports, documents.load, cast=cast)
        for plugin in self.plant.plugins:
            plugin.start()
        self.app = wiring.rest_application(self.plant, lambda _seconds: None)
        self.client = falcon.testing.TestClient(self.app)
        self.me = ANNE
        self._tenants = itertools.count(1)

    @property
    def tenant(self) -> str:
        """The project that speaks where a test does not say who."""
        return self.me["X-Project-Id"]

    def furnish(self) -> None:
        """A live agent, a device, a shared network and a subnet."""
        self.heartbeat()
        self.device = self.create("/v2.0/devices", "device", {"name": "box", "device_type": "fake"}, ADMIN)
        self.wire()

    def as_new_tenant(self) -> House:
        """The same house for a tenant that nobody has heard of, with a network for this tenant's VIPs alone."""
        self.heartbeat()
        guest = copy.copy(self)
        name = f"tenant-{next(self._tenants)}"
        guest.me = {"X-Project-Id": name, "X-User-Id": name, "X-Roles": "member"}
        guest.wire()
        return guest

    def wire(self) -> None:
        self.network = self.create("/v2.0/networks", "network", {"name": "front", "shared": True}, ADMIN)
        subnet = {"network_id": self.network["id"], "name": "front-v4", "cidr": "10.0.0.0/16"}
        self.subnet = self.create("/v2.0/subnets", "subnet", subnet, ADMIN)

    def heartbeat(self, host: str = HOST) -> None:
        now = utcnow().isoformat()
        state = {"host": host, "agent_type": "Loadbalancer agent", "binary": "lbaas-scheduler-agent", "topic": "t"}
        state |= {"configurations": {"device_drivers": ["fake"]}, "started_at": now, "sent_at": now, "start_flag": True}
        assert self.agents.callbacks is not None
        self.agents.callbacks.report_state(None, state)

    def move_on(self) -> None:
        """What a server's next cycle does about moves."""
        self.plant.parts.fleet.mover.run_once()

    def stats(self, vip_id: str, **counters: Any) -> None:
        assert self.agents.callbacks is not None
        device_id = self.get(f"/v2.0/lb/vips/{vip_id}/placement", ADMIN).json["placement"]["device_id"]
        self.agents.callbacks.report_stats(None, HOST, device_id, {vip_id: to_document(VipStats(**counters))})

    def close(self) -> None:
        for plugin in self.plant.plugins:
            plugin.stop()
        self.database.dispose()

    # --- HTTP ---

    def call(self, method: str, path: str, who: Mapping[str, str] | None = None, body: Any = None) -> falcon.testing.Result:
        headers = {**(self.me if who is None else who)}
        path, _, query = path.partition("?")
        if body is not None:
            headers["Content-Type"] = "application/json"
        return self.client.simulate_request(
            method, path, headers=headers, query_string=query, body=None if body is None else json.dumps(body)
        )

    def get(self, path: str, who: Mapping[str, str] | None = None) -> falcon.testing.Result:
        return self.call("GET", path, who)

    def post(self, path: str, body: Any, who: Mapping[str, str] | None = None) -> falcon.testing.Result:
        return self.call("POST", path, who, body)

    def put(self, path: str, body: Any, who: Mapping[str, str] | None = None) -> falcon.testing.Result:
        return self.call("PUT", path, who, body)

    def delete(self, path: str, who: Mapping[str, str] | None = None) -> falcon.testing.Result:
        return self.call("DELETE", path, who)

    def create(self, path: str, name: str, attributes: Body, who: Mapping[str, str] | None = None) -> Body:
        answer = self.post(path, {name: attributes}, who)
        assert answer.status_code == 201, answer.text
        return answer.json[name]

    # --- what tenants do ---

    def pool(self, who: Mapping[str, str] | None = None, **attributes: Any) -> Body:
        body = {"subnet_id": self.subnet["id"], "protocol": "HTTP", "lb_method": "ROUND_ROBIN", **attributes}
        return self.create("/v2.0/lb/pools", "pool", body, who)

    def vip(self, pool: Body | None = None, who: Mapping[str, str] | None = None, **attributes: Any) -> Body:
        return self.create("/v2.0/lb/vips", "vip", self.vip_body(pool or self.pool(who), **attributes), who)

    def vip_body(self, pool: Body, **attributes: Any) -> Body:
        body = {"subnet_id": self.subnet["id"], "protocol": pool["protocol"], "protocol_port": 80, "pool_id": pool["id"]}
        return {**body, **attributes}

    def member(self, pool: Body, address: str = "10.1.0.1", who: Mapping[str, str] | None = None, **attributes: Any) -> Body:
        body = {"pool_id": pool["id"], "address": address, "protocol_port": 8080, **attributes}
        return self.create("/v2.0/lb/members", "member", body, who)

    def monitor(self, who: Mapping[str, str] | None = None, **attributes: Any) -> Body:
        body = {"type": "HTTP", "delay": 5, "timeout": 2, "max_retries": 3, **attributes}
        return self.create("/v2.0/lb/health_monitors", "health_monitor", body, who)

    def associate(self, monitor: Body, pool: Body, who: Mapping[str, str] | None = None) -> falcon.testing.Result:
        path = f"/v2.0/lb/pools/{pool['id']}/health_monitors"
        return self.post(path, {"health_monitor": {"id": monitor["id"]}}, who)
