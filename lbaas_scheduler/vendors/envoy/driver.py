"""The agent's side of Envoy devices."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

from oslo_config import cfg

from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import DriverError, InvalidRequest
from lbaas_scheduler.sdk import processes
from lbaas_scheduler.sdk.drivers import AgentDriver, DriverAbility
from lbaas_scheduler.sdk.files import claim, kept
from lbaas_scheduler.sdk.silence import Silence
from lbaas_scheduler.vendors.envoy import extra, options
from lbaas_scheduler.vendors.envoy.admin import Unanswered
from lbaas_scheduler.vendors.envoy.folder import BOOTSTRAP, folder_of, sweep
from lbaas_scheduler.vendors.envoy.node import Node


class EnvoyDriver(AgentDriver):
    """One Envoy process per device, on this host. It goes on serving when the agent ends, and is found again.

    A process that died is started again, with all that it served, by the next ``apply``, ``remove`` or ``list_deployed``;
    ``read_stats`` says that it is dead. It starts with the first VIP and ends with the last one.

    :raises ConfigurationError: (when built) there is no Envoy.
    """

    device_type = "envoy"
    abilities = frozenset({DriverAbility.LOCAL, DriverAbility.FENCE})

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._settings = options.read(conf)
        self._claim = claim(self._settings.state_path, "[envoy] state_path")
        sweep(self._settings.state_path)
        self._locks: dict[str, threading.Lock] = {}
        self._silences: dict[str, Silence] = {}
        self._guard = threading.Lock()

    @classmethod
    def register_opts(cls, conf: object) -> None:
        options.register_opts(cast("cfg.ConfigOpts", conf))

    def apply(self, device: Device, deployments: Sequence[Deployment]) -> Sequence[Result]:
        with self._changing(device.id):
            return self._node(device).apply(deployments) if deployments else []

    def remove(self, device: Device, vip_ids: Collection[str]) -> Sequence[Result]:
        with self._changing(device.id):
            return self._node(device).remove(vip_ids) if vip_ids else []

    def list_deployed(self, device: Device) -> Mapping[str, Version]:
        with self._changing(device.id):
            return self._node(device).versions()

    def read_stats(self, device: Device) -> Mapping[str, VipStats]:
        with kept(self._settings.state_path / device.id):
            return self._node(device).stats()

    def local_devices(self) -> Collection[str]:
        """With those that lost their folders, and have a process here."""
        path = self._settings.state_path
        folders = {entry.name for entry in path.iterdir() if folder_of(path, entry.name).ours()} if path.is_dir() else set()
        served = {name.parts[0] for name in processes.paths_after("-c", path) if name.parts[1:] == (BOOTSTRAP,)}
        return sorted(folders | served)

    def purge(self, device_id: str) -> None:
        with self._changing(device_id):
            self._known(device_id).purge()
        self._drop(device_id)

    def fence(self, device_id: str) -> None:
        """:raises DriverError: its process cannot be stopped."""
        with self._changing(device_id):
            self._known(device_id).process.stop()

    def _known(self, device_id: str) -> Node:
        """By nothing but its id: good enough to end it."""
        return Node(folder_of(self._settings.state_path, device_id), self._settings, 1, self._silence(device_id))

    def forget(self, device: Device) -> None:
        self._drop(device.id)

    def _drop(self, device_id: str) -> None:
        with self._guard:
            self._locks.pop(device_id, None)
            self._silences.pop(device_id, None)

    def _silence(self, device_id: str) -> Silence:
        with self._guard:
            return self._silences.setdefault(device_id, Silence(self._settings.hang_timeout, Unanswered))

    def _node(self, device: Device) -> Node:
        folder = folder_of(self._settings.state_path, device.id)
        try:
            concurrency = extra.concurrency(device.extra, self._settings.concurrency)
        except InvalidRequest as error:  # of a newer server, say
            raise DriverError("The device's settings are not known to its agent.", operator_message=error.message) from error
        return Node(folder, self._settings, concurrency, self._silence(device.id))

    @contextmanager
    def _changing(self, device_id: str) -> Iterator[None]:
        """The agent calls once at a time for a device, but a call that it gave up waiting for may still run."""
        with self._guard:
            lock = self._locks.setdefault(device_id, threading.Lock())
        with lock, kept(self._settings.state_path / device_id):
            yield
