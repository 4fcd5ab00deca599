"""What an agent meets, for its tests: servers with a desired state, and a driver whose devices are dictionaries."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_messaging._metrics import client as metrics  # these two register their options on the global configuration only
from oslo_messaging._tracing import client as tracing

from lbaas_scheduler.conf import opts
from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Member, Method, Pool, Protocol, Vip
from lbaas_scheduler.rpc.codec import encode_device, from_document, to_document
from lbaas_scheduler.rpc.server_api import Operation, SealedDevice, ServerAPI
from lbaas_scheduler.sdk.drivers import AgentDriver, DriverAbility

HOST = "agent-1"


def bus_conf(url: str = "fake://", **agent_options: Any) -> cfg.ConfigOpts:
    """A configuration of the test's own, with which oslo.messaging works."""
    conf = cfg.ConfigOpts()
    opts.register_all(conf)
    conf.register_opts(tracing.oslo_messaging_tracing, group="oslo_messaging_tracing")
    conf.register_opts(metrics.oslo_messaging_metrics, group="oslo_messaging_metrics")
    conf([], project="lbaas-scheduler", default_config_files=[])
    conf.register_opts(oslo_messaging.transport._transport_opts)
    conf.set_override("transport_url", url)
    conf.set_override("host", HOST)
    for name, value in agent_options.items():
        conf.set_override(name, value, group="agent")
    return conf


def device(name: str = "d1", device_type: str = "stub", **fields: Any) -> Device:
    return Device(name, name, "LoadBalancer", device_type, **fields)


def deployment(vip_id: str, epoch: int = 1, revision: int = 1, members: int = 1) -> Deployment:
    made = tuple(Member(f"{vip_id}-m{n}", f"10.1.{n // 250}.{n % 250 + 1}", 80) for n in range(members))
    pool = Pool(f"{vip_id}-p", Protocol.HTTP, Method.ROUND_ROBIN, members=made)
    return Deployment(Vip(vip_id, "t1", "10.0.0.1", 80, Protocol.HTTP, pool), Version(epoch, revision))


