"""Makes the documents that the suite applies."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from lbaas_scheduler.domain import traits, words
from lbaas_scheduler.domain.deployments import Deployment, Version
from lbaas_scheduler.domain.loadbalancers import (
    HealthMonitor,
    Member,
    Method,
    MonitorType,
    Persistence,
    Pool,
    Protocol,
    SessionPersistence,
    Vip,
)
from lbaas_scheduler.sdk.conformance.ports import Ports

LOOPBACK = "127.0.0.1"

PORTS = Ports()


def new_id() -> str:
    return str(uuid.uuid4())


def free_port(address: str = LOOPBACK) -> int:
    """A port that can be bound on ``address`` now, and that no other process which runs this suite is handed."""
    return PORTS.free(address)


def member(address: str = LOOPBACK, port: int = 9, **changes: Any) -> Member:
    return replace(Member(new_id(), address, port), **changes)


def monitor(kind: MonitorType = MonitorType.TCP, **changes: Any) -> HealthMonitor:
    return replace(HealthMonitor(new_id(), kind, delay=1, timeout=1, max_retries=1), **changes)


def persistence(kind: Persistence | None) -> SessionPersistence | None:
    if kind is None:
        return None
    return SessionPersistence(kind, "JSESSIONID" if kind is Persistence.APP_COOKIE else None)


def vip(
    address: str = LOOPBACK,
    port: int = 0,
    protocol: Protocol = Protocol.TCP,
    method: Method = Method.ROUND_ROBIN,
    members: tuple[Member, ...] = (),
    monitors: tuple[HealthMonitor, ...] = (),
    **changes: Any,
) -> Vip:
    """A VIP with a pool of its own; port 0 = a free one. ``changes`` are attributes of the VIP."""
    pool = Pool(new_id(), protocol, method, members=members, health_monitors=monitors)
    return replace(Vip(new_id(), "a" * 32, address, port or free_port(address), protocol, pool), **changes)


def with_pool(document: Vip, **changes: Any) -> Vip:
    """The VIP with its pool changed."""
    return replace(document, pool=replace(document.pool, **changes))


def deployment(document: Vip, epoch: int = 1, revision: int = 1) -> Deployment:
    return Deployment(document, Version(epoch, revision))


def shapes(declared: frozenset[str]) -> Iterator[tuple[Protocol, Method, Persistence | None, MonitorType | None]]:
    """Every combination of protocol, method, persistence and monitor type that the traits allow.

    Cookies need HTTP: with another protocol the API accepts them, and drivers refuse them.
    """
    for protocol, method, sticky, kind in itertools.product(Protocol, Method, (None, *Persistence), (None, *MonitorType)):
        cookie = sticky in (Persistence.HTTP_COOKIE, Persistence.APP_COOKIE)
        if cookie and protocol is not Protocol.HTTP:
            continue
        if needed(protocol, method, sticky, kind) <= declared:
            yield protocol, method, sticky, kind


def needed(protocol: Protocol, method: Method, sticky: Persistence | None, kind: MonitorType | None) -> frozenset[str]:
    """The traits that a VIP of this shape needs."""
    names = {f"PROTOCOL_{protocol}", f"METHOD_{method}"}
    names |= {f"PERSISTENCE_{sticky}"} if sticky else set()
    names |= {f"MONITOR_{kind}"} if kind else set()
    return traits.STANDARD & names


HOSTILE = (
    '/"',
    "/'; quit; '",
    "/\n\tserver evil 192.0.2.66:80\n",
    "/\r\nX-Evil: 1\r\n\r\n",
    "/ # \\",
    "/${HOME} %[env(HOME)] %(x)s {{ 7 * 7 }} $(id) `id`",
    "/\x00\x07\x7f",
    "/€ 漢字 \U0001f4a9 \u2028",
    '/]}"}},\n- name: evil\n',
    "/" + "a" * 4000,
)
"""What a tenant may try to write into a configuration through a text. The API refuses most; a driver relies on nothing."""


def hostile_vips(address: str, declared: frozenset[str]) -> list[Vip]:
    """VIPs with a hostile text in each place where a tenant's text can reach a driver."""
    documents = [
        vip(address, protocol=Protocol.HTTP, members=(member(),), monitors=(monitor(MonitorType.HTTP, **{place: text}),))
        for text in HOSTILE
        for place in ("url_path", "http_method", "expected_codes")
    ]
    if traits.PERSISTENCE_APP_COOKIE in declared:
        documents += [
            vip(
                address,
                protocol=Protocol.HTTP,
                members=(member(),),
                session_persistence=SessionPersistence(Persistence.APP_COOKIE, text),
            )
            for text in HOSTILE
        ]
    return documents


_ODD_OF_COOKIES = "!%&*+.^_|~-"
_ODD_OF_PATHS = "._~!$&()*+,;=:@/?-"

LEGAL_COOKIES = (
    "a",
    _ODD_OF_COOKIES,
    *(sign * words.MAX_COOKIE_NAME for sign in _ODD_OF_COOKIES),
    "Z" * words.MAX_COOKIE_NAME,
)
LEGAL_MONITORS: tuple[dict[str, Any], ...] = (
    *({"url_path": ("/" + sign * words.MAX_URL_PATH)[: words.MAX_URL_PATH]} for sign in _ODD_OF_PATHS),
    {"url_path": "/" + _ODD_OF_PATHS + "%00%0A%22%27%5C%23"},
    {"url_path": "/" + "%20" * ((words.MAX_URL_PATH - 1) // 3)},
    *({"http_method": method} for method in words.HTTP_METHODS),
    {"expected_codes": "100-599"},
    {"expected_codes": "599"},
    {"expected_codes": ",".join(str(code) for code in range(200, 216))},
    {"expected_codes": "200   ,   404"},
    {"delay": words.MAX_SECONDS, "timeout": words.MAX_SECONDS, "max_retries": words.MAX_RETRIES},
    {"delay": words.MAX_SECONDS, "timeout": 1, "max_retries": 1},
)
LEGAL_MEMBERS = (
    member("192.0.2.1", 1, weight=0),
    member("192.0.2.1", 65535, weight=words.MAX_WEIGHT),
    member("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", 65535),
    member("2001:db8::", 1),
)
"""The longest and the oddest that the API lets tenants write."""


def legal_vips(address: str, declared: frozenset[str]) -> list[Vip]:
    """VIPs with one of the longest or oddest legal values each, as far as they are declared."""
    web = partial(vip, address, protocol=Protocol.HTTP)
    found = [web(members=(one,)) for one in LEGAL_MEMBERS]
    if traits.CONNECTION_LIMIT in declared:
        found += [web(members=(member(),), connection_limit=limit) for limit in (-1, 0, 1, words.MAX_CONNECTION_LIMIT)]
    for kind in (MonitorType.HTTP, MonitorType.HTTPS):
        if f"MONITOR_{kind}" in declared:
            found += [web(members=(member(),), monitors=(monitor(kind, **changes),)) for changes in LEGAL_MONITORS]
    if traits.PERSISTENCE_APP_COOKIE in declared:
        kept = [SessionPersistence(Persistence.APP_COOKIE, name) for name in LEGAL_COOKIES]
        found += [web(members=(member(),), session_persistence=one) for one in kept]
    return found
