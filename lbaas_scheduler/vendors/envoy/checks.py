"""A health monitor in Envoy's words. Refuses what Envoy cannot do, before it reaches a configuration."""

from __future__ import annotations

import re
from typing import Any

from lbaas_scheduler.domain.loadbalancers import HealthMonitor, MonitorType
from lbaas_scheduler.errors import InvalidRequest

Json = dict[str, Any]

TLS_CHECK = {"lbaas_check": "tls"}
"""Matches the transport socket of HTTPS checks, see :func:`transport_socket_matches`."""

_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH")
_PATH = re.compile(r"/[!-~]*")
# [0-9] and not \d, which takes digits of every script.
_CODES = re.compile(r"[1-5][0-9]{2}-[1-5][0-9]{2}|[1-5][0-9]{2}(?: *, *[1-5][0-9]{2})*")


def health_check(monitor: HealthMonitor) -> Json:
    """The monitor as an ``envoy.config.core.v3.HealthCheck``.

    :raises InvalidRequest: Envoy cannot check so; the text may be shown to the tenant.
    """
    check: Json = {
        "name": monitor.id,
        "timeout": f"{max(monitor.timeout, 1)}s",
        "interval": f"{max(monitor.delay, 1)}s",
        # Else a pool without traffic would be checked every minute only.
        "no_traffic_interval": f"{max(monitor.delay, 1)}s",
        "unhealthy_threshold": monitor.max_retries,
        "healthy_threshold": 1,
        "reuse_connection": False,
    }
    if monitor.type is MonitorType.PING:
        raise InvalidRequest("Envoy has no PING monitor; use TCP, HTTP or HTTPS.")
    if monitor.type is MonitorType.TCP:
        return {**check, "tcp_health_check": {}}
    if monitor.type is MonitorType.HTTPS:
        check["transport_socket_match_criteria"] = TLS_CHECK
    return {**check, "http_health_check": _http(monitor)}


def transport_socket_matches() -> list[Json]:
    """TLS for HTTPS checks, without verification: members of LBaaS v1 show certificates that nobody signed."""
    context = {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"}
    tls = {"name": "envoy.transport_sockets.tls", "typed_config": context}
    return [{"name": "https-monitor", "match": TLS_CHECK, "transport_socket": tls}]


def _http(monitor: HealthMonitor) -> Json:
    method = monitor.http_method.upper()
    if method not in _METHODS:
        raise InvalidRequest(f"http_method must be one of {', '.join(_METHODS)} on Envoy.")
    if _PATH.fullmatch(monitor.url_path) is None:
        raise InvalidRequest("url_path must start with / and hold printable ASCII characters without spaces.")
    return {
        "path": monitor.url_path,
        "method": method,
        "expected_statuses": _ranges(monitor.expected_codes),
        # Without it an unexpected answer counts as max_retries failures at once.
        "retriable_statuses": [{"start": 100, "end": 600}],
    }


def _ranges(codes: str) -> list[Json]:
    if _CODES.fullmatch(codes) is None:
        raise InvalidRequest("expected_codes must be a code, a list (200,202) or a range (200-204) between 100 and 599.")
    ranges = []
    for part in codes.split(","):
        low, _, high = part.strip().partition("-")
        if int(high or low) < int(low):
            raise InvalidRequest("expected_codes: the range must not end before it begins.")
        ranges.append({"start": int(low), "end": int(high or low) + 1})
    return ranges
