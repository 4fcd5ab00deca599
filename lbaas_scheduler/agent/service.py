"""The agent's parts, put together, started and stopped in order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from functools import partial

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.rpc.server import RPCServer

from lbaas_scheduler.agent.contact import Contact
from lbaas_scheduler.agent.endpoint import AgentEndpoint
from lbaas_scheduler.agent.fence import STEP_SECONDS, Fence
from lbaas_scheduler.agent.foreign_servers import ForeignServers
from lbaas_scheduler.agent.gate import explain
from lbaas_scheduler.agent.heartbeat import Heartbeat
from lbaas_scheduler.agent.loops import Loop
from lbaas_scheduler.agent.reporter import Reporter
from lbaas_scheduler.agent.resync import Resync
from lbaas_scheduler.agent.stats import Stats
from lbaas_scheduler.agent.workers import DeviceWorkers, Unsealer
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.server_api import ServerAPI
from lbaas_scheduler.rpc.transport import get_server, listen
from lbaas_scheduler.sdk.bounded import run_within
from lbaas_scheduler.sdk.drivers import AgentDriver

LOG = logging.getLogger(__name__)

SETTLE_SECONDS = 10.0
"""How long after a start, or a loss of contact, casts may come from a queue that filled meanwhile, and are checked before use."""

BUS_STOP_SECONDS = 5.0
"""How long to wait for the bus: our endpoint never blocks, and a broker that is away would take all the time there is."""

FLUSH_SHARE = 0.2
"""Part of the shutdown time that is kept for the delivery of results."""


class AgentService:
    """One agent. ``start`` once; it returns in bounded time as ``stop`` does, whether or not the broker is there.

    :param drivers: by device type.
    :param host: under which the servers know this agent.
    :raises ConfigurationError: there is no driver.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: oslo_messaging.Transport,
        drivers: Mapping[str, AgentDriver],
        vault: Unsealer,
        host: str,
    ) -> None:
        if not drivers:
            raise ConfigurationError(reason="[agent] drivers is empty: an agent needs at least one device driver.")
        options = conf.agent
        self._graceful_seconds: float = conf.graceful_shutdown_seconds
        self._drivers = drivers
        self._host = host
        server = ServerAPI(transport)
        self._contact = Contact(self._contact_lost)
        self._reporter = Reporter(host, server, self._contact, lambda: options.result_batch_size)
        self._workers = DeviceWorkers(
            drivers, vault, self._reporter.add, self._needs_resync, lambda: options.apply_timeout_seconds
        )
        self._resync = Resync(
            host, server, self._contact, self._workers, drivers,
            lambda: options.page_size, lambda: options.resync_interval_seconds,
        )  # fmt: skip
        heartbeat = Heartbeat(host, server, self._contact, drivers, self._counts)
        stats = Stats(host, server, self._contact, self._workers, self._resync, lambda: options.stats_interval_seconds)
        self._heartbeat = Loop("state-report", heartbeat.beat, lambda: options.report_interval_seconds)
        self._stats = Loop("statistics", stats.collect, lambda: options.stats_interval_seconds)
        endpoints = [AgentEndpoint(self._workers, self._resync, self._trusts)]
        fence = Fence(
            self._contact, self._workers, drivers, lambda: options.fence_after_seconds, self._resync.want_all
        )  # fmt: skip
        self._fence = Loop("fence", fence.step, lambda: STEP_SECONDS)
        self._make_rpc = partial(get_server, transport, topics.AGENTS, host, endpoints, ForeignServers().note)
        self._rpc: RPCServer | None = None
        self._bus_start = threading.Thread(target=self._listen, name="bus-start", daemon=True)
        self._listening_since: float | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        LOG.info("Agent %s starts, drivers: %s", self._host, ", ".join(sorted(self._drivers)))
        self._workers.start()
        self._reporter.start()
        self._resync.start()
        self._stats.start()
        self._fence.start()
        self._bus_start.start()

    def wait(self) -> None:
        """Until it is stopped."""
        self._stopped.wait()

    def stop(self) -> None:
        """Take nothing more, finish what runs, deliver the results; all within ``graceful_shutdown_seconds``.

        What was taken and not begun is left: nothing of it is half-applied, and the server casts it again. Devices go on serving.
        May be called without :meth:`start`, when drivers have something to end all the same, and twice.
        """
        began = time.monotonic()
        deadline = began + self._graceful_seconds
        LOG.info("Agent %s stops", self._host)
        for part in (self._fence, self._heartbeat, self._stats, self._resync):
            part.stop()
        flush = deadline - self._graceful_seconds * FLUSH_SHARE
        if self._bus_start.ident is not None:  # else it would wait for a start that never comes
            run_within(min(flush, began + BUS_STOP_SECONDS), "bus-stop", self._close)
        if not self._workers.stop(flush):
            LOG.warning("A driver call did not end in time and is left behind")
        self._reporter.stop(deadline)
        for driver in self._drivers.values():
            run_within(deadline, "driver-stop", lambda driver=driver: _stop_driver(driver))  # type: ignore[misc]
        LOG.info("Agent %s stopped after %.1f s", self._host, time.monotonic() - began)
        self._stopped.set()

    def _counts(self) -> dict[str, int]:
        return {"devices": len(self._workers.held()), "repaired_vips": self._resync.repaired}

    def _contact_lost(self) -> None:
        self._resync.want_all()

    def _needs_resync(self, device_id: str) -> None:
        self._resync.want(device_id)

    def _listen(self) -> None:
        # Blocks for as long as the broker is away. Only then the heartbeat: casts to a queue that is not there yet are lost.
        self._rpc = listen(self._make_rpc)
        self._listening_since = time.monotonic()
        self._heartbeat.start()

    def _trusts(self) -> bool:
        since = self._listening_since
        listening = since is not None and time.monotonic() - since >= SETTLE_SECONDS
        return listening and self._contact.settled(SETTLE_SECONDS)

    def _close(self) -> None:
        # It may be about to listen: then this waits, and is left behind after a while.
        self._bus_start.join()
        if self._rpc is not None:
            self._rpc.stop()
            self._rpc.wait()


def _stop_driver(driver: AgentDriver) -> None:
    try:
        driver.stop()
    except Exception as error:
        explain(driver, error)
