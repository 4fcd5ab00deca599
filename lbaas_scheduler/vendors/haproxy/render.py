"""From a VIP to the text of its configuration file. Pure: no file, no process.

Every name in a file is an id. Nothing that a tenant wrote gets past
:mod:`lbaas_scheduler.sdk.words`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lbaas_scheduler.domain.deployments import Deployment
from lbaas_scheduler.domain.loadbalancers import ForwardedFor, Method, Persistence, Protocol, Vip
from lbaas_scheduler.domain.words import MAX_CONNECTION_LIMIT
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk import words as limits
from lbaas_scheduler.vendors.haproxy import health, words
from lbaas_scheduler.vendors.haproxy.drift import stamp
from lbaas_scheduler.vendors.haproxy.extra import Extra
from lbaas_scheduler.vendors.haproxy.marker import Marker
from lbaas_scheduler.vendors.haproxy.options import Settings

ROUND_ROBIN_MAX = 4095
"""More servers than this HAProxy's dynamic round robin does not take; its static one does, without weights at run time."""
HTTP_COOKIE = "SRV"
BUFFER_BYTES = 65_536
"""All but 1 KiB of it is for the headers of a request or an answer. HAProxy's own 16 KiB are too few for the cookies of some
applications; Envoy takes 60 KiB."""
MAX_FORWARDED_LINES = 8
"""Lines of X-Forwarded-For that are joined to one. Of more, the first are left out: whoever wrote them is the farthest away."""
_BALANCE = {
    Method.ROUND_ROBIN: "roundrobin",
    Method.LEAST_CONNECTIONS: "leastconn",
    Method.SOURCE_IP: "source",
}

# Not HTML: autoescape would spoil it. Each value is checked and escaped by words.py before it gets here.
_TEMPLATES = Environment(
    loader=PackageLoader("lbaas_scheduler.vendors.haproxy"),
    autoescape=False,  # noqa: S701
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


@dataclass(frozen=True, slots=True)
class Server:
    """A member, ready for the configuration file."""

    id: str
    endpoint: str
    weight: int
    up: bool


@dataclass(frozen=True, slots=True)
class Rendered:
    """One VIP's file. ``servers``: what the runtime API must show once it is applied. ``errors``: object id → why left out."""

    marker: Marker
    body: str
    backend: str
    servers: tuple[Server, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.marker.line() + self.body


def backend_name(vip: Vip) -> str:
    """Holds the VIP's id too: while a pool passes from one VIP to another, the device may know it twice."""
    return f"{vip.id}.{vip.pool.id}"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a device grants each of its VIPs. ``connections``: at once; 0 = as many as the device has itself."""

    connections: int = 0
    connect_timeout_ms: int = 5_000


NO_TERMS = Terms()


def render_vip(
    deployment: Deployment, terms: Terms = NO_TERMS, beside: Mapping[limits.Endpoint, Collection[limits.Endpoint]] | None = None
) -> Rendered:
    """
    :param beside: where the device's other VIPs are → where their members are.
    :raises DriverError: the VIP as a whole cannot be applied; the text may be shown to the tenant.
    """
    vip = deployment.vip
    words.identifier(vip.id, "VIP")
    words.identifier(vip.pool.id, "pool")
    bind = words.endpoint(limits.endpoint(vip.address, vip.protocol_port, "VIP"))
    http = vip.protocol is Protocol.HTTP
    servers, errors = _servers(vip, beside)
    checks = health.plan(vip.pool)
    # A TCP client is to be refused while the pool is down; an HTTP client gets 503 from a backend without servers.
    listens = vip.admin_state_up and (http or vip.pool.admin_state_up)
    body = _TEMPLATES.get_template("vip.cfg.j2").render(
        vip_id=vip.id,
        backend=backend_name(vip),
        bind=bind,
        listens=listens,
        ipv6=bind.startswith("["),
        http=http,
        limit=_limit(vip, terms),
        balance=_balance(vip.pool.lb_method, len(servers)),
        persistence=_persistence(vip),
        cookie=HTTP_COOKIE,
        forwarded_lines=range(MAX_FORWARDED_LINES, 0, -1) if vip.forwarded_for is ForwardedFor.APPEND else (),
        check=checks.check,
        connect_timeout_ms=terms.connect_timeout_ms,
        servers=servers,
    )
    body += stamp(vip.id, body)
    marker = Marker.of(vip.id, deployment.version, body, bind if listens else "")
    return Rendered(marker, body, backend_name(vip), servers, {**errors, **checks.errors})


def render_base(settings: Settings, extra: Extra) -> str:
    """The file that all VIPs of a device share."""
    return _TEMPLATES.get_template("base.cfg.j2").render(settings=settings, extra=extra, buffer=BUFFER_BYTES)


def _balance(method: Method, servers: int) -> str:
    if method is Method.ROUND_ROBIN and servers > ROUND_ROBIN_MAX:
        return "static-rr"
    return _BALANCE[method]


def _limit(vip: Vip, terms: Terms) -> int | None:
    """How many connections the VIP may have at once; None = as many as the device."""
    limit = limits.integer(vip.connection_limit, -1, MAX_CONNECTION_LIMIT, "connection_limit")
    granted = [most for most in (limit if limit >= 0 else None, terms.connections or None) if most is not None]
    return min(granted) if granted else None


def _servers(
    vip: Vip, beside: Mapping[limits.Endpoint, Collection[limits.Endpoint]] | None
) -> tuple[tuple[Server, ...], dict[str, str]]:
    found = limits.members(vip, beside)
    servers, errors = [], dict(found.errors)
    for member, place in found.usable.values():
        try:
            up = member.admin_state_up and vip.pool.admin_state_up
            servers.append(Server(words.identifier(member.id, "member"), words.endpoint(place), member.weight, up))
        except DriverError as error:
            errors[member.id] = error.message
    return tuple(servers), errors


def _persistence(vip: Vip) -> dict[str, Any] | None:
    persistence = vip.session_persistence
    if persistence is None:
        return None
    if persistence.type is Persistence.SOURCE_IP:
        # A table of type "ip" never matches an IPv6 client.
        return {"type": "source", "table": "ipv6" if ipaddress.ip_address(vip.address).version == 6 else "ip"}
    if vip.protocol is not Protocol.HTTP:
        raise DriverError(f"session_persistence {persistence.type} needs protocol HTTP, not {vip.protocol}.")
    if persistence.type is Persistence.HTTP_COOKIE:
        return {"type": "http_cookie"}
    return {"type": "app_cookie", "name": limits.cookie_name(persistence.cookie_name)}
