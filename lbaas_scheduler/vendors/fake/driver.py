"""The agent's side of the fake vendor. A real driver replaces the rack by its device's own interface."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from oslo_config import cfg

from lbaas_scheduler.domain.deployments import Deployment, MemberHealth, Result, Version, VipStats
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.sdk.drivers import AgentDriver
from lbaas_scheduler.vendors.fake import faults, options
from lbaas_scheduler.vendors.fake.faults import Faults
from lbaas_scheduler.vendors.fake.rack import IN_MEMORY, Call, Contents, Deployed, FolderRack, Rack

ABSENT = Version(0, 0)


class FakeDriver(AgentDriver):
    """Keeps what it is told. ``device.extra`` says what goes wrong, see :mod:`.faults`."""

    device_type = "fake"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        folder = conf[options.GROUP].state_path
        self._rack: Rack = FolderRack(Path(folder)) if folder else IN_MEMORY
        self._stopped = threading.Event()

    @classmethod
    def register_opts(cls, conf: object) -> None:
        options.register_opts(cast("cfg.ConfigOpts", conf))

    def apply(self, device: Device, deployments: Sequence[Deployment]) -> Sequence[Result]:
        told = self._begin(device, "apply", [deployment.vip.id for deployment in deployments])
        good = [deployment for deployment in deployments if deployment.vip.id not in told.fail_vips]
        if "apply" not in told.lie:
            self._rack.change(device.id, lambda contents: contents.with_vips(good))
        return [_applied(deployment, told) for deployment in deployments]

    def remove(self, device: Device, vip_ids: Collection[str]) -> Sequence[Result]:
        told = self._begin(device, "remove", vip_ids)
        contents = self._rack.read(device.id)
        results = [_removed(vip_id, contents, told) for vip_id in vip_ids]
        if "remove" not in told.lie:
            gone = {result.vip_id for result in results if result.removed}
            self._rack.change(device.id, lambda contents: contents.without(gone))
        return results

    def list_deployed(self, device: Device) -> Mapping[str, Version]:
        told = self._begin(device, "list_deployed")
        if "list_deployed" in told.lie:
            return {}
        return {vip_id: deployed.version for vip_id, deployed in self._rack.read(device.id).vips.items()}

    def read_stats(self, device: Device) -> Mapping[str, VipStats]:
        told = self._begin(device, "read_stats")
        if "read_stats" in told.lie:
            return {}
        return {vip_id: _stats(deployed, told) for vip_id, deployed in self._rack.read(device.id).vips.items()}

    def stop(self) -> None:
        self._stopped.set()

    def contents(self, device_id: str) -> Contents:
        """What the device holds and which calls it saw. For tests; no part of the interface."""
        return self._rack.read(device_id)

    def _begin(self, device: Device, call: str, vip_ids: Collection[str] = ()) -> Faults:
        """Record the call, then let it be as slow and as broken as the device was told to be."""
        self._rack.change(device.id, lambda contents: contents.called(Call(call, tuple(vip_ids))))
        told = faults.parse(device.extra)
        self._stopped.wait(told.delay(call))
        told.strike(call)
        return told


def _applied(deployment: Deployment, told: Faults) -> Result:
    if deployment.vip.id in told.fail_vips:
        return Result(deployment.vip.id, deployment.version, "The fake device was told to fail this VIP.")
    failed = {
        member.id: "The fake device was told to fail this member."
        for member in deployment.vip.pool.members
        if member.id in told.fail_members
    }
    return Result(deployment.vip.id, deployment.version, object_errors=failed)


def _removed(vip_id: str, contents: Contents, told: Faults) -> Result:
    version = contents.vips[vip_id].version if vip_id in contents.vips else ABSENT
    if vip_id in told.stuck_vips:
        return Result(vip_id, version, "The fake device was told to keep this VIP.")
    return Result(vip_id, version, removed=True)


def _stats(deployed: Deployed, told: Faults) -> VipStats:
    pool = deployed.document["pool"]
    checked = any(monitor["admin_state_up"] for monitor in pool["health_monitors"])
    members = {
        member["id"]: MemberHealth(_health(member["id"], checked, told)) for member in pool["members"] if member["admin_state_up"]
    }
    return VipStats(**told.counters, members=members)


def _health(member_id: str, checked: bool, told: Faults) -> bool | None:
    if member_id in told.down_members:
        return False
    return True if checked else None
