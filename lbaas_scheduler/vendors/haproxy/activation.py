"""Makes HAProxy run with a folder's files as they are, with as little loss as a reload allows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import listening
from lbaas_scheduler.vendors.haproxy import drift, listeners, stickiness
from lbaas_scheduler.vendors.haproxy.files import DeviceFiles
from lbaas_scheduler.vendors.haproxy.process import HaproxyProcess, ProcessFailed, until
from lbaas_scheduler.vendors.haproxy.runtime import RuntimeUnavailable, state_file
from lbaas_scheduler.vendors.haproxy.stats import Ledger

LOG = logging.getLogger(__name__)

CLOSING_SECONDS = 1.0
"""How long the sockets of a process that has ended may stay open: the kernel closes them a moment later."""


class Activation:
    def __init__(self, files: DeviceFiles, process: HaproxyProcess, ledger: Ledger) -> None:
        self.files = files
        self.process = process
        self.ledger = ledger

    def alive(self) -> bool:
        """Whether HAProxy runs. If not, what a crash left of it is ended: it may hold addresses, and nobody else would end it."""
        if self.process.running():
            return True
        self.process.stop()
        until(lambda: not self._unlistenable(), CLOSING_SECONDS)
        return False

    def activate(self) -> None:
        """Let HAProxy run with the files as they are.

        :raises ProcessFailed: what ran before goes on.
        """
        if self.process.running():
            self._reload()
            return
        self.files.write("state", state_file(()))
        self._hold_back(self._unlistenable())
        try:
            self.process.start()
        except ProcessFailed:
            broken = self._broken()
            if not broken:
                raise
            self._hold_back(broken)
            self.process.start()

    def _reload(self) -> None:
        clients = self._carry_over()
        self.process.reload()
        lost = self._hand_over(clients)
        if lost:
            LOG.warning("%s: %d client(s) lost their member at the reload", self.files.folder, lost)

    def _hand_over(self, clients: stickiness.Tables) -> int:
        """:returns: how many clients lost their member."""
        try:
            return stickiness.write(self.process.runtime, clients)
        except RuntimeUnavailable as error:
            LOG.warning("%s: the new worker does not take clients over: %s", self.files.folder, error)
            return len(clients.clients) + clients.lost

    def _carry_over(self) -> stickiness.Tables:
        """Save what the old worker knows and the new one would not, and return its sticky clients.

        Members that are down stay down, where they would count as up until their first check. That is so only if the new file
        has a check for them: without one, they would stay down for ever. And HAProxy would take over the port where they are now,
        whatever the new file says.
        """
        runtime = self.process.runtime
        # What the last reload left is out of date, should we learn nothing now.
        self.files.write("state", state_file(()))
        try:
            servers = runtime.servers()
            vips = self.files.vips()
            texts = [vip.text for vip in vips.values()]
            checked = _backends(texts, "\n    timeout check ")
            down = [server for server in servers if server.down and server.backend in checked]
            self.files.write("state", state_file(drift.at_home(texts, down)))
            _, readings = self.readings()
            self.ledger.record(readings, {*vips, *self.files.held()})
            self.ledger.save()
            return stickiness.read(runtime, _backends(texts, "\n    stick-table "), servers)
        except RuntimeUnavailable as error:
            LOG.warning("%s: the old worker's state is lost: %s", self.files.folder, error)
            return stickiness.Tables()

    def why_not(self, vip_id: str, bind: str) -> str | None:
        """None when HAProxy can listen on ``bind`` for the VIP, else a sentence for the tenant.

        Another device of this agent may listen there for the same VIP, which is handed over: each gets a part of the new
        connections for so long, and both serve. Nobody else may: he would get a part of them, too.
        """
        namespace = self.process.attachments.namespace
        reason = listeners.why_not(bind, namespace)
        if listening.in_use(reason) and bind in self.files.binds_elsewhere(vip_id):
            return listeners.why_not(bind, namespace, shared=True)
        return reason

    def _unlistenable(self) -> list[str]:
        return [
            vip_id
            for vip_id, vip in self.files.vips().items()
            if vip.marker.bind and self.why_not(vip_id, vip.marker.bind) is not None
        ]

    def _broken(self) -> list[str]:
        """VIPs whose file HAProxy no longer accepts: edited by hand, or written for another version of it."""
        base = self.files.base() or ""
        broken = []
        for vip_id, vip in self.files.vips().items():
            with self.files.staged(base, {vip_id: vip.text}) as stage:
                if self.process.check(stage) is not None:
                    broken.append(vip_id)
        return broken

    def _hold_back(self, vip_ids: Sequence[str]) -> None:
        for vip_id in vip_ids:
            LOG.warning("%s: VIP %s cannot be served now and is put aside", self.files.folder, vip_id)
            self.files.hold(vip_id)

    def readings(self) -> tuple[int, dict[int, list[dict[str, str]]]]:
        """The current worker's pid, and what each living worker has counted. An old one that answers nothing is ended.

        :raises RuntimeUnavailable: HAProxy is dead, or its master does not answer.
        """
        processes = self.process.runtime.processes()
        if processes.worker is None:
            raise RuntimeUnavailable("the master process has no worker")
        readings = {processes.worker: self.process.runtime.show_stat(processes.worker)}
        for pid in processes.old:
            try:
                readings[pid] = self.process.runtime.show_stat(pid)
            except RuntimeUnavailable:
                self.process.end_old(pid)
        return processes.worker, readings

    def await_free(self, binds: Mapping[str, str]) -> None:
        """Wait until addresses that no VIP listens on any more are closed, but for those that were handed over.

        :param binds: VIP id → where it listened.
        :raises DriverError: one of them is still open.
        """
        wanted = {vip.marker.bind for vip in self.files.vips().values()} if binds else set()
        namespace = self.process.attachments.namespace
        for vip_id, bind in binds.items():
            if bind in wanted or not bind or bind in self.files.binds_elsewhere(vip_id):
                continue
            if not until(partial(listeners.free, bind, namespace), self.process.timeout_seconds):
                raise DriverError(f"{bind} is still listened on.")


def _backends(texts: Iterable[str], having: str) -> set[str]:
    """Names of the backends of those files that have the given text."""
    return {text.partition("\nbackend ")[2].partition("\n")[0] for text in texts if having in text}
