"""One Envoy device: from desired state to a running process, and back to what it serves."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.listening import in_use, why_not
from lbaas_scheduler.sdk.silence import Silence
from lbaas_scheduler.sdk.words import Endpoint
from lbaas_scheduler.vendors.envoy import stats
from lbaas_scheduler.vendors.envoy.admin import Admin
from lbaas_scheduler.vendors.envoy.delivery import Delivery
from lbaas_scheduler.vendors.envoy.folder import Folder, Record
from lbaas_scheduler.vendors.envoy.options import Settings
from lbaas_scheduler.vendors.envoy.process import Process
from lbaas_scheduler.vendors.envoy.resources import Resources, open_address, place, places, render, shares, sharing

LOG = logging.getLogger(__name__)

ABSENT = Version(0, 0)
OPENING_SECONDS = 1.0
POLL_SECONDS = 0.05
_REFUSED = "The device's Envoy refused the configuration of this VIP."


@dataclass(frozen=True, slots=True)
class Node:
    """One device on this host. ``concurrency`` = worker threads of its process when it is next started."""

    folder: Folder
    settings: Settings
    concurrency: int
    silence: Silence

    @property
    def process(self) -> Process:
        return Process(self.folder, self.settings)

    @property
    def _delivery(self) -> Delivery:
        return Delivery(self.folder, self.admin, float(self.settings.change_timeout), self.process.open_addresses)

    @property
    def admin(self) -> Admin:
        return Admin(self.folder.path)

    def apply(self, deployments: Sequence[Deployment]) -> list[Result]:
        self._end_hung()
        records = self.folder.records()
        wanted, parts, errors = self._render(records, deployments)
        errors |= self._refused_before_delivery(
            {key: new for key, new in wanted.items() if key not in records or records[key].resources != new.resources}
        )
        accepted = {key: record for key, record in wanted.items() if key not in errors}
        errors |= self._settle(records, accepted)
        return [Result(it.vip.id, it.version, errors.get(it.vip.id), parts.get(it.vip.id, {})) for it in deployments]

    def remove(self, vip_ids: Collection[str]) -> list[Result]:
        self._end_hung()
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
        """What is served. Brings a process that died back first; a VIP that it then refuses is not served, nor listed.

        What the process did not serve as it was confirmed is put right, and listed as :data:`ABSENT` this once.
        """
        self._end_hung()
        records = self.folder.records()
        drifted: frozenset[str] = frozenset()
        if records:
            with self.silence.asking():
                drifted = self._drifted(records)
                self._settle(records, {})
        elif self.folder.ours() or self.process.pids():
            self.purge()
        return {key: ABSENT if key in drifted else record.version for key, record in self.folder.records().items()}

    def stats(self) -> dict[str, VipStats]:
        """:raises DriverError: the process is dead."""
        records = self.folder.records()
        if not records:
            return {}
        if not self.process.pids():
            raise DriverError("The device's Envoy is not running.", operator_message=f"{self.folder.path}: no process")
        with self.silence.asking():
            return stats.read(self.admin, records)

    def purge(self) -> None:
        """Stop the process and remove the folder, if it is ours."""
        self.process.stop()
        if self.folder.ours():
            self.folder.destroy()

    def _render(
        self, records: Mapping[str, Record], deployments: Sequence[Deployment]
    ) -> tuple[dict[str, Record], dict[str, Mapping[str, str]], dict[str, str]]:
        """By VIP: what it is to be, what of it is left out and why, and why all of it is."""
        wanted: dict[str, Record] = {}
        parts: dict[str, Mapping[str, str]] = {}
        errors: dict[str, str] = {}
        named = {item.vip.id for item in deployments}
        beside: dict[Endpoint, tuple[Endpoint, ...]] = {}
        for vip_id, record in records.items():
            if vip_id not in named:
                beside |= _ways(record.resources)
        for item in deployments:
            try:
                found = render(item.vip, self.settings.terms(), beside)
            except DriverError as error:
                errors[item.vip.id] = error.message
                continue
            resources, before = found.resources, records.get(item.vip.id)
            if before is not None and not shares(before.resources):
                # Opened by an earlier release: Envoy refuses to change it.
                resources = sharing(resources, False)
            wanted[item.vip.id] = Record(item.version, resources, found.members, found.checked)
            parts[item.vip.id] = found.errors
            beside |= _ways(found.resources)
        return wanted, parts, errors

    def _drifted(self, records: Mapping[str, Record]) -> frozenset[str]:
        """Ids of VIPs that a running Envoy does not serve as it was told to."""
        if not self.process.pids() or not self.folder.ours():
            return frozenset()
        resources = {key: record.resources for key, record in records.items()}
        return frozenset({*self._delivery.changed(resources), *self._closed(resources)})

    def _closed(self, resources: Mapping[str, Resources]) -> set[str]:
        """Ids of VIPs whose address Envoy does not listen on."""
        here = self.process.open_addresses()
        wanted = {key: open_address(item) for key, item in resources.items()}
        return {key for key, endpoint in wanted.items() if endpoint is not None and endpoint not in here}

    def _stays_closed(self, records: Mapping[str, Record]) -> bool:
        """Whether an address is not listened on, now and for a moment: worker threads open it after the fact."""
        resources = {key: record.resources for key, record in records.items()}
        deadline = time.monotonic() + OPENING_SECONDS
        while self._closed(resources):
            if time.monotonic() >= deadline:
                return True
            time.sleep(POLL_SECONDS)
        return False

    def _end_hung(self) -> None:
        """End an Envoy that has answered nothing for too long, and still does not. What follows starts another one."""
        if self.silence.too_long and self.process.pids() and not self.admin.ready():
            LOG.error("%s: Envoy runs and has not answered for too long; it is killed and started again", self.folder.path)
            self.process.kill()
            self.silence.ended()

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
        if (present or accepted) and self._ensure_started(present):
            present, accepted = self._opened_anew(present), self._opened_anew(accepted)
            for vip_id in present:
                self.folder.write_record(vip_id, present[vip_id])
        serving = {**present, **accepted}
        while refused := self._unlistenable(serving) or self._deliver(serving):
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

    def _opened_anew(self, records: Mapping[str, Record]) -> dict[str, Record]:
        """For a process that has opened nothing yet: what an earlier release did not share is shared from now on."""
        found = dict(records)
        for vip_id, record in records.items():
            if not shares(record.resources):
                found[vip_id] = replace(record, resources=sharing(record.resources, True))
        return found

    def _unlistenable(self, serving: Mapping[str, Record]) -> dict[str, str]:
        """Id → reason for each VIP whose address Envoy cannot have to itself.

        It would share one with whoever of its user lets it. Only another device of this agent may be there, and only while it
        hands the same VIP over: each gets a part of the new connections for so long, and both serve.
        """
        refused: dict[str, str] = {}
        for vip_id in sorted(self._closed({key: record.resources for key, record in serving.items()})):
            endpoint = open_address(serving[vip_id].resources)
            assert endpoint is not None
            reason = why_not(endpoint)
            if in_use(reason) and self.folder.moves(vip_id, endpoint):
                reason = why_not(endpoint, shared=True)
            if reason is not None:
                refused[vip_id] = reason
        return refused

    def _deliver(self, serving: Mapping[str, Record]) -> dict[str, str]:
        wanted: dict[str, Resources] = {key: record.resources for key, record in serving.items()}
        if not wanted:
            return {}
        refused = {} if self._delivery.served(wanted) else self._delivery.deliver(wanted)
        # A name that we did not ask for is of a change before this one; the files that we wrote have put it right.
        return {key: reason for key, reason in refused.items() if key in serving}

    def _ensure_started(self, present: Mapping[str, Record]) -> bool:
        """Whether a process had to be started."""
        running = bool(self.process.pids())
        # Its folder may have been removed under its feet, and with it the socket through which it can be spoken to. And an
        # Envoy that was told to drain its listeners takes no others.
        useless = running and (not self.folder.ours() or self._stays_closed(present))
        if useless:
            LOG.warning("Envoy of device %s does not serve what it was told to, and is replaced", self.folder.path.name)
            self.process.stop()
        if not running or useless:
            LOG.info("Starting Envoy for device %s", self.folder.path.name)
            self.process.start(self.concurrency)
            return True
        return False


def _ways(resources: Resources) -> dict[Endpoint, tuple[Endpoint, ...]]:
    """Where a VIP is → where its members are."""
    if resources.listener is None or resources.cluster is None:
        return {}
    return {place(resources.listener): places(resources.cluster)}
