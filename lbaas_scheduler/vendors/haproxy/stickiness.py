"""Keeps clients on their members over a reload.

A new worker starts with empty stick tables, and the old one empties its own when it stops. HAProxy's own means, its peers
protocol, did not pass the tables on in HAProxy 2.6.12 (the old worker ends without having connected to the new one, over TCP and
over a UNIX socket), so they are read from the old worker and written to the new one. What the old one learns while the new one
starts, a fraction of a second, stays behind.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lbaas_scheduler.vendors.haproxy.runtime import Runtime, ServerState

MAX_CLIENTS = 500_000
"""Of one device; those seen last. A hundred thousand take some seconds of a reload."""

# A key is an address or the hash of a cookie's value.
_ENTRY = re.compile(r"0x[0-9a-f]+: key=(\S+) use=\d+ exp=(\d+) server_id=(\d+)(?: server_key=\S*)?")
_HASH = re.compile(r"[0-9A-F]{64}")
_OF_COOKIES = "type: string,"
_MAX_WHOLE_VALUE = 126
"""Of versions before this one, which kept the values themselves and cut longer ones."""


@dataclass(frozen=True, slots=True)
class Client:
    """``expires``: in milliseconds from when it was read."""

    backend: str
    key: str
    server: str
    expires: int


@dataclass(frozen=True, slots=True)
class Tables:
    """What a worker knows of its clients. ``lost``: how many it knows that cannot be taken over."""

    clients: Sequence[Client] = ()
    lost: int = 0


def read(runtime: Runtime, backends: Iterable[str], servers: Sequence[ServerState]) -> Tables:
    """:param servers: as the worker has them. Who has a member that is not there any more needs another one anyway."""
    names = {(server.backend, server.row["srv_id"]): server.name for server in servers}
    known = {server.backend for server in servers}
    clients: list[Client] = []
    lost = 0
    for backend in sorted(known.intersection(backends)):
        lines = runtime.ask(f"@1 show table {backend}").splitlines()
        cookies = any(_OF_COOKIES in line for line in lines[:1])
        for line in lines:
            found = _ENTRY.fullmatch(line.strip())
            key = found[1] if found else None
            if key is not None and cookies:
                key = _hashed(key)
            if found and key is not None and (backend, found[3]) in names:
                clients.append(Client(backend, key, names[backend, found[3]], int(found[2])))
            lost += bool(found) and key is None
    clients.sort(key=lambda client: client.expires, reverse=True)
    return Tables(clients[:MAX_CLIENTS], lost + max(len(clients) - MAX_CLIENTS, 0))


def _hashed(text: str) -> str | None:
    """A cookie's key in a new worker's table; None = it cannot be known."""
    if _HASH.fullmatch(text):
        return text
    if len(text) > _MAX_WHOLE_VALUE:
        return None
    return hashlib.sha256(text.encode()).hexdigest().upper()


def write(runtime: Runtime, tables: Tables) -> int:
    """Clients of members that are gone are left out: they get a new one. Returns how many others are lost.

    :raises RuntimeUnavailable: the new worker does not answer.
    """
    if not tables.clients:
        return tables.lost
    ids = {(server.backend, server.name): server.row["srv_id"] for server in runtime.servers()}
    commands = [
        f"set table {client.backend} key {client.key} data.server_id {ids[client.backend, client.server]}"
        for client in tables.clients
        if (client.backend, client.server) in ids
    ]
    return tables.lost + runtime.fill(commands)
