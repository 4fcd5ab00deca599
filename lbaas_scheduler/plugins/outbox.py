"""What is to be sent to agents, sent by one thread: nobody who answers a request waits for the message bus.

A broker that is away, silent or blocks publishers (an alarm of memory or disk) may hold a sender for minutes. It holds this
thread alone; what cannot wait here any longer is dropped, since its row in the database is due and the reconciler casts it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Protocol

from oslo_messaging import MessageDeliveryFailure

from lbaas_scheduler.devices.assignments import Move
from lbaas_scheduler.plugins.casts import Casts

LOG = logging.getLogger(__name__)

MAX_WAITING = 10_000
"""So many VIPs, and so many messages of other kinds, may wait; some hundred bytes each."""

MAX_TOGETHER = 500
"""So many VIPs are read and sent at once: what a cast reads takes as many statements for a hundred VIPs as for one."""

SEND_SECONDS = 10.0
"""How long :meth:`Outbox.send` waits for the thread."""

DRAIN_SECONDS = 5.0
"""How long :meth:`Outbox.stop` waits until all is sent."""

FULL = "full"
"""Why something was dropped: too much waits."""
AWAY = "away"
"""Why something was dropped: bus or database were away for what came before it. Each further try would wait for them anew."""


class ToldOfItself(Protocol):
    """What is asked of :class:`~lbaas_scheduler.rpc.agent_api.AgentAPI`."""

    def agent_updated(self, host: str, admin_state_up: bool) -> None: ...


class Sends(Protocol):
    """What is asked of :class:`~lbaas_scheduler.plugins.casts.Caster`: it blocks."""

    def cast(self, vip_ids: Collection[str]) -> set[str]: ...

    def tell_of(self, device_id: str, *hosts: str | None) -> bool: ...


Notice = Callable[[], bool]
"""A message that is about no VIP. Whether the bus took it. Never raises."""


@dataclass(eq=False, slots=True)
class _Request:
    """VIPs whose sender waits for what becomes of them. ``unsent``: until ``done``, all of them."""

    vip_ids: Collection[str]
    unsent: set[str]
    done: threading.Event = field(default_factory=threading.Event)


class Outbox(Casts):
    """Sends in a thread of its own, which starts with the first thing to be sent: also after a fork.

    :param dropped: told why something was dropped (:data:`FULL`, :data:`AWAY`), and how much.
    """

    def __init__(
        self,
        caster: Sends,
        agents: ToldOfItself,
        dropped: Callable[[str, int], object] = lambda *_: None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._caster = caster
        self._agents = agents
        self._dropped = dropped
        self._max_waiting = max_waiting
        self._changed = threading.Condition()
        self._vips: dict[str, None] = {}
        self._notices: dict[tuple[str, ...], Notice] = {}
        self._requests: list[_Request] = []
        self._busy_since: float | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None

    def cast(self, vip_ids: Collection[str]) -> None:
        """Have each VIP's desired state sent to its device's agent, soon. After the commit; returns at once and never raises."""
        with self._changed:
            new = [vip_id for vip_id in vip_ids if vip_id not in self._vips]
            taken = new[: self._room(self._vips)]
            self._vips.update(dict.fromkeys(taken))
            self._wake()
        self._drop(FULL, len(new) - len(taken))

    def announce(self, moves: Iterable[Move]) -> None:
        """Devices changed hands: have both agents told. Returns at once and never raises."""
        for move in moves:
            self.tell_of(move.device_id, move.new_host, move.old_host)

    def tell_of(self, device_id: str, *hosts: str | None) -> None:
        """Have the agents on these hosts look at a device. Returns at once and never raises."""
        for host in hosts:
            if host is not None:
                self._post(("device", device_id, host), partial(self._caster.tell_of, device_id, host))

    def agent_updated(self, host: str, admin_state_up: bool) -> None:
        """Have an agent told that it was enabled or disabled. Returns at once and never raises."""
        self._post(("agent", host), partial(self._tell_agent, host, admin_state_up))

    def send(self, vip_ids: Collection[str]) -> set[str]:
        """As :meth:`cast`, for whoever is to know what became of it. Waits, but at most :data:`SEND_SECONDS`.

        :returns: VIPs that could not be sent: database or bus are away, or do not say so in time.
        """
        request = _Request(vip_ids, set(vip_ids))
        with self._changed:
            if not request.unsent or self._stopping or self._is_stuck():
                return request.unsent
            self._requests.append(request)
            self._wake()
        if not request.done.wait(SEND_SECONDS):
            with self._changed:
                if request in self._requests:
                    self._requests.remove(request)
            LOG.warning("The message bus does not take what is sent; %d casts wait", len(vip_ids))
        return request.unsent

    def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Take nothing more, and wait until what was taken is sent, at most so long. May be called twice."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(seconds)
        with self._changed:
            left = len(self._vips) + len(self._notices)
        if left:
            LOG.warning("%d messages to agents could not be sent before the end; what is due of them is cast again", left)

    def start(self) -> None:
        """Nothing: the thread starts by itself. For those who start and stop workers alike."""

    def _post(self, key: tuple[str, ...], notice: Notice) -> None:
        with self._changed:
            taken = key in self._notices or self._room(self._notices) > 0
            if taken:
                self._notices[key] = notice
                self._wake()
        self._drop(FULL, 0 if taken else 1)

    def _room(self, waiting: Collection[object]) -> int:
        return 0 if self._stopping else self._max_waiting - len(waiting)

    def _is_stuck(self) -> bool:
        return self._busy_since is not None and time.monotonic() - self._busy_since > SEND_SECONDS

    def _wake(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _drop(self, why: str, count: int) -> None:
        if count:
            LOG.debug("%d messages to agents were dropped: %s", count, why)
            self._dropped(why, count)

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                went = work()
            except Exception:
                LOG.exception("Something could not be sent to agents; what is due of it is cast again")
                went = True
            if not went:
                self._give_up_waiting()

    def _next(self) -> Callable[[], bool] | None:
        """Wait for work. None: stopped, and nothing is left."""
        with self._changed:
            self._busy_since = None
            self._changed.wait_for(lambda: self._vips or self._notices or self._requests or self._stopping)
            self._busy_since = time.monotonic()
            if self._vips:
                taken = list(islice(self._vips, MAX_TOGETHER))
                for vip_id in taken:
                    del self._vips[vip_id]
                return lambda: not self._caster.cast(taken)
            if self._notices:
                return self._notices.pop(next(iter(self._notices)))
            if self._requests:
                return partial(self._serve, self._requests.pop(0))
            return None

    def _serve(self, request: _Request) -> bool:
        try:
            request.unsent = self._caster.cast(request.vip_ids)
        finally:
            request.done.set()
        return not request.unsent

    def _give_up_waiting(self) -> None:
        with self._changed:
            count = len(self._vips) + len(self._notices)
            self._vips.clear()
            self._notices.clear()
            requests, self._requests = self._requests, []
        for request in requests:
            request.done.set()
        self._drop(AWAY, count)

    def _tell_agent(self, host: str, admin_state_up: bool) -> bool:
        try:
            self._agents.agent_updated(host, admin_state_up)
        except MessageDeliveryFailure as error:
            word = "enabled" if admin_state_up else "disabled"
            LOG.warning("The agent on %s is not told that it was %s: %s", host, word, error)
            return False
        return True
