"""The agent's side: drives the HAProxy processes of this host."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import ConfigurationError, DriverError, InvalidRequest
from lbaas_scheduler.sdk import processes
from lbaas_scheduler.sdk.drivers import AgentDriver, DriverAbility
from lbaas_scheduler.sdk.files import claim, kept
from lbaas_scheduler.vendors.haproxy import options, words
from lbaas_scheduler.vendors.haproxy.attachments import left_behind
from lbaas_scheduler.vendors.haproxy.extra import Extra
from lbaas_scheduler.vendors.haproxy.files import DeviceFiles
from lbaas_scheduler.vendors.haproxy.node import NO_CONTROL, Node
from lbaas_scheduler.vendors.haproxy.options import Settings
from lbaas_scheduler.vendors.haproxy.process import ProcessFailed, version
from lbaas_scheduler.vendors.haproxy.render import Terms, render_base
from lbaas_scheduler.vendors.haproxy.runtime import RuntimeUnavailable

OLDEST = (2, 6)
"""Older ones do not tell whether a reload failed."""


class HaproxyDriver(AgentDriver):
    """One HAProxy master-worker process per device, one configuration file per VIP (see :mod:`.files`).

    A process outlives the agent. Should it die, ``read_stats`` raises and ``list_deployed`` lists its VIPs as not applied
    (version 0, 0): the agent's resync then applies them again, and the first ``apply`` starts HAProxy with all files there are.
    """

    device_type = "haproxy"
    abilities = frozenset({DriverAbility.LOCAL, DriverAbility.FENCE})

    def __init__(self, conf: Any) -> None:
        """:raises ConfigurationError: names the option; HAProxy is absent, say."""
        self.settings = Settings.from_conf(conf)
        found = version(self.settings.binary)
        if found is None or found < OLDEST:
            what = "not HAProxy" if found is None else "HAProxy " + ".".join(map(str, found))
            raise ConfigurationError(f"[haproxy] binary: {self.settings.binary} is {what}; HAProxy 2.6 or newer is needed.")
        self._claim = claim(self.settings.state_path, "[haproxy] state_path")
        self._nodes: dict[str, tuple[threading.Lock, Node]] = {}
        self._lock = threading.Lock()

    @classmethod
    def register_opts(cls, conf: object) -> None:
        options.register_opts(conf)

    def apply(self, device: Device, deployments: Sequence[Deployment]) -> Sequence[Result]:
        try:
            extra = Extra.parse(device.extra)
        except InvalidRequest as error:  # of a newer server, say
            raise DriverError("The device's settings are not known to its agent.", operator_message=error.message) from error
        base = render_base(self.settings, extra)
        terms = Terms(self.settings.connections(extra.maxconn), self.settings.connect_timeout_ms)
        in_namespace = self.settings.network_namespaces if extra.netns is None else extra.netns
        with self._node(device.id) as node:
            return node.apply(base, deployments, in_namespace, terms)

    def remove(self, device: Device, vip_ids: Collection[str]) -> Sequence[Result]:
        with self._node(device.id) as node:
            return node.remove(list(vip_ids))

    def list_deployed(self, device: Device) -> Mapping[str, Version]:
        with self._node(device.id) as node:
            return node.list_deployed()

    def read_stats(self, device: Device) -> Mapping[str, VipStats]:
        with self._node(device.id) as node:
            return node.read_stats()

    def local_devices(self) -> Collection[str]:
        """With those that lost their folders, and have a process or a network namespace here."""
        path = self.settings.state_path
        folders = {entry.name for entry in path.iterdir() if DeviceFiles(entry).ours}
        served = {str(name) for name in processes.paths_after("-f", path) if len(name.parts) == 1}
        return sorted(folders | served | left_behind(path))

    def purge(self, device_id: str) -> None:
        """:raises DriverError: one of its processes cannot be stopped; its files are still there."""
        with self._node(device_id) as node:
            node.purge()
        self._drop(device_id)

    def fence(self, device_id: str) -> None:
        """:raises DriverError: its addresses cannot be taken down, or one of its processes cannot be stopped."""
        with self._node(device_id) as node:
            node.fence()

    def forget(self, device: Device) -> None:
        self._drop(device.id)

    def _drop(self, device_id: str) -> None:
        with self._lock:
            self._nodes.pop(device_id, None)

    @contextmanager
    def _node(self, device_id: str) -> Iterator[Node]:
        """The device, for one caller at a time.

        The agent promises that already, but it may give up on a call that takes too long and come again
        while that one still runs.
        """
        with self._lock:
            if device_id not in self._nodes:
                folder = self.settings.state_path / words.identifier(device_id, "device")
                self._nodes[device_id] = (threading.Lock(), Node(folder, self.settings))
            lock, node = self._nodes[device_id]
        with lock, kept(node.files.folder):
            try:
                yield node
            except (ProcessFailed, RuntimeUnavailable) as error:
                raise DriverError(NO_CONTROL, operator_message=str(error)) from error
