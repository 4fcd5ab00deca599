"""Devices that are gone for good: what is waited for of them is waited for no longer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa

from lbaas_scheduler.db import agents, deployments, device_agents, evacuations, moves
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.devices.registry import Registry
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.statuses import AdminState, DeviceStatus
from lbaas_scheduler.errors import DeviceInUse, StateInvalid
from lbaas_scheduler.plugins.callbacks import Reports

LOG = logging.getLogger(__name__)

BATCH = 100
"""How many removals are settled in one transaction."""

MAX_NAMED = 20


class WritingOff:
    """Settles what a device will never confirm.

    Should it come back all the same, its agent finds that nothing is to be on it, and removes what there is.

    :param reports: what agents' words become; here the server speaks for them.
    :param heard_since: an agent that was heard since then is alive.
    """

    def __init__(self, database: Database, registry: Registry, reports: Reports, heard_since: Callable[[], datetime]) -> None:
        self._database = database
        self._registry = registry
        self._reports = reports
        self._heard_since = heard_since

    def write_off(self, device_id: str, force: bool = False) -> tuple[int, list[str]]:
        """Settle every removal that the device has not confirmed. May be called again, and goes on where it ended.

        :param force: though the device seems to be there.
        :returns: how many removals were settled, and the ids of the resources that are gone with it.
        :raises DeviceNotFound: there is no such device.
        :raises StateInvalid: it is not disabled; or it seems to be there.
        :raises DeviceInUse: something is to stay, and lives on it: names it.
        """
        self._check_gone(self._registry.get(device_id), force)
        self._database.write(lambda conn: self._turn_back(conn, device_id))
        settled, gone = 0, []
        while batch := self._database.write(lambda conn: self._settle(conn, device_id)):
            settled += batch[0]
            gone += batch[1]
            self._reports.dispose(batch[1])
        self._database.write(lambda conn: evacuations.finish(conn, device_id))
        LOG.warning("Device %s is written off: %d removal(s) settled, %d resource(s) gone", device_id, settled, len(gone))
        return settled, gone

    def _check_gone(self, device: Device, force: bool) -> None:
        if device.admin_state is not AdminState.DISABLED:
            state = f"{device.admin_state}; disable it first, so that nothing new comes to it"
            raise StateInvalid(resource="Device", id=device.id, state=state)
        if force or device.status is DeviceStatus.OFFLINE or not self._has_live_agent(device.id):
            return
        state = f"{device.status} with a live agent; if it is gone all the same, say so with force"
        raise StateInvalid(resource="Device", id=device.id, state=state)

    def _has_live_agent(self, device_id: str) -> bool:
        def read(conn: sa.Connection) -> bool:
            binding = device_agents.by_devices(conn, [device_id]).get(device_id)
            known = {agent.id: agent for agent in agents.list_all(conn)}
            return binding is not None and known[binding.agent_id].alive(self._heard_since())

        return self._database.read(read)

    def _turn_back(self, conn: sa.Connection, device_id: str) -> None:
        """What lives elsewhere and is on its way here stays where it is."""
        living, count = moves.living(conn, device_id, MAX_NAMED)
        if count:
            more = f" and {count - len(living)} more" if count > len(living) else ""
            text = f"Device {device_id} still carries {', '.join(living)}{more}; evacuate it first."
            raise DeviceInUse(text, id=device_id, count=count)
        for resource_id in moves.arriving(conn, device_id):
            moves.roll_back(conn, resource_id, device_id, f"Device {device_id} was written off.")

    def _settle(self, conn: sa.Connection, device_id: str) -> tuple[int, list[str]] | None:
        waiting = deployments.to_be_removed(conn, device_id, BATCH)
        if not waiting:
            return None
        confirmed = [Result(row.resource_id, row.version, removed=True) for row in waiting]
        return len(waiting), list(self._reports.apply_reports(conn, [(device_id, it) for it in confirmed]).gone)
