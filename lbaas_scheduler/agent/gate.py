"""The one gate through which the agent calls vendors' drivers: whatever a driver raises or forgets becomes results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from lbaas_scheduler.agent.changes import Change
from lbaas_scheduler.domain.deployments import Result
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.errors import ConfigurationError, DriverError
from lbaas_scheduler.rpc.server_api import Operation
from lbaas_scheduler.sdk.drivers import AgentDriver

LOG = logging.getLogger(__name__)

OpenDevice = Callable[[], Device]
"""Unseals the device's secret, just before it is needed."""


def carry_out(driver: AgentDriver, open_device: OpenDevice, changes: Sequence[Change]) -> list[Result]:
    """Bring all changes to the device: one removal and one apply at most. Never raises; one result per change, in no order.

    Removals go first, so that an address or a port is free when a new VIP takes it over.
    """
    removals = [change for change in changes if change.operation is Operation.REMOVE]
    applies = [change for change in changes if change.operation is Operation.APPLY]
    results: list[Result] = []
    if removals:
        ids = [change.vip_id for change in removals]
        results += _guarded(driver, removals, lambda: driver.remove(open_device(), ids))
    if applies:
        deployments = [change.deployment for change in applies if change.deployment is not None]
        results += _guarded(driver, applies, lambda: driver.apply(open_device(), deployments))
    return results


def explain(driver: AgentDriver, error: BaseException) -> str:
    """Log an error of a driver in full; return what a tenant may read of it."""
    if isinstance(error, DriverError):
        LOG.warning("Driver of %s: %s", driver.device_type, error.operator_message)
        return error.message
    if isinstance(error, ConfigurationError):
        LOG.error("Driver of %s cannot be used: %s", driver.device_type, error.message)
        return "The agent's configuration does not allow to reach the device."
    LOG.error("Driver of %s raised an unexpected error", driver.device_type, exc_info=error)
    return "The device driver failed unexpectedly."


def _guarded(driver: AgentDriver, changes: Sequence[Change], call: Callable[[], Sequence[Result]]) -> list[Result]:
    try:
        return _match(driver, changes, call())
    except BaseException as error:  # a driver's SystemExit must not end its device's worker
        text = explain(driver, error)
        return [Result(change.vip_id, change.version, error=text) for change in changes]


def _match(driver: AgentDriver, changes: Sequence[Change], results: Sequence[Result]) -> list[Result]:
    """One result per change, with the change's own version: that is what the server waits for."""
    found = {result.vip_id: result for result in results}
    unknown = found.keys() - {change.vip_id for change in changes}
    if unknown:
        LOG.error("Driver of %s reported on VIPs that it was not asked about: %s", driver.device_type, sorted(unknown))
    return [_outcome(change, found.get(change.vip_id)) for change in changes]


def _outcome(change: Change, result: Result | None) -> Result:
    if result is None:
        return Result(change.vip_id, change.version, error="The device driver did not say what became of the VIP.")
    removed = change.operation is Operation.REMOVE and result.ok
    return replace(result, version=change.version, removed=removed)
