"""A health monitor in Envoy's words. Refuses what Envoy cannot do, before it reaches a configuration."""

from __future__ import annotations

from typing import Any

from lbaas_scheduler.domain.loadbalancers import HealthMonitor, MonitorType
from lbaas_scheduler.domain.words import MAX_RETRIES, MAX_SECONDS
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import words

Json = dict[str, Any]

TLS_CHECK = {"lbaas_check": "tls"}
"""Matches the transport socket of HTTPS checks, see :func:`transport_socket_matches`."""


def health_check(monitor: HealthMonitor) -> Json:
    """The monitor as an ``envoy.config.core.v3.HealthCheck``.

    :raises DriverError: Envoy cannot check so; the text may be shown to the tenant.
    """
    check: Json = {
        "name": monitor.id,
        "timeout": f"{words.integer(monitor.timeout, 1, MAX_SECONDS, 'timeout')}s",
        "interval": f"{words.integer(monitor.delay, 1, MAX_SECONDS, 'delay')}s",
        # Else a pool without traffic would be checked every minute only.
        "no_traffic_interval": f"{monitor.delay}s",
        "unhealthy_threshold": words.integer(monitor.max_retries, 1, MAX_RETRIES, "max_retries"),
        "healthy_threshold": 1,
        "reuse_connection": False,
    }
    if monitor.type is MonitorType.PING:
        raise DriverError("Envoy has no PING monitor; use TCP, HTTP or HTTPS.")
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
    return {
        "path": words.url_path(monitor.url_path),
        "method": words.http_method(monitor.http_method),
        "expected_statuses": [{"start": low, "end": high + 1} for low, high in words.expected_codes(monitor)],
        # Without it an unexpected answer counts as max_retries failures at once.
        "retriable_statuses": [{"start": 100, "end": 600}],
    }
