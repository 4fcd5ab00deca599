"""The scheduler's side of Envoy devices."""

from __future__ import annotations

from typing import cast

from oslo_config import cfg

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.handlers import DeviceHandler
from lbaas_scheduler.vendors.envoy import extra, options
from lbaas_scheduler.vendors.envoy.checks import health_check

# Envoy has no PING check, and nothing that learns a cookie which the application sets (APP_COOKIE). Its processes share the
# host's network, so that tenants' addresses must not overlap.
MISSING = frozenset({traits.MONITOR_PING, traits.PERSISTENCE_APP_COOKIE, traits.OVERLAPPING_IPS})


class EnvoyHandler(DeviceHandler):
    """An Envoy device is a process on its agent's host: there is nothing to log in to, and nothing to ask from afar."""

    device_type = "envoy"
    traits = traits.STANDARD - MISSING

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    @classmethod
    def register_opts(cls, conf: object) -> None:
        options.register_opts(cast("cfg.ConfigOpts", conf))

    def validate_device(self, device: Device) -> None:
        extra.concurrency(device.extra, default=1)

    def is_good(self, device: Candidate, request: ScheduleRequest) -> Verdict:
        """No to a monitor that Envoy cannot express: traits do not tell one HTTP method from another."""
        if not isinstance(request.resource, Vip):
            return Verdict.yes()
        try:
            for monitor in request.resource.pool.health_monitors:
                health_check(monitor)
        except DriverError as error:
            return Verdict.no(error.message)
        return Verdict.yes()
