"""What the agent holds of one device: its description, what waits to be done, what runs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from lbaas_scheduler.agent.changes import Change, Ledger
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.rpc.server_api import Desired, SealedDevice


class Phase(Enum):
    IDLE = auto()
    READY = auto()
    """Waits for a thread."""
    RUNNING = auto()
    HUNG = auto()
    """The driver's call took longer than allowed and has not returned yet."""


@dataclass(slots=True)
class Question:
    """A call of the driver with an answer that somebody waits for."""

    ask: Callable[[Device], Any]
    answer: Future[Any] = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class Answer:
    """``result``: what came of the newest change of a VIP; None = not known here. ``waits``: it will be reported anyhow."""

    result: Result | None = None
    waits: bool = False


Work = Question | list[Change]


class Slot:
    """One device. Not safe for threads: :class:`~lbaas_scheduler.agent.workers.DeviceWorkers` holds its lock around every use.

    A cast may be *held* until a resync has read what is desired: as long as the slot is unsynced, and when it may come from a
    queue that outlived the agent, or its contact with the servers. A cast is sent after its commit, so that a list which is
    read after the cast came is at least as new; what it contradicts was stale.
    """

    def __init__(self, sealed: SealedDevice, tickets: Callable[[], int]) -> None:
        self.sealed = sealed
        self.ledger = Ledger()
        self.phase = Phase.IDLE
        self.synced = False
        self.current: Work | None = None
        self.started = 0.0
        """When the current call began, by the monotonic clock."""
        self.holds_permit = False
        self.last_ticket = 0
        """Ticket of the latest cast for the device."""
        self._tickets = tickets
        self._pending: dict[str, Change] = {}
        self._held: dict[str, Change] = {}
        self._questions: deque[Question] = deque()

    @property
    def device_id(self) -> str:
        return self.sealed.device.id

    @property
    def has_work(self) -> bool:
        return bool(self._questions or self._pending)

    def refresh(self, sealed: SealedDevice) -> None:
        """Take a newer description of the device, with its newer credentials."""
        if sealed.device.generation >= self.sealed.device.generation:
            self.sealed = sealed

    def offer(self, change: Change, trusted: bool) -> bool:
        """Put a change in the place of an older one. False: it is stale, or runs just now."""
        self.last_ticket = self._tickets()
        if not self.ledger.record(change, self.last_ticket):
            return False
        self._pending.pop(change.vip_id, None)
        self._held.pop(change.vip_id, None)
        if self._runs(change):
            return False
        waiting = self._pending if trusted and self.synced else self._held
        waiting[change.vip_id] = change
        return True

    def answer(self, vip_id: str) -> Answer:
        """What a stale cast of a VIP is answered with."""
        running = self.current if isinstance(self.current, list) and self.phase is Phase.RUNNING else ()
        if vip_id in self._pending or vip_id in self._held or any(change.vip_id == vip_id for change in running):
            return Answer(waits=True)
        return Answer(self.ledger.last_result(vip_id))

    def adopt(self, desired: Iterable[Desired], as_of: int) -> None:
        """Take over what a server desired after ticket ``as_of``: forget what it contradicts, release what it does not."""
        lines = {line.vip_id: line for line in desired}
        for change in (*self._pending.values(), *self._held.values()):
            if self.ledger.touched_since(change.vip_id, as_of):
                continue
            self._held.pop(change.vip_id, None)
            self._pending.pop(change.vip_id, None)
            line = lines.get(change.vip_id)
            if line is not None and line.version <= change.version:
                self._pending[change.vip_id] = change
        self.ledger.adopt(lines.values(), as_of)
        self.synced = True

    def covers(self, line: Desired) -> bool:
        """Whether what is about to be carried out brings the VIP where ``line`` wants it, or further."""
        waiting = self._pending.get(line.vip_id)
        return waiting is not None and waiting.version >= line.version

    def drop_held(self) -> Sequence[Change]:
        """Forget the changes that wait for a resync, and return them."""
        held = tuple(self._held.values())
        self._held.clear()
        return held

    def ask(self, question: Question) -> None:
        self._questions.append(question)

    def take(self) -> Work | None:
        """The next call of the driver: an answer that somebody waits for, else everything that waits, at once."""
        self.current = None
        if self._questions:
            self.current = self._questions.popleft()
        elif self._pending:
            self.current = list(self._pending.values())
            self._pending.clear()
        self.started = time.monotonic()
        return self.current

    def drop_questions(self) -> Sequence[Question]:
        """Forget the questions that wait, and return them: somebody has to be told."""
        questions = tuple(self._questions)
        self._questions.clear()
        return questions

    def abandon(self) -> Sequence[Question]:
        """Forget all that waits; returns the questions among it."""
        self._pending.clear()
        self._held.clear()
        return self.drop_questions()

    def _runs(self, change: Change) -> bool:
        if self.phase is not Phase.RUNNING or not isinstance(self.current, list):
            return False
        return any(change.vip_id == running.vip_id and change.order == running.order for running in self.current)
