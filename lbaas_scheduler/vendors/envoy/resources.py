"""A VIP as Envoy sees it: a listener, and a cluster of the same name. Pure; JSON values only, never a formatted text.

The listener depends on the VIP alone and the cluster on its pool, so that no change of members, weights, monitors or of
the method touches an open connection: Envoy drains connections of a changed listener, not those of a changed cluster.

=================================  ===========================================================================
LBaaS v1                           Envoy
=================================  ===========================================================================
VIP switched off                   no listener and no cluster
pool switched off, or no member    cluster without endpoints: HTTP 503, TCP closed
member switched off                no endpoint
weight 0                           endpoint DRAINING: only requests that a cookie ties to it
SOURCE_IP (method or persistence)  Maglev hash of the client's address; takes the place of another method
HTTP_COOKIE                        stateful session; the cookie names the member's address, in base64
connection_limit                   connection-limit filter; −1 and 0 = none, as in HAProxy; beyond it: closed
=================================  ===========================================================================
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lbaas_scheduler.domain.loadbalancers import Member, Method, Persistence, Pool, Protocol, Vip
from lbaas_scheduler.errors import InvalidRequest
from lbaas_scheduler.sdk.listening import Endpoint
from lbaas_scheduler.vendors.envoy.checks import health_check, transport_socket_matches

Json = dict[str, Any]

TYPE = "type.googleapis.com/"
CLUSTER = TYPE + "envoy.config.cluster.v3.Cluster"
LISTENER = TYPE + "envoy.config.listener.v3.Listener"
EXTENSIONS = TYPE + "envoy.extensions."
UNLIMITED = 2**32 - 1
"""Envoy's own default of 1,024 connections would be a limit that nobody asked for."""
UPSTREAM_IDLE = "4s"
"""Below the keep-alive time of common servers, else a request may meet a connection that the member is closing."""
CLIENT_KEEP_ALIVE = "75s"
SAFE_METHODS = "GET|HEAD|OPTIONS"
RETRIES = 5

# Ids name clusters, statistics (where a dot separates) and files.
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Resources:
    """What one VIP is made of. Both None: the VIP is switched off."""

    cluster: Json | None = None
    listener: Json | None = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds."""

    connect: int
    idle: int


def render(vip: Vip, timeouts: Timeouts) -> Resources:
    """:raises InvalidRequest: Envoy cannot do what the VIP asks; the text may be shown to the tenant."""
    check_id(vip.id)
    if not vip.admin_state_up:
        return Resources()
    _check_persistence(vip)
    return Resources(_cluster(vip, timeouts), _listener(vip, timeouts))


def open_address(resources: Resources) -> Endpoint | None:
    """Where the VIP listens; None where it is switched off."""
    if resources.listener is None:
        return None
    address: Json = resources.listener["address"]["socket_address"]
    return address["address"], address["port_value"]


def sharing(resources: Resources, shares: bool) -> Resources:
    """The same with an address that is shared, or is not. Of a listener that is open, Envoy lets nobody change it."""
    if resources.listener is None:
        return resources
    return replace(resources, listener={**resources.listener, "enable_reuse_port": shares})


def shares(resources: Resources) -> bool:
    """Whether the VIP's address is shared; so is one that is not open."""
    return resources.listener is None or bool(resources.listener["enable_reuse_port"])


def _check_persistence(vip: Vip) -> None:
    """One that would have no effect is refused: a tenant who gets it silently finds out when his sessions are lost."""
    sticky = vip.session_persistence
    if sticky is None or sticky.type is Persistence.SOURCE_IP:
        return
    if sticky.type is Persistence.APP_COOKIE:
        raise InvalidRequest("Envoy has no session_persistence APP_COOKIE; use HTTP_COOKIE or SOURCE_IP.")
    if vip.protocol is not Protocol.HTTP:
        raise InvalidRequest(f"session_persistence {sticky.type} needs protocol HTTP, not {vip.protocol}.")


def check_id(vip_id: str) -> None:
    """:raises InvalidRequest: the id cannot name things on Envoy."""
    if _ID.fullmatch(vip_id) is None:
        raise InvalidRequest("The id of a VIP must be 1 to 64 letters, digits, '-' or '_'.")


def endpoints(pool: Pool) -> Mapping[str, str]:
    """Address and port, as Envoy writes them → id of the member, for every member that is in service."""
    if not pool.admin_state_up:
        return {}
    return {endpoint(item.address, item.protocol_port): item.id for item in pool.members if item.admin_state_up}


