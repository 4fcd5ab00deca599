"""One Envoy device: from desired state to a running process, and back to what it serves."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.errors import DriverError, InvalidRequest
from lbaas_scheduler.vendors.envoy import stats
from lbaas_scheduler.vendors.envoy.admin import Admin
from lbaas_scheduler.vendors.envoy.delivery import Delivery
from lbaas_scheduler.vendors.envoy.folder import Folder, Record
from lbaas_scheduler.vendors.envoy.options import Settings
from lbaas_scheduler.vendors.envoy.process import Process
from lbaas_scheduler.vendors.envoy.resources import Resources, Timeouts, endpoints, render

LOG = logging.getLogger(__name__)

ABSENT = Version(0, 0)
_REFUSED = "The device's Envoy refused the configuration of this VIP."


@dataclass(frozen=True, slots=True)
class Node:
    """One device on this host. ``concurrency`` = worker threads of its process when it is next started."""

    folder: Folder
    settings: Settings
    concurrency: int

    @property
    def process(self) -> Process:
        return Process(self.folder, self.settings)

    @property
    def admin(self) -> Admin:
        return Admin(self.folder.path)

    def apply(self, deployments: Sequence[Deployment]) -> list[Result]:
        records, errors = self.folder.records(), {}
        wanted: dict[str, Record] = {}
        for item in deployments:
            try:
                wanted[item.vip.id] = self._record(item)
            except InvalidRequest as error:
                errors[item.vip.id] = error.message
        errors |= self._refused_before_delivery(
            {key: new for key, new in wanted.items() if key not in records or records[key].resources != new.resources}
        )
        accepted = {key: record for key, record in wanted.items() if key not in errors}
        errors |= self._settle(records, accepted)
        return [Result(item.vip.id, item.version, errors.get(item.vip.id)) for item in deployments]

    def remove(self, vip_ids: Collection[str]) -> list[Result]:
        records = self.folder.records()
        kept = {key: record for key, record in records.items() if key not in vip_ids}
        if kept:
            self._settle(kept, {})
            for vip_id in records.keys() & set(vip_ids):
                self.folder.drop_record(vip_id)
        else:
            self.purge()
        versions = {key: record.version for key, record in records.items()}
        return [Result(vip_id, versions.get(vip_id, ABSENT), removed=True) for vip_id in vip_ids]

    def versions(self) -> dict[str, Version]:
        """What is served. Brings a process that died back first; a VIP that it then refuses is not served, nor listed."""
        records = self.folder.records()
        if records:
            self._settle(records, {})
        elif self.folder.ours():
            self.purge()
        return {key: record.version for key, record in self.folder.records().items()}

    def stats(self) -> dict[str, VipStats]:
        """:raises DriverError: the process is dead."""
        records = self.folder.records()
        if not records:
            return {}
        if not self.process.pids():
            raise DriverError("The device's Envoy is not running.", operator_message=f"{self.folder.path}: no process")
        return stats.read(self.admin, records)

    def purge(self) -> None:
        """Stop the process and remove the folder, if it is ours."""
        self.process.stop()
        if self.folder.ours():
            self.folder.destroy()

    def _record(self, item: Deployment) -> Record:
        timeouts = Timeouts(self.settings.connect_timeout, self.settings.idle_timeout)
        checked = any(monitor.admin_state_up for monitor in item.vip.pool.health_monitors)
        return Record(item.version, render(item.vip, timeouts), dict(endpoints(item.vip.pool)), checked)

    def _refused_before_delivery(self, changed: Mapping[str, Record]) -> dict[str, str]:
        """Ask a second Envoy first: the running one refuses a whole file for one value that it cannot read.

        The VIPs are halved until the bad ones are found: few questions where few are bad, one where none is.
        """
        if not any(record.resources.cluster for record in changed.values()):
            return {}
        resources = [record.resources for record in changed.values()]
        said = self.process.validate(
            [item.cluster for item in resources if item.cluster], [item.listener for item in resources if item.listener]
        )
        if said is None:
            return {}
        if len(changed) == 1:
            LOG.error("Envoy refuses VIP %s: %s", *changed, said)
            return dict.fromkeys(changed, _REFUSED)
        names = list(changed)
        halves = names[: len(names) // 2], names[len(names) // 2 :]
        refused: dict[str, str] = {}
        for half in halves:
            refused |= self._refused_before_delivery({name: changed[name] for name in half})
        return refused

    def _settle(self, present: Mapping[str, Record], accepted: Mapping[str, Record]) -> dict[str, str]:
        """Make the process serve ``present`` with ``accepted`` in place of what it had, and keep the records true.

        A VIP that the process refuses goes back to what it had; one that it refuses even so (its port was taken while the
        process was dead, say) is given up, and its record with it.
        """
        errors: dict[str, str] = {}
        serving = {**present, **accepted}
        if serving:
            self._ensure_started()
        while refused := self._deliver(serving):
            for vip_id, reason in refused.items():
                LOG.error("Envoy refuses VIP %s on device %s: %s", vip_id, self.folder.path.name, reason)
                errors[vip_id] = reason
                previous = present.get(vip_id)
                if previous is None or serving[vip_id] is previous:
                    del serving[vip_id]
                    self.folder.drop_record(vip_id)
                else:
                    serving[vip_id] = previous
        for vip_id in accepted.keys() - errors.keys():
            self.folder.write_record(vip_id, accepted[vip_id])
        if not serving:
            self.purge()
        return errors

    def _deliver(self, serving: Mapping[str, Record]) -> dict[str, str]:
        wanted: dict[str, Resources] = {key: record.resources for key, record in serving.items()}
        if not wanted:
            return {}
        delivery = Delivery(self.folder, self.admin, float(self.settings.change_timeout))
        refused = {} if delivery.served(wanted) else delivery.deliver(wanted)
        # A name that we did not ask for is of a change before this one; the files that we wrote have put it right.
        return {key: reason for key, reason in refused.items() if key in serving}

    def _ensure_started(self) -> None:
        running = bool(self.process.pids())
        if running and not self.folder.ours():
            # Its folder was removed under its feet, and with it the socket through which it can be spoken to.
            self.process.stop()
        if not running or not self.folder.ours():
            LOG.info("Starting Envoy for device %s", self.folder.path.name)
            self.process.start(self.concurrency)
