"""Active monitoring: the servers ask devices how they are, if their handlers can.

What counts is the device, not its agent: an agent that falls silent says nothing of its devices, and a device that is gone is
OFFLINE whatever its agent says. A device that comes back may have lost everything, or hold what has moved away meanwhile: it is
SYNCING, and takes nothing new, until all that should be on it was applied anew.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from lbaas_scheduler.db import deployments, device_checks, devices, schedulable
from lbaas_scheduler.db.devices import StoredDevice
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.periodic import Periodic
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.domain.clock import utcnow
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.statuses import DeviceStatus
from lbaas_scheduler.errors import DeviceNotFound, DriverError, InvalidRequest, LBaaSError
from lbaas_scheduler.scheduler.gate import HandlerBusy, HandlerGate
from lbaas_scheduler.sdk.handlers import Ability, DeviceHandler, HealthReport

LOG = logging.getLogger(__name__)

JITTER = 0.2
"""Each pause between two checks of a device differs by up to this share, so that a fleet registered at once spreads out."""

LOOK_SECONDS = 1.0
"""How often a server looks for devices that are due."""

RECHECK_SECONDS = 1.0
"""Pause between checks of a device that is coming back or may be failing."""

MAX_DETAIL = 255

MAX_STUCK_CALLS = 1000
"""Devices of one type whose answers may be overdue; each holds a thread. Beyond, nothing is said of the others."""

Tell = Callable[[str], object]
"""Device id → its agent is to look at it: fetch what should be on it, and compare."""


@dataclass(frozen=True, slots=True)
class Check:
    """What came of asking one device. ``failures``: how many checks in a row failed."""

    device_id: str
    before: DeviceStatus
    status: DeviceStatus
    online: bool
    detail: str
    failures: int


class Monitor:
    """Asks devices that are due. Any number of servers do so: each check is a claimed row.

    :param handlers: (service, device type) → handler.
    :param heard_since: an agent that was heard since then is alive.
    :param tell: called after a device came back.
    :param conf: its group ``scheduler`` is read anew in every round; but for ``check_workers``.
    """

    def __init__(
        self,
        database: Database,
        handlers: Mapping[tuple[str, str], DeviceHandler],
        vault: Vault,
        heard_since: Callable[[], datetime],
        tell: Tell,
        conf: cfg.ConfigOpts,
    ) -> None:
        self._database = database
        self._vault = vault
        self._heard_since = heard_since
        self._tell = tell
        self._conf = conf
        self._workers = conf.scheduler.check_workers
        # Gates of its own: devices that do not answer must not use up the calls that placements may make.
        able = {key: handler for key, handler in handlers.items() if Ability.MONITOR in handler.abilities}
        self._gates = {
            (service, kind): HandlerGate({kind: handler}, conf.scheduler.check_timeout_seconds, MAX_STUCK_CALLS)
            for (service, kind), handler in able.items()
        }
        self._asking = _Asking()
        self._choose = random.Random()  # noqa: S311 - spreads load, hides nothing
        self._thread = Periodic("monitor", self._try_once, self._pause)
        self._failing = False

    def start(self) -> None:
        """Run in a thread of its own until :meth:`stop`. Without a handler that can ask there is nothing to run."""
        if self._gates:
            self._thread.start()

    def stop(self) -> None:
        """End, and return once the checks that are under way have ended. May be called without :meth:`start`, and twice."""
        self._thread.stop()

    def run_once(self) -> list[Check]:
        """Ask all devices that are due."""
        done: list[Check] = []
        with ThreadPoolExecutor(self._workers, thread_name_prefix="check") as pool:
            while due := self._claim():
                done += [check for check in pool.map(self._isolated, due) if check is not None]
                if self._thread.stopping or len(due) < self._workers:
                    break
        return done

    def check(self, device_id: str) -> Check:
        """Ask a device now, whenever its next check is due.

        :raises DeviceNotFound: there is no such device.
        :raises DriverError: its handler is too busy to ask it.
        :raises InvalidRequest: its handler cannot ask it.
        """
        stored = self._database.read(lambda conn: devices.get(conn, device_id))
        if stored is None:
            raise DeviceNotFound(id=device_id)
        kind = (stored.device.service, stored.device.device_type)
        if kind not in self._gates:
            raise InvalidRequest(reason=f"devices of type '{kind[1]}' cannot be asked how they are; their agents report on them")
        self._database.write(lambda conn: device_checks.check_soon(conn, device_id, self._later()))
        return self._check(stored)

    def _try_once(self) -> None:
        try:
            self.run_once()
        except Exception as error:
            if not self._failing:
                LOG.exception("Devices cannot be checked; it is tried again: %s", error)
            self._failing = True
        else:
            self._failing = False

    def _pause(self) -> float:
        return LOOK_SECONDS * self._choose.uniform(1 - JITTER, 1 + JITTER)

    @property
    def _options(self) -> Any:
        return self._conf.scheduler

    def _later(self) -> datetime:
        seconds = self._options.check_interval_seconds * self._choose.uniform(1 - JITTER, 1 + JITTER)
        return utcnow() + timedelta(seconds=seconds)

    def _claim(self) -> list[str]:
        kinds, now = list(self._gates), utcnow()
        return self._database.write(lambda conn: device_checks.claim(conn, kinds, now, self._workers, self._later))

    def _isolated(self, device_id: str) -> Check | None:
        """One device's check that cannot be made, or recorded, stops no other."""
        try:
            stored = self._database.read(lambda conn: devices.get(conn, device_id))
            return None if stored is None else self._check(stored)
        except HandlerBusy:
            return None  # the gate has said so
        except Exception:
            LOG.exception("Device %s cannot be checked", device_id)
            return None

    def _check(self, stored: StoredDevice) -> Check:
        report = self._ask(stored)
        check, returned = self._database.write(lambda conn: self._record(conn, stored.device, report))
        if check.status is not check.before:
            log = LOG.warning if check.status is DeviceStatus.OFFLINE else LOG.info
            log("Device %s is %s, before: %s. %s", check.device_id, check.status, check.before, check.detail)
        if returned:
            self._tell(check.device_id)
        return check

    def _ask(self, stored: StoredDevice) -> HealthReport:
        """Any answer but a report that says so is no sign of life.

        :raises HandlerBusy: it could not be asked, which says nothing of the device.
        """
        kind = (stored.device.service, stored.device.device_type)
        try:
            opened = self._opened(stored)
            question = self._asking.once(opened, self._timeout)
            # Vendors' code returns it: whether it is what it says is asked below.
            report: object = self._gates[kind].call(kind[1], question, self._timeout)
        except HandlerBusy:
            self._asking.forget(stored.device.id)
            raise
        except LBaaSError as error:
            return HealthReport(False, error.message)
        if not isinstance(report, HealthReport) or not isinstance(report.online, bool):
            return HealthReport(False, f"The handler of {kind[1]} returned {type(report).__name__} instead of a report.")
        return report

    @property
    def _timeout(self) -> float:
        return float(self._options.check_timeout_seconds)

    def _opened(self, stored: StoredDevice) -> Device:
        management = replace(stored.device.management, secret=self._vault.open(stored.secret))
        return replace(stored.device, management=management)

    def _record(self, conn: sa.Connection, device: Device, report: HealthReport) -> tuple[Check, bool]:
        """:returns: the check, and whether the device came back with it."""
        seen = device_checks.get(conn, device.id)
        if seen is None:
            raise DeviceNotFound(id=device.id)
        detail = _clean(report.detail)
        if report.online and (seen.status, seen.failures) == (DeviceStatus.ONLINE, 0):
            # Nearly always. Most say what they said before, and nothing is written.
            if (load := _load(report)) not in (None, seen.load):
                device_checks.record(conn, device.id, 0, load)
            return Check(device.id, seen.status, seen.status, True, detail, 0), False
        returned = report.online and seen.status not in (DeviceStatus.ONLINE, DeviceStatus.SYNCING)
        # In the order in which others take their locks: deployments before the hot row.
        if returned:
            deployments.ask_again(conn, device.id, utcnow())
        schedulable.lock(conn, [device.id])
        now = device_checks.get(conn, device.id) or seen
        failures = 0 if report.online else now.failures + 1
        status = self._next(conn, device.id, now.status, report.online, failures)
        device_checks.record(conn, device.id, failures, _load(report))
        if status is not now.status:
            devices.set_status(conn, device.id, status, "" if status is DeviceStatus.ONLINE else detail)
            device_checks.mark_offline(conn, device.id, status is DeviceStatus.OFFLINE)
            schedulable.refresh(conn, self._heard_since(), [device.id])
        if status is DeviceStatus.SYNCING or (failures and status is not DeviceStatus.OFFLINE):
            device_checks.check_soon(conn, device.id, utcnow() + timedelta(seconds=RECHECK_SECONDS))
        return Check(device.id, now.status, status, report.online, detail, failures), returned

    def _next(self, conn: sa.Connection, device_id: str, status: DeviceStatus, online: bool, failures: int) -> DeviceStatus:
        if not online:
            return DeviceStatus.OFFLINE if failures >= self._options.check_failures else status
        if status is DeviceStatus.ONLINE:
            return status
        left = device_checks.backlog(conn, device_id)
        # One that its device refuses must not keep the device away from all others; but a device that refuses everything is no
        # better than one that does not answer.
        synced = not left.waiting and (left.settled or not left.failed)
        return DeviceStatus.ONLINE if synced else DeviceStatus.SYNCING


class _Asking:
    """Which devices have not answered their last question: they are not asked another one, and hold no second thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[str] = set()

    def once(self, device: Device, timeout_seconds: float) -> Callable[[DeviceHandler], HealthReport]:
        """:raises DriverError: the device has not answered the last question."""
        with self._lock:
            if device.id in self._open:
                raise DriverError(reason=f"it has not answered for more than {timeout_seconds:g} s")
            self._open.add(device.id)

        def ask(handler: DeviceHandler) -> HealthReport:
            try:
                return handler.get_status(device)
            finally:
                self.forget(device.id)

        return ask

    def forget(self, device_id: str) -> None:
        with self._lock:
            self._open.discard(device_id)


def _load(report: HealthReport) -> Mapping[str, Any] | None:
    return report.load if report.online and isinstance(report.load, Mapping) else None


def _clean(text: Any) -> str:
    return str(text).replace("\0", "").encode("utf-8", "replace").decode("utf-8")[:MAX_DETAIL]
