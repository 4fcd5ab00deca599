"""Threads for devices that have something to do, and the clock that watches them."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from lbaas_scheduler.agent.slots import Phase, Slot, Work

LOG = logging.getLogger(__name__)

MAX_CALLS = 16
"""Driver calls at once, so that the first resync of 500 devices does not start 500 threads. Slow ones do not count."""

SLOW_SECONDS = 5.0
"""A call that takes longer gives up its place among the :data:`MAX_CALLS`: hanging devices must not starve the others."""

RETRY_SECONDS = 1.0
"""How long to wait for threads where the host grants no more of them."""


class Dispatcher:
    """Gives each slot with work a thread, until its work is done; never two to one slot.

    :param lock: guards the slots; held by the caller of :meth:`schedule`, and never during ``serve`` and ``overdue``.
    :param serve: carries out one piece of work; does not raise.
    :param overdue: told once of a piece of work that takes longer than ``timeout_seconds()``.
    """

    def __init__(
        self,
        lock: threading.Lock,
        serve: Callable[[Slot, Work], None],
        overdue: Callable[[Slot, Work], None],
        timeout_seconds: Callable[[], float],
    ) -> None:
        self._changed = threading.Condition(lock)
        self._serve = serve
        self._overdue = overdue
        self._timeout_seconds = timeout_seconds
        self._ready: deque[Slot] = deque()
        self._active: set[Slot] = set()
        self._permits = MAX_CALLS
        self._starved = False
        self.stopping = False
        self._watchdog = threading.Thread(target=self._watch, name="driver-watchdog", daemon=True)

    def start(self) -> None:
        self._watchdog.start()

    def stop(self, deadline: float) -> bool:
        """Start nothing more; wait for what runs until ``deadline`` (monotonic). Whether all of it has returned."""
        with self._changed:
            self.stopping = True
            self._ready.clear()
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._active, max(0.0, deadline - time.monotonic()))

    def schedule(self, slot: Slot) -> None:
        """See to it that the slot's work is done. The lock is held."""
        if self.stopping or slot.phase is not Phase.IDLE or not slot.has_work:
            return
        slot.phase = Phase.READY
        self._ready.append(slot)
        self._pump()

    def _pump(self) -> None:
        while self._may_begin and self._begin(self._ready[0]):
            slot = self._ready.popleft()
            self._permits -= 1
            slot.holds_permit = True
            slot.phase = Phase.RUNNING
            self._active.add(slot)
        self._changed.notify_all()

    @property
    def _may_begin(self) -> bool:
        return self._permits > 0 and bool(self._ready) and not self.stopping

    def _begin(self, slot: Slot) -> bool:
        """Start a thread, which waits for our lock. False: this host grants none now; the watchdog tries again."""
        try:
            threading.Thread(target=self._turn, args=(slot,), name=f"device-{slot.device_id}", daemon=True).start()
        except RuntimeError as error:
            if not self._starved:
                LOG.error("Devices wait, for no thread can be started: %s", error)
            self._starved = True
            return False
        self._starved = False
        return True

    def _turn(self, slot: Slot) -> None:
        while (work := self._take(slot)) is not None:
            self._serve(slot, work)

    def _take(self, slot: Slot) -> Work | None:
        with self._changed:
            if slot.phase is Phase.HUNG:
                LOG.info("Device %s answers again after %.1f s", slot.device_id, time.monotonic() - slot.started)
            slot.phase = Phase.RUNNING
            work = None if self.stopping else slot.take()
            if work is None:
                slot.current = None
                slot.phase = Phase.IDLE
                self._active.discard(slot)
                self._return_permit(slot)
            self._changed.notify_all()
            return work

    def _return_permit(self, slot: Slot) -> None:
        if slot.holds_permit:
            slot.holds_permit = False
            self._permits += 1
            self._pump()

    def _watch(self) -> None:
        while True:
            with self._changed:
                if self.stopping and not self._active:
                    return
                self._pump()
                late = self._inspect(time.monotonic())
                if not late:
                    self._changed.wait(self._next_look(time.monotonic()))
            for slot, work in late:
                LOG.error("A driver call for device %s takes longer than %g s", slot.device_id, self._timeout_seconds())
                self._overdue(slot, work)

    def _inspect(self, now: float) -> list[tuple[Slot, Work]]:
        """Take permits from slow calls, mark overdue ones. Returns those newly overdue."""
        timeout = self._timeout_seconds()
        late: list[tuple[Slot, Work]] = []
        for slot in tuple(self._active):
            if slot.current is None or slot.phase is not Phase.RUNNING:
                continue
            if now - slot.started >= SLOW_SECONDS:
                self._return_permit(slot)
            if now - slot.started >= timeout:
                slot.phase = Phase.HUNG
                late.append((slot, slot.current))
        return late

    def _next_look(self, now: float) -> float | None:
        """Seconds until the next call turns slow or overdue, or a thread is to be asked for again; None = nothing of that."""
        timeout = self._timeout_seconds()
        moments = [now + RETRY_SECONDS] if self._may_begin else []
        for slot in self._active:
            if slot.current is not None and slot.phase is Phase.RUNNING:
                moments += [slot.started + SLOW_SECONDS] if slot.holds_permit else []
                moments.append(slot.started + timeout)
        return max(0.0, min(moments) - now) if moments else None
