"""Reads counters and member health from the devices and sends them to the servers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from lbaas_scheduler.agent.contact import Contact
from lbaas_scheduler.agent.loops import Backoff
from lbaas_scheduler.agent.resync import Resync
from lbaas_scheduler.agent.workers import DeviceWorkers
from lbaas_scheduler.rpc.server_api import SealedDevice, ServerAPI

LOG = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 6.0
LONGEST_WAIT_SECONDS = 300.0


class Stats:
    """One round per step, over the devices that have nothing else to do.

    A device whose statistics cannot be read may have lost its process or its configuration: it is compared, with back-off, and
    no other is.
    """

    def __init__(
        self,
        host: str,
        server: ServerAPI,
        contact: Contact,
        workers: DeviceWorkers,
        resync: Resync,
        interval_seconds: Callable[[], float],
    ) -> None:
        self._host = host
        self._server = server
        self._contact = contact
        self._workers = workers
        self._resync = resync
        self._interval_seconds = interval_seconds
        self._asked: dict[str, Future[Any]] = {}
        self._failing: dict[str, tuple[Backoff, float]] = {}

    def collect(self) -> None:
        """Ask, wait a little, and send what was answered. What comes later is sent in the next round."""
        for sealed in self._workers.ready():
            if sealed.device.id not in self._asked:
                self._asked[sealed.device.id] = self._ask(sealed)
        wait(self._asked.values(), timeout=self._interval_seconds() / 4)
        for device_id, future in list(self._asked.items()):
            if future.done():
                del self._asked[device_id]
                self._take(device_id, future)
        self._forget()

    def _ask(self, sealed: SealedDevice) -> Future[Any]:
        return self._workers.ask(sealed, lambda driver, device: driver.read_stats(device))

    def _take(self, device_id: str, future: Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            self._failed(device_id, error)
            return
        if self._failing.pop(device_id, None) is not None:
            LOG.info("Statistics of device %s can be read again", device_id)
        if future.result() and not self._contact.away:
            self._send(device_id, future.result())

    def _send(self, device_id: str, stats: Any) -> None:
        try:
            self._server.report_stats(self._host, device_id, stats)
        except Exception as error:
            self._contact.note(error)
            LOG.debug("Statistics of device %s could not be sent: %r", device_id, error)

    def _failed(self, device_id: str, error: BaseException) -> None:
        now = time.monotonic()
        backoff, moment = self._failing.get(device_id, (Backoff(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS), now))
        if not backoff.failing:
            LOG.warning("Statistics of device %s cannot be read: %s", device_id, getattr(error, "operator_message", repr(error)))
        if moment <= now:
            self._resync.want(device_id)
            moment = now + backoff.next()
        self._failing[device_id] = (backoff, moment)

    def _forget(self) -> None:
        held = self._workers.held()
        self._failing = {key: value for key, value in self._failing.items() if key in held}