def endpoint(address: str, port: int) -> str:
    return f"{_address(address)} {port}"


def _cluster(vip: Vip, timeouts: Timeouts) -> Json:
    pool = vip.pool
    members = [member for member in pool.members if member.admin_state_up] if pool.admin_state_up else []
    checks = [health_check(monitor) for monitor in pool.health_monitors if monitor.admin_state_up]
    cluster: Json = {
        "@type": CLUSTER,
        "name": vip.id,
        "type": "STATIC",
        "connect_timeout": f"{timeouts.connect}s",
        "common_lb_config": {
            # A member that failed its check gets nothing, even if all others failed too.
            "healthy_panic_threshold": {"value": 0},
            "update_merge_window": "0s",
            "override_host_status": {"statuses": ["UNKNOWN", "HEALTHY", "DEGRADED", "DRAINING"]},
        },
        "load_balancing_policy": {"policies": [{"typed_extension_config": _policy(vip)}]},
        "circuit_breakers": {"thresholds": [_thresholds("DEFAULT"), _thresholds("HIGH")]},
        "load_assignment": {"cluster_name": vip.id, "endpoints": [{"lb_endpoints": [_member(item) for item in members]}]},
    }
    if vip.protocol is Protocol.HTTP:
        cluster["typed_extension_protocol_options"] = _upstream_http()
    if checks and members:
        cluster["health_checks"] = checks
        cluster["transport_socket_matches"] = transport_socket_matches()
    return cluster


def _policy(vip: Vip) -> Json:
    sticky = vip.session_persistence
    if vip.pool.lb_method is Method.SOURCE_IP or (sticky and sticky.type is Persistence.SOURCE_IP):
        name, config = "maglev", {"@type": EXTENSIONS + "load_balancing_policies.maglev.v3.Maglev"}
    elif vip.pool.lb_method is Method.LEAST_CONNECTIONS:
        # Envoy's default compares two random members only.
        config = {
            "@type": EXTENSIONS + "load_balancing_policies.least_request.v3.LeastRequest",
            "selection_method": "FULL_SCAN",
        }
        name = "least_request"
    else:
        name, config = "round_robin", {"@type": EXTENSIONS + "load_balancing_policies.round_robin.v3.RoundRobin"}
    return {"name": f"envoy.load_balancing_policies.{name}", "typed_config": config}


def _thresholds(priority: str) -> Json:
    limits = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests", "max_retries"), UNLIMITED)
    return {"priority": priority, **limits}


def _member(member: Member) -> Json:
    address = _address(member.address)
    host = f"[{address}]" if ":" in address else address
    return {
        "endpoint": {
            "address": _socket(address, member.protocol_port),
            # The Host header of its check; Envoy would send the name of the cluster.
            "health_check_config": {"hostname": f"{host}:{member.protocol_port}"},
        },
        "load_balancing_weight": max(member.weight, 1),
        "health_status": "HEALTHY" if member.weight else "DRAINING",
    }


def _upstream_http() -> Json:
    options = {
        "@type": EXTENSIONS + "upstreams.http.v3.HttpProtocolOptions",
        "common_http_protocol_options": {"idle_timeout": UPSTREAM_IDLE},
        "explicit_http_config": {"http_protocol_options": {"header_key_format": _preserve_case()}},
    }
    return {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options}


def _listener(vip: Vip, timeouts: Timeouts) -> Json:
    last = _http_filter(vip, timeouts) if vip.protocol is Protocol.HTTP else _tcp_filter(vip, timeouts)
    return {
        "@type": LISTENER,
        "name": vip.id,
        "stat_prefix": vip.id,
        "address": _socket(_address(vip.address), vip.protocol_port),
        # While a VIP passes from one device of the host to another, both listen on its address. Who else may is seen to by us.
        "enable_reuse_port": True,
        "filter_chains": [{"filters": [*_limit(vip), last]}],
    }


def _limit(vip: Vip) -> list[Json]:
    if vip.connection_limit <= 0:
        return []
    config = {
        "@type": EXTENSIONS + "filters.network.connection_limit.v3.ConnectionLimit",
        "stat_prefix": vip.id,
        "max_connections": vip.connection_limit,
    }
    return [{"name": "envoy.filters.network.connection_limit", "typed_config": config}]


