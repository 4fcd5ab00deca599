"""One HAProxy device: brings its files and its process to the wanted state.

A change is cheap if it can be, in this order: nothing but a new marker; the runtime API (weights, members in and out of
maintenance); a reload. Files always hold what is served, so that a restart brings up the same state. VIPs are judged one by one
before HAProxy sees them: its own validation, and whether their address can be listened on. Should HAProxy refuse the rest
nevertheless, the change is halved until the VIP at fault is found; all others are applied.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lbaas_scheduler.domain.deployments import Deployment, Result, Version, VipStats
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.silence import Silence
from lbaas_scheduler.sdk.words import Endpoint
from lbaas_scheduler.vendors.haproxy import drift, stats
from lbaas_scheduler.vendors.haproxy.activation import Activation
from lbaas_scheduler.vendors.haproxy.attachments import Attachments
from lbaas_scheduler.vendors.haproxy.files import DeviceFiles, StoredVip, vip_file
from lbaas_scheduler.vendors.haproxy.options import Settings
from lbaas_scheduler.vendors.haproxy.process import HaproxyProcess, ProcessFailed, Uncontrolled, alerts
from lbaas_scheduler.vendors.haproxy.render import NO_TERMS, Rendered, Terms, render_vip
from lbaas_scheduler.vendors.haproxy.runtime import RuntimeUnavailable
from lbaas_scheduler.vendors.haproxy.words import ways

LOG = logging.getLogger(__name__)

NOT_APPLIED = Version(0, 0)
"""Listed for what is ours on the device, but is not known to serve: a resync applies it again, or removes it."""
REFUSED = "HAProxy refused the configuration: "
NO_CONTROL = "HAProxy cannot be controlled on the device."


@dataclass
class _Change:
    """One call of :meth:`Node.apply`, while it is worked on. ``refused``: VIP id → a sentence for the tenant."""

    base: str
    stored: Mapping[str, StoredVip]
    wanted: dict[str, Rendered] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


class Node:
    def __init__(self, folder: Path, settings: Settings) -> None:
        self.files = DeviceFiles(folder)
        self.attachments = Attachments(folder)
        self.process = HaproxyProcess(folder, settings.binary, settings.reload_timeout_seconds, self.attachments)
        self.ledger = stats.Ledger(self.files)
        self.activation = Activation(self.files, self.process, self.ledger)
        self._silence = Silence(settings.hang_timeout_seconds, RuntimeUnavailable)
        self._foreign: list[str] = []

    # What is there.

    def list_deployed(self) -> dict[str, Version]:
        """:raises RuntimeUnavailable: HAProxy runs and does not answer, so that nobody knows what it serves."""
        if not self.files.exists:
            self._end_unknown()
            return {}
        self._report_foreign()
        if self._end_hung():
            self._start_again()
        vips = self.files.vips()
        unsure = self.files.journal() | self.attachments.missing() | self._drifted(vips)
        found = {
            vip_id: vip.marker.version if vip.intact and vip_id not in unsure else NOT_APPLIED for vip_id, vip in vips.items()
        }
        return {**dict.fromkeys([*unsure, *self.files.held()], NOT_APPLIED), **found}

    def _end_unknown(self) -> None:
        """What lost its folder serves nobody knows what, and cannot be controlled; whatever is wanted is applied anew."""
        if self.process.pids() or self.attachments.left_behind:
            LOG.warning("%s is gone; what is left of the device is removed", self.files.folder)
            self._tear_down()

    def _drifted(self, vips: Mapping[str, StoredVip]) -> frozenset[str]:
        """Ids of VIPs that HAProxy does not serve as their files say."""
        if not self.process.running() or self.process.misplaced():
            return frozenset(vips)
        try:
            with self._silence.asking():
                return drift.find(self.process.runtime, {vip_id: vip.text for vip_id, vip in vips.items()}).all
        except RuntimeUnavailable:
            if self.process.running():
                raise
            return frozenset(vips)

    def _end_hung(self) -> bool:
        """End a HAProxy that has answered nothing for too long, and still does not. Whether it was ended."""
        if not self._silence.too_long or not self.process.running() or self.process.answers():
            return False
        LOG.error("%s: HAProxy runs and has not answered for too long; it is killed and started again", self.files.folder)
        self.process.kill()
        self._silence.ended()
        return True

    def _start_again(self) -> None:
        try:
            self.activation.alive()
            self.activation.activate()
        except ProcessFailed as error:
            LOG.warning("%s: HAProxy does not start: %s", self.files.folder, error)

    def read_stats(self) -> dict[str, VipStats]:
        vip_ids = self.files.vips() if self.files.exists else {}
        if not vip_ids:
            return {}
        try:
            with self._silence.asking():
                worker, readings = self.activation.readings()
        except RuntimeUnavailable as error:
            what = "does not answer" if self.process.running() else "is not running"
            raise DriverError(f"HAProxy {what} on the device.", operator_message=str(error)) from error
        if self.ledger.record(readings, {*vip_ids, *self.files.held()}):
            self.ledger.save()
        connections = [stats.active(rows) for rows in readings.values()]
        health = stats.members(readings[worker])
        return {vip_id: stats.vip_stats(vip_id, self.ledger, connections, health) for vip_id in vip_ids}

    def _report_foreign(self) -> None:
        """Once per finding, not once per look."""
        foreign = self.files.foreign()
        if foreign != self._foreign:
            LOG.warning("%s: left alone, not written by lbaas-scheduler: %s", self.files.folder, ", ".join(foreign) or "none")
            self._foreign = foreign

    # Applying.

    def apply(
        self, base: str, deployments: Sequence[Deployment], in_namespace: bool = False, terms: Terms = NO_TERMS
    ) -> list[Result]:
        """:param in_namespace: whether the device is to be in a network namespace of its own."""
        self.files.create()
        self._end_hung()
        self._settle_in(in_namespace)
        change = _Change(base, self.files.vips())
        self._render(change, deployments, terms)
        if in_namespace:
            self._attach(change, deployments)
        self._apply(change)
        self.attachments.keep_only({*self.files.vips(), *self.files.held()})
        if not self.files.loaded():
            self._tear_down()
        self.attachments.announce()
        return [self._result(deployment, change) for deployment in deployments]

    def _settle_in(self, in_namespace: bool) -> None:
        """A process cannot be moved: it ends, and the first activation starts another one where it should be."""
        if self.attachments.left_behind or (self.attachments.namespace is not None and not in_namespace):
            self.process.stop()
            self.attachments.leave()
        if in_namespace:
            self.attachments.enter()
        if self.process.misplaced():
            self.process.stop()

    def _attach(self, change: _Change, deployments: Sequence[Deployment]) -> None:
        wanted = [deployment for deployment in deployments if deployment.vip.id in change.wanted]
        for vip_id, error in self.attachments.attach(wanted).items():
            if vip_id in change.wanted:
                self._refuse(change, vip_id, error.message, error.operator_message)

    def _render(self, change: _Change, deployments: Sequence[Deployment], terms: Terms) -> None:
        named = {deployment.vip.id for deployment in deployments}
        beside = dict[Endpoint, tuple[Endpoint, ...]]()
        for vip_id in change.stored.keys() - named:
            beside |= ways(change.stored[vip_id].marker.bind, change.stored[vip_id].text)
        for deployment in deployments:
            vip_id = deployment.vip.id
            try:
                rendered = render_vip(deployment, terms, beside)
                if vip_id not in change.stored and self.files.occupied(vip_id):
                    raise DriverError(f"A file that is not ours is in the way on the device: {vip_file(vip_id)}.")
            except DriverError as error:
                self._refuse(change, vip_id, error.message)
                continue
            change.wanted[vip_id] = rendered
            beside |= ways(rendered.marker.bind, rendered.body)

    def _apply(self, change: _Change) -> None:
        stale = not self.activation.alive() or self.files.base() != change.base or bool(self.files.journal())
        same, live, structural = self._sort(change, stale)
        self.files.write_vips({vip_id: change.wanted[vip_id].text for vip_id in same})
        if live and not self._change_live({vip_id: change.wanted[vip_id] for vip_id in live}):
            structural += live
        self._refuse_unlistenable(change, structural)
        self._refuse_invalid(change, [vip_id for vip_id in structural if vip_id in change.wanted])
        batch = {vip_id: change.wanted[vip_id] for vip_id in structural if vip_id in change.wanted}
        if batch or (stale and self.files.loaded()):
            if self.files.base() != change.base:
                self.files.write_base(change.base)
            self._commit(change, batch)

    def _sort(self, change: _Change, stale: bool) -> tuple[list[str], list[str], list[str]]:
        """Ids of VIPs that differ in no more than their marker; in what the runtime API can change; in more than that."""
        unsure = self.files.journal()
        known = {
            vip_id: vip.text
            for vip_id, vip in change.stored.items()
            if vip_id in change.wanted
            and vip.intact
            and vip_id not in unsure
            and vip.marker.structure == change.wanted[vip_id].marker.structure
        }
        found = drift.find(self.process.runtime, known) if not stale else drift.Drift()
        same: list[str] = []
        live: list[str] = []
        structural: list[str] = []
        for vip_id, wanted in change.wanted.items():
            stored = change.stored.get(vip_id)
            if stored is None or vip_id not in known or vip_id in found.structural:
                structural.append(vip_id)
            elif vip_id in found.live or (stored.marker.digest != wanted.marker.digest and not stale):
                live.append(vip_id)
            elif stored.marker.digest != wanted.marker.digest:
                structural.append(vip_id)
            elif stored.text != wanted.text:
                same.append(vip_id)
        return same, live, structural

    def _change_live(self, wanted: Mapping[str, Rendered]) -> bool:
        """Through the runtime API. False when HAProxy would not have it that way: then a reload must do it."""
        self.files.write_journal(wanted)
        self.files.write_vips({vip_id: vip.text for vip_id, vip in wanted.items()})
        try:
            commands = [command for vip in wanted.values() for command in self._commands(vip)]
            answer = self.process.runtime.change(commands)
        except RuntimeUnavailable as error:
            answer = str(error)
        if answer:
            LOG.warning("%s: reloading, for the runtime API refused: %s", self.files.folder, answer)
            return False
        self.files.write_journal(())
        return True

    def _commands(self, vip: Rendered) -> Iterable[str]:
        present = {server.name: server for server in self.process.runtime.servers(vip.backend)}
        for server in vip.servers:
            state = present.get(server.id)
            if state is None:
                raise RuntimeUnavailable(f"the worker does not know server {server.id}")
            name = f"{vip.backend}/{server.id}"
            if state.weight != server.weight:
                yield f"set server {name} weight {server.weight}"
            if state.maintenance == server.up or state.drained:
                yield f"set server {name} state {'ready' if server.up else 'maint'}"

    def _refuse_unlistenable(self, change: _Change, vip_ids: Sequence[str]) -> None:
        ours = {vip.marker.bind for vip in change.stored.values()} if self.process.running() else set()
        taken = {vip.marker.bind for vip_id, vip in change.stored.items() if vip_id not in vip_ids}
        for vip_id in vip_ids:
            bind = change.wanted[vip_id].marker.bind
            if not bind:
                continue
            reason = f"{bind} is already in use on the device." if bind in taken else None
            if reason is None and bind not in ours:
                reason = self.activation.why_not(vip_id, bind)
            if reason is None:
                taken.add(bind)
            else:
                self._refuse(change, vip_id, reason)

    def _refuse_invalid(self, change: _Change, vip_ids: Sequence[str]) -> None:
        """One run of HAProxy for all; one for each only if that one finds a fault."""
        if not vip_ids or self._check(change, vip_ids) is None:
            return
        if (said := self._check(change, ())) is not None:
            raise DriverError("HAProxy refuses the device's settings.", operator_message=said)
        for vip_id in vip_ids:
            if (said := self._check(change, (vip_id,))) is not None:
                self._refuse(change, vip_id, REFUSED + alerts(said), said)

    def _check(self, change: _Change, vip_ids: Iterable[str]) -> str | None:
        with self.files.staged(change.base, {vip_id: change.wanted[vip_id].text for vip_id in vip_ids}) as stage:
            return self.process.check(stage)

    def _commit(self, change: _Change, batch: Mapping[str, Rendered]) -> None:
        """Write and activate; what HAProxy refuses goes back to the last good state and is halved until the fault is found."""
        before = {vip_id: change.stored[vip_id].text if vip_id in change.stored else None for vip_id in batch}
        self.files.write_journal({*batch, *self.files.journal()})
        self.files.write_vips({vip_id: vip.text for vip_id, vip in batch.items()})
        try:
            self.activation.activate()
        except ProcessFailed as error:
            self.files.write_vips(before)
            if isinstance(error, Uncontrolled):
                raise
            if not batch:
                raise DriverError("HAProxy does not start on the device.", operator_message=str(error)) from error
            if (said := self._refused_without()) is not None:
                raise DriverError("HAProxy refuses what else is on the device.", operator_message=said) from error
            if len(batch) == 1:
                self._refuse(change, next(iter(batch)), REFUSED + alerts(str(error)), str(error))
                self._recover()
            else:
                ids = list(batch)
                for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
                    self._commit(change, {vip_id: batch[vip_id] for vip_id in half})
        else:
            binds = {vip_id: change.stored[vip_id].marker.bind for vip_id in batch if before[vip_id]}
            self.activation.await_free({vip_id: old for vip_id, old in binds.items() if old != batch[vip_id].marker.bind})
            self.files.write_journal(())

    def _refused_without(self) -> str | None:
        """What HAProxy says against the files as they are: an operator's addition with a mistake in it is no VIP's fault."""
        with self.files.staged("", {}) as listener:
            return self.process.check(self.files.folder, listener)

    def _recover(self) -> None:
        """After a VIP was taken back: the others must run. They do, unless this was to be the start."""
        if not self.process.running() and self.files.loaded():
            try:
                self.activation.activate()
            except ProcessFailed as error:
                raise DriverError("HAProxy does not start on the device.", operator_message=str(error)) from error
        self.files.write_journal(())

    def _refuse(self, change: _Change, vip_id: str, reason: str, details: str = "") -> None:
        LOG.warning("%s: VIP %s: %s", self.files.folder, vip_id, details or reason)
        change.refused[vip_id] = reason
        change.wanted.pop(vip_id, None)

    def _result(self, deployment: Deployment, change: _Change) -> Result:
        vip_id = deployment.vip.id
        if vip_id in change.refused:
            return Result(vip_id, deployment.version, error=change.refused[vip_id])
        return Result(vip_id, deployment.version, object_errors=change.wanted[vip_id].errors)

    # Removing.

    def remove(self, vip_ids: Collection[str]) -> list[Result]:
        stored = self.files.vips() if self.files.exists else {}
        versions = {vip_id: stored[vip_id].marker.version for vip_id in vip_ids if vip_id in stored}
        error = None
        if not self.files.exists:
            self._end_unknown()
        else:
            try:
                self._remove(stored, set(vip_ids))
                self.attachments.keep_only({*self.files.vips(), *self.files.held()})
            except ProcessFailed as failure:
                error = f"HAProxy could not remove the VIP: {self._reason(failure)}"
        return [Result(vip_id, versions.get(vip_id, NOT_APPLIED), error, removed=error is None) for vip_id in vip_ids]

    def _remove(self, stored: Mapping[str, StoredVip], vip_ids: set[str]) -> None:
        self._end_hung()
        if not set(stored) - vip_ids and not set(self.files.held()) - vip_ids:
            self._tear_down()
            return
        unsure = self.files.journal()
        going = vip_ids & {*stored, *unsure, *self.files.held()}
        if not going:
            return
        running = self.activation.alive()
        if running:
            self.files.write_journal(unsure | going)
        self.files.write_vips(dict.fromkeys(going))
        if running:
            try:
                self.activation.activate()
            except ProcessFailed:
                self.files.write_vips({vip_id: stored[vip_id].text for vip_id in going if vip_id in stored})
                raise
            self.activation.await_free({vip_id: stored[vip_id].marker.bind for vip_id in going if vip_id in stored})
        self.files.write_journal(unsure - going)
        self.ledger.drop(going)

    def _reason(self, failure: ProcessFailed) -> str:
        """For the tenant; the log gets more."""
        if isinstance(failure, Uncontrolled):
            LOG.warning("%s: %s", self.files.folder, failure)
            return NO_CONTROL
        LOG.warning("%s: %s %s", self.files.folder, failure, self._refused_without() or "")
        return alerts(str(failure))

    def purge(self) -> None:
        """:raises ProcessFailed: a process is still there; the files are, too."""
        self._tear_down()

    def fence(self) -> None:
        """Whatever has to go for the addresses to be elsewhere; the files stay, and bring it back with the next change.

        :raises ProcessFailed: a process is still there.
        """
        self.attachments.withdraw()
        self.process.stop()

    def _tear_down(self) -> None:
        self.process.stop()
        self.attachments.leave()
        left = self.files.remove() if self.files.exists else []
        self.ledger.workers.clear()
        if left:
            LOG.warning("%s: kept, for these files are not ours: %s", self.files.folder, ", ".join(left))
