"""Compares what devices carry with what servers desire, and repairs: on start, on demand, after a loss, now and then."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping

from lbaas_scheduler.agent.contact import AWAY, Contact
from lbaas_scheduler.agent.device_sync import DeviceSync
from lbaas_scheduler.agent.gate import explain
from lbaas_scheduler.agent.loops import Backoff
from lbaas_scheduler.agent.workers import DeviceWorkers
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.rpc.server_api import SealedDevice, ServerAPI
from lbaas_scheduler.sdk.drivers import AgentDriver, DriverAbility

LOG = logging.getLogger(__name__)

THREADS = 8
"""Devices that are compared at once. Most of the time goes into waiting for servers and devices."""

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0

Job = Callable[[], None]


class Resync:
    """Decides when which device is compared; each is tried again, with back-off, until it succeeds.

    :param interval_seconds: how often everything is compared; 0 = on demand only.
    """

    def __init__(
        self,
        host: str,
        server: ServerAPI,
        contact: Contact,
        workers: DeviceWorkers,
        drivers: Mapping[str, AgentDriver],
        page_size: Callable[[], int],
        interval_seconds: Callable[[], float],
    ) -> None:
        self._host = host
        self._server = server
        self._contact = contact
        self._workers = workers
        self._drivers = drivers
        self._interval_seconds = interval_seconds
        self._sync = DeviceSync(host, server, workers, page_size)
        self._changed = threading.Condition()
        self._due: dict[str, float] = {}
        self._all_due: float | None = None
        self._busy: set[str] = set()
        self._failing: dict[str, Backoff] = {}
        self._backoff = Backoff(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
        self._stopping = False
        self._jobs: queue.SimpleQueue[tuple[str, Job] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._plan, name="resync", daemon=True)]
        self._threads += [threading.Thread(target=self._work, name=f"resync-{n}", daemon=True) for n in range(THREADS)]

    @property
    def repaired(self) -> int:
        """How many VIPs devices did not serve as they had confirmed, since the start."""
        return self._sync.repaired

    def start(self) -> None:
        self.want_all()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin nothing more. What runs is not waited for: it changes no device but through the workers."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for _ in range(THREADS):
            self._jobs.put(None)

    def want(self, device_id: str, delay_seconds: float = 0.0) -> None:
        """Have one device compared soon. Returns at once; asked twice it is done once."""
        with self._changed:
            moment = time.monotonic() + delay_seconds
            self._due[device_id] = min(moment, self._due.get(device_id, moment))
            self._changed.notify_all()

    def want_all(self, delay_seconds: float = 0.0) -> None:
        """Have all devices compared soon, and those looked for that are no longer this agent's."""
        with self._changed:
            moment = time.monotonic() + delay_seconds
            self._all_due = moment if self._all_due is None else min(moment, self._all_due)
            self._changed.notify_all()

    # -- planning ---------------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        while (due := self._next()) is not None:
            everything, ids = due
            try:
                self._round(everything, ids)
            except Exception as error:
                self._postpone(everything, ids, error)
            else:
                self._backoff.reset()
                self._contact.made()

    def _next(self) -> tuple[bool, set[str]] | None:
        """Wait until something is due: whether everything is, and which devices are. None = stopped."""
        with self._changed:
            while not self._stopping:
                now = time.monotonic()
                everything = self._all_due is not None and self._all_due <= now
                ids = {key for key, moment in self._due.items() if moment <= now and key not in self._busy}
                if everything or ids:
                    self._all_due = self._next_time(now) if everything else self._all_due
                    self._due = {key: moment for key, moment in self._due.items() if key not in ids}
                    return everything, ids
                moments = [moment for key, moment in self._due.items() if key not in self._busy]
                moments += [] if self._all_due is None else [self._all_due]
                self._changed.wait(max(0.0, min(moments) - now) if moments else None)
        return None

    def _next_time(self, now: float) -> float | None:
        interval = self._interval_seconds()
        return now + interval if interval else None

    def _postpone(self, everything: bool, ids: set[str], error: Exception) -> None:
        self._contact.note(error)
        if not self._contact.away and not self._backoff.failing:
            LOG.error("The devices of this agent cannot be read from the server: %s", _text(error))
        delay = self._backoff.next()
        if everything:
            self.want_all(delay)
        for device_id in ids:
            self.want(device_id, delay)

    def _round(self, everything: bool, ids: set[str]) -> None:
        as_of = self._workers.ticket()
        ours = self._server.get_devices(self._host)
        gone = self._gone(everything, ids, ours)
        if gone:
            # Removing is worth a second look: a device may have been assigned to us while we compared.
            ours |= self._server.get_devices(self._host)
            self._let_go(gone - ours.keys(), as_of)
        for device_id, sealed in ours.items():
            if sealed is not None and (everything or device_id in ids):
                self._submit(device_id, lambda sealed=sealed: self._compare(sealed))  # type: ignore[misc]

    def _gone(self, everything: bool, ids: set[str], ours: Mapping[str, SealedDevice | None]) -> set[str]:
        if not everything:
            return ids - ours.keys()
        return (set(self._workers.held()) | set(self._strays())) - ours.keys()

    def _let_go(self, gone: set[str], as_of: int) -> None:
        held = self._workers.held()
        strays = self._strays()
        for device_id in gone:
            if self._is_kept(device_id):
                continue
            if device_id in held:
                self._submit(device_id, lambda device_id=device_id: self._retire(device_id, as_of))  # type: ignore[misc]
            elif device_id in strays:
                driver = strays[device_id]
                self._submit(device_id, lambda driver=driver, key=device_id: self._purge(driver, key))  # type: ignore[misc]

    def _is_kept(self, device_id: str) -> bool:
        """Whether the servers want the device left alone, though it is not ours in their list: their database was restored."""
        try:
            self._server.get_deployments(self._host, device_id, [])
        except AWAY:
            raise
        except Exception as error:
            LOG.warning("Device %s stays as it is: %s", device_id, _text(error))
            return True
        return False

    def _strays(self) -> dict[str, AgentDriver]:
        """Devices of which something of ours is on this host, and the driver that left it here."""
        found: dict[str, AgentDriver] = {}
        for driver in self._drivers.values():
            if DriverAbility.LOCAL in driver.abilities:
                try:
                    found |= dict.fromkeys(driver.local_devices(), driver)
                except Exception as error:
                    explain(driver, error)
        return found

    # -- one device -------------------------------------------------------------------------------------------------------

    def _submit(self, device_id: str, job: Job) -> None:
        with self._changed:
            if device_id in self._busy:
                self._due.setdefault(device_id, time.monotonic())
                return
            self._busy.add(device_id)
        self._jobs.put((device_id, job))

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None and not self._stopping:
            device_id, job = item
            try:
                job()
            except Exception as error:
                self._failed(device_id, error)
            else:
                self._succeeded(device_id)
            finally:
                with self._changed:
                    self._busy.discard(device_id)
                    self._changed.notify_all()

    def _compare(self, sealed: SealedDevice) -> None:
        self._workers.hold(sealed)
        self._sync.run(sealed)

    def _retire(self, device_id: str, as_of: int) -> None:
        future = self._workers.retire(device_id, as_of, _farewell)
        if future is None:
            self.want(device_id)
            return
        future.result()
        LOG.info("Device %s is no longer this agent's", device_id)

    def _purge(self, driver: AgentDriver, device_id: str) -> None:
        driver.purge(device_id)
        LOG.info("Removed device %s from this host: it is no longer this agent's", device_id)

    def _succeeded(self, device_id: str) -> None:
        if self._failing.pop(device_id, None) is not None:
            LOG.info("Device %s could be compared again", device_id)

    def _failed(self, device_id: str, error: Exception) -> None:
        self._contact.note(error)
        backoff = self._failing.setdefault(device_id, Backoff(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))
        if not backoff.failing and not self._contact.away:
            LOG.warning("Device %s cannot be compared, which is tried again: %s", device_id, _text(error))
        self.want(device_id, backoff.next())


def _farewell(driver: AgentDriver, device: Device) -> None:
    if DriverAbility.LOCAL in driver.abilities:
        driver.purge(device.id)
    else:
        driver.forget(device)


def _text(error: Exception) -> str:
    return getattr(error, "operator_message", "") or getattr(error, "message", "") or repr(error)
