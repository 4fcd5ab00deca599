"""Takes devices of this host out of service while the bus is silent: another agent may have taken them over.

Without it a VIP that was taken over answers on two hosts until the partition heals: see the operator's guide.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import wait

from lbaas_scheduler.agent.contact import Contact
from lbaas_scheduler.agent.gate import explain
from lbaas_scheduler.agent.workers import DeviceWorkers
from lbaas_scheduler.sdk.drivers import AgentDriver, DriverAbility

LOG = logging.getLogger(__name__)

STEP_SECONDS = 1.0
WAIT_SECONDS = 10.0


class Fence:
    """Falls once nothing was heard for ``after_seconds()`` (0 = never), and is lifted by the first thing that is heard.

    What falls is whatever others could take over: local devices that are not pinned to this host, and those of which this agent
    does not know whether they are, since it has heard nothing since its start. It falls again and again as long as it is down,
    so that nothing that waited for its turn brings a device back.

    :param lifted: has all devices compared, after which those that are still this agent's serve again. Must not block.
    """

    def __init__(
        self,
        contact: Contact,
        workers: DeviceWorkers,
        drivers: Mapping[str, AgentDriver],
        after_seconds: Callable[[], float],
        lifted: Callable[[], None],
    ) -> None:
        self._contact = contact
        self._workers = workers
        self._drivers = {name: driver for name, driver in drivers.items() if DriverAbility.FENCE in driver.abilities}
        self._after_seconds = after_seconds
        self._lifted = lifted
        self._down = False

    def step(self) -> None:
        """Look once, and do what is due. Blocks for as long as devices take, within bounds."""
        seconds = self._after_seconds()
        if seconds and self._contact.silent_seconds >= seconds:
            if not self._down:
                LOG.error("Nothing was heard of the bus for %g s: devices that others may have taken over are fenced", seconds)
            self._down = True
            self._fall()
        elif self._down:
            LOG.info("Fenced devices that are still this agent's are brought back")
            self._down = False
            self._lifted()

    def _fall(self) -> None:
        held = self._workers.held()
        for driver, device_id in self._unknown(held):
            if self._contact.silent_seconds < self._after_seconds():
                return
            try:
                driver.fence(device_id)
            except Exception as error:
                explain(driver, error)
        asked = {
            device_id: self._workers.ask(sealed, lambda driver, device: driver.fence(device.id))
            for device_id, sealed in held.items()
            if sealed.device.device_type in self._drivers and not sealed.device.agent_host
        }
        wait(asked.values(), WAIT_SECONDS)
        for device_id, answer in asked.items():
            if not answer.done():
                LOG.error("Device %s is busy and is not fenced yet", device_id)
            elif (failure := answer.exception()) is not None:
                LOG.error("Device %s is not fenced: %s", device_id, getattr(failure, "operator_message", repr(failure)))

    def _unknown(self, held: Mapping[str, object]) -> Iterator[tuple[AgentDriver, str]]:
        """Devices that are here and of which no server has told since the start."""
        for driver in self._drivers.values():
            try:
                found = set(driver.local_devices()) - held.keys()
            except Exception as error:
                explain(driver, error)
                continue
            yield from ((driver, device_id) for device_id in sorted(found))
