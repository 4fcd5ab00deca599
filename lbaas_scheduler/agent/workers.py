"""One worker per device: driver calls for one device never overlap, those for different devices do."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from lbaas_scheduler.agent.changes import Change
from lbaas_scheduler.agent.dispatcher import Dispatcher
from lbaas_scheduler.agent.gate import carry_out
from lbaas_scheduler.agent.slots import Answer, Phase, Question, Slot, Work
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.rpc.server_api import Desired, SealedDevice
from lbaas_scheduler.sdk.drivers import AgentDriver

LOG = logging.getLogger(__name__)


class Unsealer(Protocol):
    """Opens the sealed secret of a device; :class:`~lbaas_scheduler.devices.secrets.Vault` is one."""

    def open(self, token: str) -> Mapping[str, str]: ...


Report = Callable[[str, Result], None]
"""Device id, result → handed on to the server. Must not block."""

DriverCall = Callable[[AgentDriver, Device], Any]


class DeviceWorkers:
    """Runs what is offered for devices. Threads exist only while a device has something to do.

    Changes of one VIP collapse into the newest; one driver call takes all that waits for a device. A call that takes longer
    than ``timeout_seconds()`` is reported as failed and left alone: its device gets no other call before it has returned, and
    then goes on with what has come meanwhile.

    :param wanted: told the id of a device that must be resynced before its casts can be carried out. Must not block.
    """

    def __init__(
        self,
        drivers: Mapping[str, AgentDriver],
        vault: Unsealer,
        report: Report,
        wanted: Callable[[str], None],
        timeout_seconds: Callable[[], float],
    ) -> None:
        self._drivers = drivers
        self._vault = vault
        self._report = report
        self._wanted = wanted
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._slots: dict[str, Slot] = {}
        self._tickets = itertools.count(1)
        self._ticket = 0
        self._dispatcher = Dispatcher(self._lock, self._serve, self._overdue, timeout_seconds)

    def start(self) -> None:
        self._dispatcher.start()

    def stop(self, deadline: float) -> bool:
        """Start nothing more; wait for running calls until ``deadline`` (monotonic). Whether all have returned.

        What waits is forgotten: it was never begun, and the server casts it again.
        """
        finished = self._dispatcher.stop(deadline)
        with self._lock:
            questions = [question for slot in self._slots.values() for question in slot.abandon()]
        _fail(questions, "The agent is stopping.")
        return finished

    def offer(self, sealed: SealedDevice, changes: Iterable[Change], trusted: bool = True) -> None:
        """Have changes carried out, unless they are stale: those are answered with what is known. Returns at once.

        :param trusted: false for those that may be older than they look: the device is resynced before.
        """
        if sealed.device.device_type not in self._drivers:
            self._tell(sealed.device.id, changes, _no_driver(sealed.device))
            return
        with self._lock:
            slot = self._slot(sealed)
            offered = list(changes)
            stale = {change.vip_id: change for change in offered if slot.ledger.is_stale(change)}
            accepted = [change for change in offered if slot.offer(change, trusted)]
            answers = {vip_id: slot.answer(vip_id) for vip_id in stale}
            hung, synced = slot.phase is Phase.HUNG, slot.synced
            self._dispatcher.schedule(slot)
        if hung:
            self._tell(sealed.device.id, accepted, self._not_answering)
        unclear = self._answer_stale(sealed.device.id, stale, answers)
        if unclear or not (synced and trusted):
            self._wanted(sealed.device.id)

    def offer_orphans(self, device_id: str, orphans: Iterable[Change], as_of: int) -> None:
        """Have VIPs removed that nobody wants, but for those that a cast named after ticket ``as_of``."""
        with self._lock:
            slot = self._slots.get(device_id)
            if slot is None:
                return
            for change in orphans:
                if not slot.ledger.touched_since(change.vip_id, as_of):
                    slot.offer(change, trusted=True)
            self._dispatcher.schedule(slot)

    def adopt(self, device_id: str, desired: Iterable[Desired], as_of: int) -> list[Desired]:
        """Take over what a server desires of a device, read after ticket ``as_of``. From now on its casts are carried out.

        :returns: what of it does not wait to be carried out already.
        """
        lines = list(desired)
        with self._lock:
            slot = self._slots.get(device_id)
            if slot is None:
                return []
            slot.adopt(lines, as_of)
            rest = [line for line in lines if not slot.covers(line)]
            self._dispatcher.schedule(slot)
        return rest

    def ask(self, sealed: SealedDevice, call: DriverCall) -> Future[Any]:
        """Have ``call`` run when its turn on the device comes. On a device that hangs it fails at once.

        The future's exception is what the driver raised, or a DriverError of ours.
        """
        driver = self._drivers.get(sealed.device.device_type)
        if driver is None:
            return _failed(_no_driver(sealed.device))
        question = Question(partial(call, driver))
        with self._lock:
            slot = self._slot(sealed)
            refused = slot.phase is Phase.HUNG or self._dispatcher.stopping
            if not refused:
                slot.ask(question)
                self._dispatcher.schedule(slot)
        return _failed(self._not_answering) if refused else question.answer

    def fail_waiting(self, device_id: str, text: str) -> None:
        """Report what waits for a resync as failed, and forget it: the device cannot be read."""
        with self._lock:
            slot = self._slots.get(device_id)
            changes = slot.drop_held() if slot is not None else ()
        self._tell(device_id, changes, text)

    def retire(self, device_id: str, as_of: int, farewell: DriverCall) -> Future[Any] | None:
        """Let go of a device that is not ours any more: ``farewell`` is the last call that it gets.

        None: it is not held, or a cast came after ticket ``as_of``, so that it may be ours again.
        """
        with self._lock:
            slot = self._slots.get(device_id)
            if slot is None or slot.last_ticket > as_of:
                return None
            slot.synced = False
            questions = slot.abandon()
            sealed = slot.sealed
        _fail(questions, "The device left this agent.")
        future = self.ask(sealed, farewell)
        future.add_done_callback(lambda done: self._forget(device_id, as_of, done))
        return future

    def hold(self, sealed: SealedDevice) -> None:
        """Hold a device, or refresh its description."""
        with self._lock:
            self._slot(sealed)

    def held(self) -> dict[str, SealedDevice]:
        """All devices held, by id."""
        with self._lock:
            return {device_id: slot.sealed for device_id, slot in self._slots.items()}

    def ready(self) -> list[SealedDevice]:
        """Devices that are synced and have nothing to do: it is a good moment to read their statistics."""
        with self._lock:
            return [slot.sealed for slot in self._slots.values() if slot.synced and slot.phase is Phase.IDLE]

    def ticket(self) -> int:
        """The number of the latest cast. What comes later has a higher one."""
        with self._lock:
            return self._ticket

    def _answer_stale(self, device_id: str, stale: Mapping[str, Change], answers: Mapping[str, Answer]) -> bool:
        """Say once more what came of newer changes: a server that casts an old one does not know, or there are two truths.

        :returns: whether one of them cannot be answered but by a look at the device.
        """
        for vip_id, answer in answers.items():
            LOG.info("A cast of VIP %s at %s for device %s is out of date", vip_id, stale[vip_id].version, device_id)
            if answer.result is not None:
                self._report(device_id, answer.result)
        return any(answer.result is None and not answer.waits for answer in answers.values())

    @property
    def _not_answering(self) -> str:
        return f"The device did not answer within {self._timeout_seconds():g} seconds."

    def _slot(self, sealed: SealedDevice) -> Slot:
        slot = self._slots.get(sealed.device.id)
        if slot is None:
            slot = self._slots[sealed.device.id] = Slot(sealed, self._next_ticket)
        else:
            slot.refresh(sealed)
        return slot

    def _next_ticket(self) -> int:
        self._ticket = next(self._tickets)
        return self._ticket

    def _forget(self, device_id: str, as_of: int, farewell: Future[Any]) -> None:
        if farewell.exception() is not None:
            return  # the next resync tries again
        with self._lock:
            slot = self._slots.get(device_id)
            if slot is not None and slot.last_ticket <= as_of:
                del self._slots[device_id]

    def _serve(self, slot: Slot, work: Work) -> None:
        opened = partial(self._opened, slot)
        if isinstance(work, Question):
            _answer(work, opened)
            return
        driver = self._drivers[slot.sealed.device.device_type]
        results = carry_out(driver, opened, work)
        for change, result in zip(work, _in_order(work, results), strict=True):
            self._hand_on(slot.device_id, change, result)

    def _overdue(self, slot: Slot, work: Work) -> None:
        with self._lock:
            questions = list(slot.drop_questions())
        if isinstance(work, Question):
            questions.append(work)
        else:
            self._tell(slot.device_id, work, self._not_answering)
        _fail(questions, self._not_answering)

    def _opened(self, slot: Slot) -> Device:
        sealed = slot.sealed
        if not sealed.token:
            return sealed.device
        management = replace(sealed.device.management, secret=self._vault.open(sealed.token))
        return replace(sealed.device, management=management)

    def _tell(self, device_id: str, changes: Iterable[Change], text: str) -> None:
        for change in changes:
            self._hand_on(device_id, change, Result(change.vip_id, change.version, error=text))

    def _hand_on(self, device_id: str, change: Change, result: Result) -> None:
        with self._lock:
            slot = self._slots.get(device_id)
            if slot is not None:
                slot.ledger.note(change, result)
        if not change.orphan:
            self._report(device_id, result)
        elif result.ok:
            LOG.info("Removed VIP %s, which nobody wants, from device %s", change.vip_id, device_id)
        else:
            LOG.warning("VIP %s, which nobody wants, stays on device %s: %s", change.vip_id, device_id, result.error)


def _in_order(changes: Iterable[Change], results: Iterable[Result]) -> list[Result]:
    by_vip = {result.vip_id: result for result in results}
    return [by_vip[change.vip_id] for change in changes]


def _answer(question: Question, opened: Callable[[], Device]) -> None:
    try:
        found = question.ask(opened())
    except BaseException as error:  # a driver's SystemExit must not end its device's worker
        _settle(question.answer.set_exception, error)
    else:
        _settle(question.answer.set_result, found)


def _fail(questions: Iterable[Question], text: str) -> None:
    for question in questions:
        _settle(question.answer.set_exception, DriverError(text))


def _settle(settle: Callable[[Any], None], outcome: Any) -> None:
    try:
        settle(outcome)
    except InvalidStateError:
        LOG.debug("An answer of a driver came after its time")


def _failed(text: str) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(DriverError(text))
    return future


def _no_driver(device: Device) -> str:
    return f"The agent has no driver for devices of type {device.device_type}."
