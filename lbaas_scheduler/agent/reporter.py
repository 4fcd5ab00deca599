"""Brings results to the servers: in batches, until one has accepted them."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from lbaas_scheduler.agent.contact import AWAY, Contact
from lbaas_scheduler.agent.loops import Backoff
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.rpc.server_api import ServerAPI

LOG = logging.getLogger(__name__)

MAX_WAITING = 20_000
"""Results kept while no server answers. Beyond, the oldest go: the server casts their VIPs again and gets new ones."""

MAX_REFUSALS = 3
"""How often a server may refuse one single result before it is given up."""

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0


class Reporter:
    """Takes results from workers and delivers them, the newest of each VIP, at least once.

    A batch that a server refuses (which is an answer, unlike silence) is halved until the result at fault stands alone.

    :param batch_size: how many results go into one report, at most, of however many devices.
    """

    def __init__(self, host: str, server: ServerAPI, contact: Contact, batch_size: Callable[[], int]) -> None:
        self._host = host
        self._server = server
        self._contact = contact
        self._batch_size = batch_size
        self._changed = threading.Condition()
        self._waiting: dict[str, OrderedDict[str, Result]] = {}
        self._count = 0
        self._refusals: dict[str, int] = {}
        self._backoff = Backoff(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="result-reporter", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, deadline: float) -> bool:
        """Deliver what waits, until ``deadline`` (monotonic). Whether everything was delivered. May come before :meth:`start`."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            if self._count:
                LOG.warning("%d results could not be delivered before the end; the server casts again", self._count)
            return self._count == 0

    def add(self, device_id: str, result: Result) -> None:
        """Have a result delivered. Returns at once. An older one of the same VIP is replaced, a newer one wins."""
        with self._changed:
            of_device = self._waiting.setdefault(device_id, OrderedDict())
            known = of_device.pop(result.vip_id, None)
            newest = known if known is not None and known.version > result.version else result
            of_device[result.vip_id] = newest
            self._count += known is None
            self._shed()
            self._changed.notify_all()

    def _shed(self) -> None:
        while self._count > MAX_WAITING:
            device_id = next(iter(self._waiting))
            self._waiting[device_id].popitem(last=False)
            self._count -= 1
            if not self._waiting[device_id]:
                del self._waiting[device_id]

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            try:
                self._deliver(batch)
            except Exception as error:
                self._contact.note(error)
                self._pause(error)
            else:
                self._backoff.reset()

    def _next(self) -> list[tuple[str, Result]] | None:
        """Wait for results, those of the longest waiting device first. None = stopped, and nothing is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            if not self._waiting:
                return None
            waiting = ((id_, result) for id_, of_device in self._waiting.items() for result in of_device.values())
            return list(islice(waiting, self._batch_size()))

    def _deliver(self, batch: Sequence[tuple[str, Result]]) -> None:
        """Deliver all of a batch that a server accepts.

        :raises Exception: nobody is there (:data:`~lbaas_scheduler.agent.contact.AWAY`), or one single result was refused.
        """
        try:
            self._server.report_results(self._host, _by_device(batch))
        except AWAY:
            raise
        except Exception:
            self._contact.made()
            if len(batch) == 1:
                self._refused(*batch[0])
                raise
            half = len(batch) // 2
            self._deliver(batch[:half])
            self._deliver(batch[half:])
        else:
            self._contact.made()
            self._done(batch)

    def _done(self, batch: Sequence[tuple[str, Result]]) -> None:
        with self._changed:
            for device_id, result in batch:
                of_device = self._waiting.get(device_id, OrderedDict())
                self._refusals.pop(result.vip_id, None)
                if of_device.get(result.vip_id) is result:
                    del of_device[result.vip_id]
                    self._count -= 1
                if device_id in self._waiting and not of_device:
                    del self._waiting[device_id]

    def _refused(self, device_id: str, result: Result) -> None:
        """Send the results of the device to the end of the queue; give a result up that is refused again and again."""
        with self._changed:
            of_device = self._waiting.pop(device_id, None)
            if of_device:
                self._waiting[device_id] = of_device
        self._refusals[result.vip_id] = self._refusals.get(result.vip_id, 0) + 1
        if self._refusals[result.vip_id] >= MAX_REFUSALS:
            LOG.error("The server refuses the result of VIP %s on device %s; it is given up", result.vip_id, device_id)
            self._done([(device_id, result)])

    def _pause(self, error: Exception) -> None:
        if not self._contact.away and not self._backoff.failing:
            LOG.warning("A server refused results: %s", getattr(error, "message", repr(error)))
        seconds = self._backoff.next()
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)
            if self._stopping:
                # No condition to wait for any more, but a broker that is away must not be asked in a tight loop.
                self._changed.wait(min(seconds, FIRST_WAIT_SECONDS))


def _by_device(batch: Sequence[tuple[str, Result]]) -> Mapping[str, Sequence[Result]]:
    found: dict[str, list[Result]] = {}
    for device_id, result in batch:
        found.setdefault(device_id, []).append(result)
    return found
