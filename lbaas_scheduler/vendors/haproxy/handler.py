"""The scheduler's side: what a HAProxy device can take."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Candidate, Device
from lbaas_scheduler.domain.loadbalancers import Vip
from lbaas_scheduler.domain.requests import ScheduleRequest, Verdict
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.sdk.handlers import DeviceHandler
from lbaas_scheduler.vendors.haproxy.extra import Extra
from lbaas_scheduler.vendors.haproxy.health import SHARED_TIMING, several_timings
from lbaas_scheduler.vendors.haproxy.networks import is_interface

SERVICE = "LoadBalancer"


class HaproxyHandler(DeviceHandler):
    """HAProxy on the host of the agent that drives it.

    It has no management address to ask: the agent that drives the device is the one that reports on it, so the handler does
    not have the ability MONITOR. HAProxy has no ICMP check, so there is no ``MONITOR_PING``. Several monitors on a pool become
    one sequence of checks; they must therefore agree on delay, timeout and max_retries (:meth:`is_good`).
    """

    device_type = "haproxy"
    traits = frozenset(
        {
            traits.PROTOCOL_TCP,
            traits.PROTOCOL_HTTP,
            traits.PROTOCOL_HTTPS,
            traits.METHOD_ROUND_ROBIN,
            traits.METHOD_LEAST_CONNECTIONS,
            traits.METHOD_SOURCE_IP,
            traits.PERSISTENCE_SOURCE_IP,
            traits.PERSISTENCE_HTTP_COOKIE,
            traits.PERSISTENCE_APP_COOKIE,
            traits.MONITOR_TCP,
            traits.MONITOR_HTTP,
            traits.MONITOR_HTTPS,
            traits.MONITOR_SEVERAL,
            traits.CONNECTION_LIMIT,
            traits.ADDRESS_IPV4,
            traits.ADDRESS_IPV6,
        }
    )

    def __init__(self, conf: Any) -> None:
        self.conf = conf

    def validate_device(self, device: Device) -> None:
        if device.device_type != self.device_type:
            raise InvalidRequest(f"device_type: expected '{self.device_type}', not '{device.device_type}'.")
        if device.service != SERVICE:
            raise InvalidRequest(f"service: a haproxy device serves '{SERVICE}', not '{device.service}'.")
        beyond = sorted((device.traits & traits.STANDARD) - self.traits)
        if beyond:
            raise InvalidRequest(f"traits: HAProxy cannot do {', '.join(beyond)}; it can do {', '.join(sorted(self.traits))}.")
        if Extra.parse(device.extra).netns:
            _check_interfaces(device)

    def is_good(self, device: Candidate, request: ScheduleRequest) -> Verdict:
        vip = request.resource
        if not isinstance(vip, Vip):
            return Verdict.yes()
        maxconn = Extra.parse(device.device.extra).maxconn
        if maxconn is not None and vip.connection_limit > maxconn:
            return Verdict.no(f"connection_limit {vip.connection_limit} is above the device's maxconn {maxconn}.")
        if several_timings(vip.pool):
            return Verdict.no(SHARED_TIMING)
        return Verdict.yes()


def _check_interfaces(device: Device) -> None:
    if not device.interfaces:
        raise InvalidRequest(
            "interfaces: a device in a network namespace (extra.netns) needs one to reach the VIPs' networks by."
        )
    for interface in device.interfaces:
        if not is_interface(interface.name):
            raise InvalidRequest(
                f"interfaces: {interface.name!r} cannot be the name of a link; expected up to 15 letters, digits and _ . -"
            )