class Servers:
    """The servers' endpoint for agents over dictionaries. Answers as the real one does; ``refuse`` breaks single answers."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.owned: dict[str, tuple[str, dict[str, Any]]] = {}
        self.desired: dict[str, dict[str, Deployment | Version]] = defaultdict(dict)
        self.results: list[tuple[str, Result]] = []
        self.stats: dict[str, dict[str, VipStats]] = {}
        self.states: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.refuse: Callable[[str, Mapping[str, Any]], None] = _nothing

    def assign(self, what: Device, host: str = HOST, token: str = "") -> None:
        with self.lock:
            self.owned[what.id] = (host, encode_device(what, token))

    def unassign(self, device_id: str) -> None:
        with self.lock:
            del self.owned[device_id]

    def want(self, device_id: str, *deployments: Deployment) -> None:
        with self.lock:
            self.desired[device_id] |= {item.vip.id: item for item in deployments}

    def want_removed(self, device_id: str, vip_id: str, version: Version) -> None:
        with self.lock:
            self.desired[device_id][vip_id] = version

    def results_of(self, vip_id: str) -> list[Result]:
        with self.lock:
            return [result for _, result in self.results if result.vip_id == vip_id]

    def last(self, vip_id: str) -> Result | None:
        return (self.results_of(vip_id) or [None])[-1]

    def _answer(self, method: str, arguments: Mapping[str, Any]) -> None:
        with self.lock:
            self.calls.append(method)
        self.refuse(method, arguments)

    def report_state(self, context: RequestContext, state: dict[str, Any]) -> None:
        self._answer("report_state", state)
        with self.lock:
            self.states.append(state)

    def get_devices(self, context: RequestContext, host: str) -> list[dict[str, Any]]:
        self._answer("get_devices", {"host": host})
        with self.lock:
            return [document for owner, document in self.owned.values() if owner == host]

    def list_desired(
        self, context: RequestContext, host: str, device_id: str, marker: str | None, limit: int
    ) -> list[dict[str, Any]]:
        self._answer("list_desired", {"device_id": device_id, "marker": marker})
        with self.lock:
            ids = sorted(vip_id for vip_id in self.desired[device_id] if vip_id > (marker or ""))[:limit]
            return [_line(vip_id, self.desired[device_id][vip_id]) for vip_id in ids]

    def get_deployments(self, context: RequestContext, host: str, device_id: str, vip_ids: list[str]) -> list[dict[str, Any]]:
        self._answer("get_deployments", {"device_id": device_id, "vip_ids": vip_ids})
        with self.lock:
            found = [self.desired[device_id].get(vip_id) for vip_id in vip_ids]
            return [to_document(item) for item in found if isinstance(item, Deployment)]

    def report_results(self, context: RequestContext, host: str, results: dict[str, list[dict[str, Any]]]) -> None:
        self._answer("report_results", {"results": results})
        with self.lock:
            self.results += [(id_, from_document(Result, it)) for id_, documents in results.items() for it in documents]

    def report_stats(self, context: RequestContext, host: str, device_id: str, stats: dict[str, Any]) -> None:
        self._answer("report_stats", {"device_id": device_id})
        with self.lock:
            self.stats[device_id] = {key: from_document(VipStats, item) for key, item in stats.items()}


def _nothing(*_ignored: object) -> None:
    return


def _line(vip_id: str, wanted: Deployment | Version) -> dict[str, Any]:
    version = wanted.version if isinstance(wanted, Deployment) else wanted
    operation = Operation.APPLY if isinstance(wanted, Deployment) else Operation.REMOVE
    return {"vip_id": vip_id, "epoch": version.epoch, "revision": version.revision, "operation": operation.value}


class DirectServerAPI(ServerAPI):
    """The client without a bus: everything still passes through JSON."""

    def __init__(self, servers: Servers) -> None:
        self._client = _Direct(servers)


class _Direct:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def call(self, context: RequestContext, method: str, **arguments: Any) -> Any:
        arguments = json.loads(json.dumps(arguments))
        return json.loads(json.dumps(getattr(self._servers, method)(context, **arguments)))

    cast = call


class StubDriver(AgentDriver):
    """Devices are dictionaries in :attr:`content`. Counts calls and proves that none overlap on a device.

    ``before``: called at the start of each call with its name and the device's id; may block or raise.
    """

    device_type = "stub"

    def __init__(self) -> None:
        self.content: dict[str, dict[str, Version]] = defaultdict(dict)
        self.calls: list[tuple[str, str, tuple[str, ...]]] = []
        self.seen: list[Device] = []
        self.overlaps = 0
        self.stopped = False
        self.before: Callable[[str, str], None] = _nothing
        self._inside: set[str] = set()
        self._lock = threading.Lock()

    def apply(self, device: Device, deployments: Sequence[Deployment]) -> Sequence[Result]:
        with _Visit(self, "apply", device, [item.vip.id for item in deployments]):
            self.content[device.id] |= {item.vip.id: item.version for item in deployments}
            return [Result(item.vip.id, item.version) for item in deployments]

    def remove(self, device: Device, vip_ids: Collection[str]) -> Sequence[Result]:
        with _Visit(self, "remove", device, vip_ids):
            found = [self.content[device.id].pop(vip_id, Version(0, 0)) for vip_id in vip_ids]
            return [Result(vip_id, version, removed=True) for vip_id, version in zip(vip_ids, found, strict=True)]

    def list_deployed(self, device: Device) -> Mapping[str, Version]:
        with _Visit(self, "list_deployed", device, ()):
            return dict(self.content[device.id])

    def read_stats(self, device: Device) -> Mapping[str, VipStats]:
        with _Visit(self, "read_stats", device, ()):
            return {vip_id: VipStats(bytes_in=5_000_000_000) for vip_id in self.content[device.id]}

    def forget(self, device: Device) -> None:
        with _Visit(self, "forget", device, ()):
            pass

    def stop(self) -> None:
        self.stopped = True

    def called(self, name: str, device_id: str | None = None) -> list[tuple[str, ...]]:
        """The VIPs that each call of this name named."""
        with self._lock:
            return [ids for call, on, ids in self.calls if call == name and device_id in (None, on)]


class LocalDriver(StubDriver):
    """A driver whose devices are on the agent's host."""

    device_type = "local"
    abilities = frozenset({DriverAbility.LOCAL, DriverAbility.FENCE})

    def local_devices(self) -> Collection[str]:
        return list(self.content)

    def purge(self, device_id: str) -> None:
        with _Visit(self, "purge", device(device_id), ()):
            self.content.pop(device_id, None)

    def fence(self, device_id: str) -> None:
        with _Visit(self, "fence", device(device_id), ()):
            self.content[device_id] = dict.fromkeys(self.content[device_id], Version(0, 0))


class _Visit:
    def __init__(self, driver: StubDriver, call: str, on: Device, vip_ids: Collection[str]) -> None:
        self._driver, self._call, self._on, self._vip_ids = driver, call, on, tuple(vip_ids)

    def __enter__(self) -> None:
        with self._driver._lock:
            self._driver.overlaps += self._on.id in self._driver._inside
            self._driver._inside.add(self._on.id)
            self._driver.calls.append((self._call, self._on.id, self._vip_ids))
            self._driver.seen.append(self._on)
        try:
            self._driver.before(self._call, self._on.id)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc_info: object) -> None:
        with self._driver._lock:
            self._driver._inside.discard(self._on.id)


def sealed(what: Device, token: str = "") -> SealedDevice:
    return SealedDevice(what, token)