def _tcp_filter(vip: Vip, timeouts: Timeouts) -> Json:
    config = {
        "@type": EXTENSIONS + "filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": vip.id,
        "cluster": vip.id,
        "idle_timeout": f"{timeouts.idle}s",
        "max_connect_attempts": RETRIES + 1,
        "hash_policy": [{"source_ip": {}}],
    }
    return {"name": "envoy.filters.network.tcp_proxy", "typed_config": config}


def _http_filter(vip: Vip, timeouts: Timeouts) -> Json:
    """A proxy that changes as little as it can: case of headers, path, Server and request ids stay; it adds X-Forwarded-For."""
    config = {
        "@type": EXTENSIONS + "filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": vip.id,
        "codec_type": "HTTP1",
        "http_protocol_options": {
            "accept_http_10": True,
            "default_host_for_http_10": vip.address,
            "header_key_format": _preserve_case(),
        },
        "common_http_protocol_options": {"idle_timeout": CLIENT_KEEP_ALIVE},
        "stream_idle_timeout": f"{timeouts.idle}s",
        "use_remote_address": True,
        # No client may steer Envoy through X-Envoy-* headers, not even one on this host. Without a range, some could; no
        # client has this address.
        "internal_address_config": {"cidr_ranges": [{"address_prefix": "255.255.255.255", "prefix_len": 32}]},
        "generate_request_id": False,
        "server_header_transformation": "PASS_THROUGH",
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "http_filters": [*_session(vip), _router()],
        "route_config": _routes(vip),
    }
    return {"name": "envoy.filters.network.http_connection_manager", "typed_config": config}


def _session(vip: Vip) -> list[Json]:
    sticky = vip.session_persistence
    if sticky is None or sticky.type is not Persistence.HTTP_COOKIE:
        return []
    # Cookies do not tell ports apart: the name must differ between two VIPs on one address.
    cookie = {"name": f"lbaas-{vip.id[:8]}", "path": "/", "attributes": [{"name": "HttpOnly"}]}
    state = {
        "@type": EXTENSIONS + "http.stateful_session.cookie.v3.CookieBasedSessionState",
        "cookie": cookie,
    }
    config = {
        "@type": EXTENSIONS + "filters.http.stateful_session.v3.StatefulSession",
        "session_state": {"name": "envoy.http.stateful_session.cookie", "typed_config": state},
    }
    return [{"name": "envoy.filters.http.stateful_session", "typed_config": config}]


def _router() -> Json:
    config = {"@type": EXTENSIONS + "filters.http.router.v3.Router", "suppress_envoy_headers": True}
    return {"name": "envoy.filters.http.router", "typed_config": config}


def _routes(vip: Vip) -> Json:
    """A request that never reached a member goes to another one; a safe one also if the member died while it answered."""
    safe = {"name": ":method", "string_match": {"safe_regex": {"regex": SAFE_METHODS}}}
    unsent = "connect-failure,refused-stream,reset-before-request"
    routes = [
        {"match": {"prefix": "/", "headers": [safe]}, "route": _route(vip, unsent + ",reset")},
        {"match": {"prefix": "/"}, "route": _route(vip, unsent)},
    ]
    return {
        "name": vip.id,
        "validate_clusters": False,
        "request_headers_to_remove": ["x-envoy-external-address"],
        "virtual_hosts": [{"name": vip.id, "domains": ["*"], "routes": routes}],
    }


def _route(vip: Vip, retry_on: str) -> Json:
    previous = {
        "name": "envoy.retry_host_predicates.previous_hosts",
        "typed_config": {"@type": EXTENSIONS + "retry.host.previous_hosts.v3.PreviousHostsPredicate"},
    }
    return {
        "cluster": vip.id,
        "timeout": "0s",
        "hash_policy": [{"connection_properties": {"source_ip": True}}],
        "retry_policy": {
            "retry_on": retry_on,
            "num_retries": RETRIES,
            "retry_host_predicate": [previous],
            "host_selection_retry_max_attempts": RETRIES,
        },
    }


def _preserve_case() -> Json:
    formatter = {"@type": EXTENSIONS + "http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig"}
    return {"stateful_formatter": {"name": "preserve_case", "typed_config": formatter}}


def _socket(address: str, port: int) -> Json:
    return {"socket_address": {"address": address, "port_value": port}}


def _address(text: str) -> str:
    """In the one spelling that Envoy uses too, so that its reports can be compared with it."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise InvalidRequest("An address must be an IPv4 or IPv6 address.") from error
