"""Keeps clients on their members over a reload.

A new worker starts with empty stick tables. HAProxy's own means, its peers protocol, did not pass the tables on in HAProxy 2.6.12
(the old worker ends without having connected to the new one), so they are read from the old worker and written to the new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lbaas_scheduler.vendors.haproxy.runtime import Runtime, ServerState

MAX_CLIENTS = 10_000
"""Of one device; those seen last. More would make a reload take seconds."""

# A key may be a cookie's value, which a client chooses. Only what can do no harm as a word of a command is carried over.
_ENTRY = re.compile(r"0x[0-9a-f]+: key=([A-Za-z0-9._~=+/:-]{1,128}) use=\d+ exp=(\d+) server_id=(\d+)(?: server_key=\S*)?")


@dataclass(frozen=True, slots=True)
class Client:
    """``expires``: in milliseconds from when it was read."""

    backend: str
    key: str
    server: str
    expires: int


def read(runtime: Runtime, backends: Iterable[str], servers: Sequence[ServerState]) -> list[Client]:
    names = {(server.backend, server.row["srv_id"]): server.name for server in servers}
    known = {server.backend for server in servers}
    clients = [
        Client(backend, found[1], names[backend, found[3]], int(found[2]))
        for backend in sorted(known.intersection(backends))
        for line in runtime.ask(f"@1 show table {backend}").splitlines()
        if (found := _ENTRY.fullmatch(line.strip())) and (backend, found[3]) in names
    ]
    return sorted(clients, key=lambda client: client.expires, reverse=True)[:MAX_CLIENTS]


def write(runtime: Runtime, clients: Sequence[Client]) -> str:
    """Clients of members that are gone are left out: they get a new one. Returns what HAProxy had to say against it."""
    if not clients:
        return ""
    ids = {(server.backend, server.name): server.row["srv_id"] for server in runtime.servers()}
    return runtime.change(
        [
            f"set table {client.backend} key {client.key} data.server_id {ids[client.backend, client.server]}"
            for client in clients
            if (client.backend, client.server) in ids
        ]
    )
