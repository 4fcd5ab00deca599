"""Brings one device from what it carries to what is desired of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from lbaas_scheduler.agent.changes import Change
from lbaas_scheduler.agent.contact import AWAY
from lbaas_scheduler.agent.workers import DeviceWorkers
from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.errors import ConfigurationError, DriverError
from lbaas_scheduler.rpc.server_api import Desired, Operation, SealedDevice, ServerAPI

LOG = logging.getLogger(__name__)

DRIFTED = Version(0, 0)
"""What drivers list for a VIP of ours that is there and does not serve as it was applied."""

MAX_DOCUMENTS = 50
"""VIPs fetched at once, whatever ``page_size`` says: one of 10,000 members takes over a megabyte on the bus."""


class DeviceSync:
    """Compares one device and offers its worker what differs. Drives the device through its worker only."""

    def __init__(self, host: str, server: ServerAPI, workers: DeviceWorkers, page_size: Callable[[], int]) -> None:
        self._host = host
        self._server = server
        self._workers = workers
        self._page_size = page_size
        self._smaller: dict[str, int] = {}
        """Device id → how many VIPs to fetch at once, where an answer with more of them did not come."""
        self._counting = threading.Lock()
        self.repaired = 0
        """VIPs that a device had and did not serve as it had confirmed, and that were applied again; since the start."""

    def run(self, sealed: SealedDevice) -> None:
        """Compare, and have repaired.

        What is there is read *before* what is desired: whatever was deployed by then and is still wanted is in the list.

        :raises Exception: the device or the servers cannot be read; what could be read was repaired.
        """
        device_id = sealed.device.id
        as_of = self._workers.ticket()
        deployed = self._deployed(sealed)
        desired = list(self._desired(device_id))
        rest = self._workers.adopt(device_id, desired, as_of)
        self._workers.offer(sealed, [Change.remove(line.vip_id, line.version) for line in rest if _goes(line)])
        missing = [line.vip_id for line in rest if not _goes(line) and deployed.get(line.vip_id) != line.version]
        self._count_drift(device_id, [vip_id for vip_id in missing if deployed.get(vip_id) == DRIFTED])
        failed = self._fetch(sealed, missing)
        self._smaller.pop(device_id, None)
        self._remove_orphans(device_id, deployed, {line.vip_id for line in desired}, as_of)
        if failed:
            raise DriverError(f"{len(failed)} VIPs could not be fetched, the first: {failed[0]}")

    def _count_drift(self, device_id: str, vip_ids: Sequence[str]) -> None:
        if vip_ids:
            LOG.warning(
                "Device %s does not serve %d VIPs as it confirmed, the first: %s; they are applied again",
                device_id, len(vip_ids), vip_ids[0],
            )  # fmt: skip
            with self._counting:
                self.repaired += len(vip_ids)

    def _deployed(self, sealed: SealedDevice) -> Mapping[str, Version]:
        try:
            answer: Mapping[str, Version] = self._workers.ask(
                sealed, lambda driver, device: driver.list_deployed(device)
            ).result()
        except DriverError as error:
            self._workers.fail_waiting(sealed.device.id, error.message)
            raise
        except ConfigurationError:
            self._workers.fail_waiting(sealed.device.id, "The agent's configuration does not allow to reach the device.")
            raise
        except Exception:
            self._workers.fail_waiting(sealed.device.id, "The device driver failed unexpectedly.")
            raise
        return answer

    def _desired(self, device_id: str) -> Iterator[Desired]:
        marker: str | None = None
        while True:
            limit = self._page_size()
            page = self._server.list_desired(self._host, device_id, marker, limit)
            yield from page
            if len(page) < limit:
                return
            marker = page[-1].vip_id

    def _fetch(self, sealed: SealedDevice, vip_ids: Sequence[str]) -> list[str]:
        """Fetch and offer VIPs; returns those that could not be fetched."""
        failed: list[str] = []
        device_id = sealed.device.id
        size = min(self._page_size(), self._smaller.get(device_id, MAX_DOCUMENTS))
        for start in range(0, len(vip_ids), size):
            try:
                found, bad = self._documents(device_id, vip_ids[start : start + size])
            except AWAY:
                # Nobody is there, or what is there is more than the broker takes: the next try asks for less.
                self._smaller[device_id] = max(1, size // 2)
                raise
            self._workers.offer(sealed, [Change.apply(deployment) for deployment in found])
            failed += bad
        return failed

    def _documents(self, device_id: str, vip_ids: Sequence[str]) -> tuple[list[Deployment], list[str]]:
        """Fetch documents. A page that fails is halved, until the VIP at fault stands alone: it must not stop the others."""
        try:
            return self._server.get_deployments(self._host, device_id, vip_ids), []
        except AWAY:
            raise
        except Exception as error:
            if len(vip_ids) == 1:
                LOG.error("VIP %s cannot be fetched: %s", vip_ids[0], getattr(error, "message", repr(error)))
                return [], list(vip_ids)
        half = len(vip_ids) // 2
        found, failed = self._documents(device_id, vip_ids[:half])
        more_found, more_failed = self._documents(device_id, vip_ids[half:])
        return found + more_found, failed + more_failed

    def _remove_orphans(self, device_id: str, deployed: Mapping[str, Version], wanted: Collection[str], as_of: int) -> None:
        """Remove what carries our marker and is in nobody's list, after a second look: removing the wrong one hurts a tenant."""
        orphans = [vip_id for vip_id in deployed if vip_id not in wanted]
        size = min(self._page_size(), MAX_DOCUMENTS)
        for start in range(0, len(orphans), size):
            page = orphans[start : start + size]
            found, failed = self._documents(device_id, page)
            keep = {deployment.vip.id for deployment in found} | set(failed)
            changes = [Change.remove(vip_id, deployed[vip_id], orphan=True) for vip_id in page if vip_id not in keep]
            self._workers.offer_orphans(device_id, changes, as_of)


def _goes(line: Desired) -> bool:
    return line.operation is Operation.REMOVE
