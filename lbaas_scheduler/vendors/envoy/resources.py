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
connection_limit                   connection-limit filter, never above the VIP's share of the device; beyond it: closed;
                                   0 = a filter chain that matches nobody
=================================  ===========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lbaas_scheduler.domain.loadbalancers import ForwardedFor, Member, Method, Persistence, Protocol, Vip
from lbaas_scheduler.domain.words import MAX_CONNECTION_LIMIT
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import words
from lbaas_scheduler.sdk.words import Endpoint
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
_NOBODY: Json = {"address_prefix": "255.255.255.255", "prefix_len": 32}
"""No client has this address."""

# Ids name clusters, statistics (where a dot separates) and files.
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Resources:
    """What one VIP is made of. Both None: the VIP is switched off."""

    cluster: Json | None = None
    listener: Json | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """``members``: address and port as Envoy writes them → id, of those in service; ``errors``: id of a member or monitor that
    was left out → why; ``checked``: a monitor looks after the members."""

    resources: Resources = field(default_factory=Resources)
    members: Mapping[str, str] = field(default_factory=dict)
    checked: bool = False
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a device grants each of its VIPs. ``connect`` and ``idle`` in seconds; ``connections``: at once."""

    connect: int
    idle: int
    connections: int


def render(vip: Vip, terms: Terms, beside: Mapping[Endpoint, Collection[Endpoint]] | None = None) -> Rendered:
    """
    :param beside: where the device's other VIPs are → where their members are.
    :raises DriverError: Envoy cannot do what the VIP asks; the text may be shown to the tenant.
    """
    check_id(vip.id)
    found = words.members(vip, beside)
    checks, errors = _checks(vip)
    if not vip.admin_state_up:
        return Rendered(errors={**found.errors, **errors})
    _check_persistence(vip)
    up = [item for item in found.usable.values() if item[0].admin_state_up and vip.pool.admin_state_up]
    members = {address_and_port(*at): member.id for member, at in up}
    resources = Resources(_cluster(vip, terms, up, checks), _listener(vip, terms))
    return Rendered(resources, members, bool(checks), {**found.errors, **errors})


def _checks(vip: Vip) -> tuple[list[Json], dict[str, str]]:
    checks: list[Json] = []
    errors: dict[str, str] = {}
    for monitor in vip.pool.health_monitors:
        try:
            if monitor.admin_state_up:
                checks.append(health_check(monitor))
        except DriverError as error:
            errors[monitor.id] = error.message
    return checks, errors


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
        raise DriverError("Envoy has no session_persistence APP_COOKIE; use HTTP_COOKIE or SOURCE_IP.")
    if vip.protocol is not Protocol.HTTP:
        raise DriverError(f"session_persistence {sticky.type} needs protocol HTTP, not {vip.protocol}.")


def check_id(vip_id: str) -> None:
    """:raises DriverError: the id cannot name things on Envoy."""
    if _ID.fullmatch(vip_id) is None:
        raise DriverError("The id of a VIP must be 1 to 64 letters, digits, '-' or '_'.")


def address_and_port(address: str, port: int) -> str:
    """As Envoy reports it."""
    return f"{address} {port}"


def place(listener: Json) -> Endpoint:
    """Where a listener is."""
    socket = listener["address"]["socket_address"]
    return socket["address"], socket["port_value"]


def places(cluster: Json) -> tuple[Endpoint, ...]:
    """Where a cluster's members are."""
    (group,) = cluster["load_assignment"]["endpoints"]
    return tuple(place(item["endpoint"]) for item in group["lb_endpoints"])


