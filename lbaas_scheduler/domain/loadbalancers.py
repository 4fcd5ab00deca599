"""The logical model of LBaaS v1: VIP, pool, member, health monitor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Protocol(StrEnum):
    """What a VIP's clients speak. HTTPS is passed through to the members as it comes."""

    TCP = "TCP"
    HTTP = "HTTP"
    HTTPS = "HTTPS"


class Method(StrEnum):
    """How a pool chooses the member for a new connection."""

    ROUND_ROBIN = "ROUND_ROBIN"
    LEAST_CONNECTIONS = "LEAST_CONNECTIONS"
    SOURCE_IP = "SOURCE_IP"


class Persistence(StrEnum):
    """By what a client is led back to its member: its address, a cookie of the device's, or one of the application's."""

    SOURCE_IP = "SOURCE_IP"
    HTTP_COOKIE = "HTTP_COOKIE"
    APP_COOKIE = "APP_COOKIE"


class ForwardedFor(StrEnum):
    """What becomes of an X-Forwarded-For header that a client of an HTTP VIP sent. Members get one line in either case.

    REPLACE: it gives way to the client's address, so that nobody can pretend to be somebody else. APPEND: the client's address
    comes after what was there, for VIPs behind a proxy that is to be believed.
    """

    REPLACE = "replace"
    APPEND = "append"


class MonitorType(StrEnum):
    """What a health monitor tries with a member: an ICMP echo, a connection, or a request over one."""

    PING = "PING"
    TCP = "TCP"
    HTTP = "HTTP"
    HTTPS = "HTTPS"

    @property
    def http(self) -> bool:
        """Whether it sends a request, so that method, path and expected codes count."""
        return self in (MonitorType.HTTP, MonitorType.HTTPS)


@dataclass(frozen=True, slots=True)
class SessionPersistence:
    """``cookie_name`` is set for, and only for, APP_COOKIE."""

    type: Persistence
    cookie_name: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A server that a pool sends connections to. ``address``: IPv4 or IPv6."""

    id: str
    address: str
    protocol_port: int
    weight: int = 1
    """0..256; 0 = no new connections."""
    admin_state_up: bool = True


@dataclass(frozen=True, slots=True)
class HealthMonitor:
    """``delay`` and ``timeout`` in seconds, delay ≥ timeout.

    ``expected_codes`` as the tenant wrote it: "200", "200,202" or "200-204".
    """

    id: str
    type: MonitorType
    delay: int
    timeout: int
    max_retries: int
    http_method: str = "GET"
    url_path: str = "/"
    expected_codes: str = "200"
    admin_state_up: bool = True

    @property
    def codes(self) -> tuple[int, ...]:
        """The expected codes, expanded, ascending, each once."""
        codes: set[int] = set()
        for part in self.expected_codes.split(","):
            low, _, high = part.strip().partition("-")
            codes.update(range(int(low), int(high or low) + 1))
        return tuple(sorted(codes))


@dataclass(frozen=True, slots=True)
class Pool:
    """The members behind a VIP, and how they share its load. A member has to pass all ``health_monitors``."""

    id: str
    protocol: Protocol
    lb_method: Method
    admin_state_up: bool = True
    members: tuple[Member, ...] = ()
    health_monitors: tuple[HealthMonitor, ...] = ()


@dataclass(frozen=True, slots=True)
class Vip:
    """The whole desired state of one VIP: all that a driver needs, and no more.

    ``connection_limit`` −1 = none. Names and descriptions are left out on purpose: what a tenant writes freely has no
    business in a device's configuration. Members and monitors that wait for their deletion are left out as well.
    """

    id: str
    tenant_id: str
    address: str
    protocol_port: int
    protocol: Protocol
    pool: Pool
    subnet_cidr: str = ""
    network_id: str = ""
    connection_limit: int = -1
    session_persistence: SessionPersistence | None = None
    admin_state_up: bool = True
    forwarded_for: ForwardedFor = ForwardedFor.REPLACE
