"""The two sides of the bus as release 1.0 was: they know its messages as recorded, and nothing of today's code.

``messages_1_0.json`` is what that release sent and answered. A reader of it may want each field of it, of the kind that it had,
and does not know what was added since. That is what :func:`fits` holds today's messages to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import oslo_messaging

RECORDED = json.loads((Path(__file__).parent / "messages_1_0.json").read_text())
OPEN = {"extra", "wiring", "parameters", "capacities", "configurations", "object_errors"}
"""What lies in these, and what kind it is of, was up to whoever filled them."""

OPTIONAL = (".session_persistence",)

AGENTS, SERVERS = "lbaas_scheduler_agent", "lbaas_scheduler_server"


def recorded(method: str, number: int = 0) -> dict[str, Any]:
    """The arguments of a message."""
    return [it["arguments"] for it in RECORDED["messages"] if it["method"] == method][number]  # type: ignore[no-any-return]


def fits(old: Any, new: Any, path: str = "") -> list[str]:
    """What a reader of ``old`` would miss or mistake in ``new``."""
    if new is None and path.endswith(OPTIONAL):
        return []
    if isinstance(old, Mapping):
        if not isinstance(new, Mapping):
            return [f"{path} is no object"]
        missing = [f"{path}.{key} is missing" for key in old if key not in new]
        return missing + [it for key in old.keys() & new.keys() - OPEN for it in fits(old[key], new[key], f"{path}.{key}")]
    if isinstance(old, list):
        if not isinstance(new, list):
            return [f"{path} is no list"]
        return [it for number, item in enumerate(new[: len(new) if old else 0]) for it in fits(old[0], item, f"{path}[{number}]")]
    same = old is None or new is None or type(old) is type(new) or {type(old), type(new)} == {int, float}
    return [] if same else [f"{path} is a {type(new).__name__}"]


class _Peer:
    """``version``: what it calls its messages. ``more``: arguments that a later release would add to each of them."""

    def __init__(self, transport: oslo_messaging.Transport, version: str, topic: str, hears: str, host: str, **more: Any) -> None:
        self.target = oslo_messaging.Target(version=version)
        self._more = more
        self._client = oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(topic=topic, version=version))
        self._server = oslo_messaging.get_rpc_server(transport, oslo_messaging.Target(topic=hears, server=host), [self])
        self.lock = threading.Lock()
        self.mistaken: list[str] = []

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()
        self._server.wait()

    def _hear(self, method: str, **arguments: Any) -> None:
        with self.lock:
            self.mistaken += fits(recorded(method), arguments, method)


class FrozenAgent(_Peer):
    """Applies at once whatever it is told, and reports it. ``applied``: VIP id → version."""

    def __init__(self, transport: oslo_messaging.Transport, host: str, version: str = "1.0", **more: Any) -> None:
        super().__init__(transport, version, SERVERS, AGENTS, host, **more)
        self._host = host
        self.applied: dict[str, list[int]] = {}

    def report_state(self, now: str, start_flag: bool = True) -> None:
        state = {**recorded("report_state")["state"], "host": self._host, "sent_at": now, "start_flag": start_flag}
        state["configurations"] = {"device_drivers": ["fake"], "devices": 0}
        self._client.cast({}, "report_state", state={**state, **self._more}, **self._more)

    def get_devices(self) -> list[dict[str, Any]]:
        found = self._client.call({}, "get_devices", host=self._host, **self._more)
        with self.lock:
            self.mistaken += fits(RECORDED["replies"]["get_devices"], found, "get_devices")
        return found  # type: ignore[no-any-return]

    def create_vip(self, context: Any, device: Any, deployment: Any) -> None:
        self._hear("create_vip", device=device, deployment=deployment)
        self._apply(device["id"], deployment["vip"]["id"], deployment["version"])

    update_vip = create_vip

    def delete_vip(self, context: Any, device: Any, vip_id: str, version: list[int]) -> None:
        self._hear("delete_vip", device=device, vip_id=vip_id, version=version)
        self._apply(device["id"], vip_id, version, removed=True)

    def change_vips(self, context: Any, changes: list[dict[str, Any]]) -> None:
        for change in changes:
            getattr(self, change.pop("verb"))(context, **change)

    def resync(self, context: Any, device_id: str | None = None) -> None:
        """Nothing: it has all that it was told."""

    def _apply(self, device_id: str, vip_id: str, version: list[int], removed: bool = False) -> None:
        with self.lock:
            self.applied[vip_id] = version
        result = {**recorded("report_results")["results"]["device-1"][0], "vip_id": vip_id, "version": version}
        result |= {"error": None, "object_errors": {}, "removed": removed, **self._more}
        self._client.call({}, "report_results", host=self._host, results={device_id: [result]}, **self._more)


class FrozenServer(_Peer):
    """Has the recorded device with the recorded VIP. ``states``, ``results``: what agents said."""

    def __init__(self, transport: oslo_messaging.Transport, host: str, version: str = "1.0", **more: Any) -> None:
        super().__init__(transport, version, AGENTS, SERVERS, "server-1", **more)
        self._agent = self._client.prepare(server=host)
        self.states: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []

    def tell(self, method: str) -> None:
        self._agent.cast({}, method, **recorded(method), **self._more)

    def report_state(self, context: Any, state: dict[str, Any]) -> None:
        self._hear("report_state", state=state)
        self.states.append(state)

    def get_devices(self, context: Any, host: str) -> Any:
        return [{**it, **self._more} for it in RECORDED["replies"]["get_devices"]]

    def list_desired(self, context: Any, host: str, device_id: str, marker: str | None, limit: int) -> Any:
        return [] if marker else [{**it, **self._more} for it in RECORDED["replies"]["list_desired"]]

    def get_deployments(self, context: Any, host: str, device_id: str, vip_ids: list[str]) -> Any:
        return [{**it, **self._more} for it in RECORDED["replies"]["get_deployments"]]

    def report_results(self, context: Any, host: str, results: dict[str, list[dict[str, Any]]]) -> None:
        self._hear("report_results", host=host, results={"device-1": results["device-1"]})
        self.results += results["device-1"]

    def report_stats(self, context: Any, host: str, device_id: str, stats: dict[str, Any]) -> None:
        """Nothing of interest."""