def _cluster(vip: Vip, terms: Terms, members: Sequence[tuple[Member, Endpoint]], checks: Sequence[Json]) -> Json:
    cluster: Json = {
        "@type": CLUSTER,
        "name": vip.id,
        "type": "STATIC",
        "connect_timeout": f"{terms.connect}s",
        "common_lb_config": {
            # A member that failed its check gets nothing, even if all others failed too.
            "healthy_panic_threshold": {"value": 0},
            "update_merge_window": "0s",
            "override_host_status": {"statuses": ["UNKNOWN", "HEALTHY", "DEGRADED", "DRAINING"]},
        },
        "load_balancing_policy": {"policies": [{"typed_extension_config": _policy(vip)}]},
        "circuit_breakers": {"thresholds": [_thresholds("DEFAULT"), _thresholds("HIGH")]},
        "load_assignment": {"cluster_name": vip.id, "endpoints": [{"lb_endpoints": [_member(*item) for item in members]}]},
    }
    if vip.protocol is Protocol.HTTP:
        cluster["typed_extension_protocol_options"] = _upstream_http()
    if checks and members:
        cluster["health_checks"] = list(checks)
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


def _member(member: Member, at: Endpoint) -> Json:
    address, port = at
    host = f"[{address}]" if ":" in address else address
    return {
        "endpoint": {
            "address": _socket(address, port),
            # The Host header of its check; Envoy would send the name of the cluster.
            "health_check_config": {"hostname": f"{host}:{port}"},
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


def _listener(vip: Vip, terms: Terms) -> Json:
    last = _http_filter(vip, terms) if vip.protocol is Protocol.HTTP else _tcp_filter(vip, terms)
    limit = words.integer(vip.connection_limit, -1, MAX_CONNECTION_LIMIT, "connection_limit")
    chain: Json = {"filters": [_limit(vip, min(limit, terms.connections) if limit > 0 else terms.connections), last]}
    if limit == 0:
        chain["filter_chain_match"] = {"source_prefix_ranges": [_NOBODY]}
    return {
        "@type": LISTENER,
        "name": vip.id,
        "stat_prefix": vip.id,
        "address": _socket(*words.endpoint(vip.address, vip.protocol_port, "VIP")),
        # While a VIP passes from one device of the host to another, both listen on its address. Who else may is seen to by us.
        "enable_reuse_port": True,
        "filter_chains": [chain],
    }


def _limit(vip: Vip, connections: int) -> Json:
    config = {
        "@type": EXTENSIONS + "filters.network.connection_limit.v3.ConnectionLimit",
        "stat_prefix": vip.id,
        "max_connections": connections,
    }
    return {"name": "envoy.filters.network.connection_limit", "typed_config": config}


def _tcp_filter(vip: Vip, terms: Terms) -> Json:
    config = {
        "@type": EXTENSIONS + "filters.network.tcp_proxy.v3.TcpProxy",
        "stat_prefix": vip.id,
        "cluster": vip.id,
        "idle_timeout": f"{terms.idle}s",
        "max_connect_attempts": RETRIES + 1,
        "hash_policy": [{"source_ip": {}}],
    }
    return {"name": "envoy.filters.network.tcp_proxy", "typed_config": config}


def _http_filter(vip: Vip, terms: Terms) -> Json:
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
        "stream_idle_timeout": f"{terms.idle}s",
        "use_remote_address": True,
        # Of a client on loopback it would name another address of the host; the route adds what HAProxy adds.
        "skip_xff_append": True,
        # No client may steer Envoy through X-Envoy-* headers, not even one on this host. Without a range, some could; no
        # client has this address.
        "internal_address_config": {"cidr_ranges": [_NOBODY]},
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
        "request_headers_to_add": [_forwarded_for(vip)],
        "virtual_hosts": [{"name": vip.id, "domains": ["*"], "routes": routes}],
    }


def _forwarded_for(vip: Vip) -> Json:
    """Envoy joins lines of it to one before."""
    action = "APPEND_IF_EXISTS_OR_ADD" if vip.forwarded_for is ForwardedFor.APPEND else "OVERWRITE_IF_EXISTS_OR_ADD"
    header = {"key": "X-Forwarded-For", "value": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"}
    return {"header": header, "append_action": action}


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
