"""From a pool's health monitors to HAProxy's one check per server.

All monitors that are up must pass. HAProxy runs one check per server, but the check may be a sequence: it connects, sends and
expects once per HTTP or HTTPS monitor. What a sequence cannot have is a rhythm of its own for each part, so the monitors of a
pool must agree on delay, timeout and max_retries. One that does not, and one that HAProxy has no check for, is left out and
reported on its own; the rest of the VIP works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lbaas_scheduler.domain.loadbalancers import HealthMonitor, MonitorType, Pool
from lbaas_scheduler.domain.words import MAX_RETRIES, MAX_SECONDS
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import words
from lbaas_scheduler.vendors.haproxy.words import expected_codes

SHARED_TIMING = "HAProxy applies several health monitors of a pool only if delay, timeout and max_retries are the same."
NO_PING = "HAProxy has no PING check; use a TCP, HTTP or HTTPS monitor."


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP exchange of the check; every word is ready for the configuration file."""

    method: str
    path: str
    codes: str
    tls: bool


@dataclass(frozen=True, slots=True)
class Check:
    """What to check of each member. No ``requests``: connecting is enough. Times in seconds."""

    delay: int
    timeout: int
    retries: int
    requests: Sequence[Request] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """``check`` None = members are not checked. ``errors``: id of a monitor that is not applied → why."""

    check: Check | None = None
    errors: Mapping[str, str] = field(default_factory=dict)


def plan(pool: Pool) -> Plan:
    errors: dict[str, str] = {}
    usable: list[tuple[HealthMonitor, Check]] = []
    for monitor in pool.health_monitors:
        if not monitor.admin_state_up:
            continue
        try:
            check = _check(monitor)
            if usable and _timing(monitor) != _timing(usable[0][0]):
                raise DriverError(SHARED_TIMING)
        except DriverError as error:
            errors[monitor.id] = error.message
        else:
            usable.append((monitor, check))
    if not usable:
        return Plan(None, errors)
    first = usable[0][1]
    # Two monitors that ask the same ask once; dict.fromkeys keeps the order.
    requests = tuple(dict.fromkeys(request for _, check in usable for request in check.requests))
    return Plan(Check(first.delay, first.timeout, first.retries, requests), errors)


def several_timings(pool: Pool) -> bool:
    """Whether monitors of the pool differ in their rhythm, so that HAProxy cannot apply all of them."""
    return len({_timing(monitor) for monitor in pool.health_monitors if monitor.admin_state_up}) > 1


def _timing(monitor: HealthMonitor) -> tuple[int, int, int]:
    return monitor.delay, monitor.timeout, monitor.max_retries


def _check(monitor: HealthMonitor) -> Check:
    if monitor.type is MonitorType.PING:
        raise DriverError(NO_PING)
    requests: tuple[Request, ...] = ()
    if monitor.type.http:
        requests = (
            Request(
                words.http_method(monitor.http_method),
                words.url_path(monitor.url_path),
                expected_codes(monitor),
                monitor.type is MonitorType.HTTPS,
            ),
        )
    return Check(
        words.integer(monitor.delay, 1, MAX_SECONDS, "delay"),
        words.integer(monitor.timeout, 1, MAX_SECONDS, "timeout"),
        words.integer(monitor.max_retries, 1, MAX_RETRIES, "max_retries"),
        requests,
    )
