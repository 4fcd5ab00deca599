"""Which addresses of this host accept TCP connections, and whether one can be listened on; from the kernel itself."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

Endpoint = tuple[str, int]
"""Address and port."""

PROC = Path("/proc")
_LISTEN = "0A"
_SOCKET = "socket:["
_REASONS = {
    errno.EADDRINUSE: "is already in use on the device.",
    errno.EADDRNOTAVAIL: "is not an address of the device.",
    errno.EACCES: "may not be listened on: the device's process is not privileged to use this port.",
}


def why_not(endpoint: Endpoint, shared: bool = False) -> str | None:
    """None when an address and port can be listened on in our network namespace, else a sentence for the tenant.

    :param shared: with everybody of our own user who shares it (``SO_REUSEPORT``), and nobody else.
    """
    host, port = endpoint
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As data planes do: connections in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind(endpoint)
        except OSError as error:
            return f"{host} port {port} " + _REASONS.get(error.errno or 0, f"cannot be listened on: {error.strerror}.")
    return None


def in_use(reason: str | None) -> bool:
    """Whether this is what :func:`why_not` says where somebody listens already."""
    return reason is not None and reason.endswith(_REASONS[errno.EADDRINUSE])


def listening(pids: Collection[int] | None = None, proc: Path = PROC) -> set[Endpoint]:
    """Every address and port with a listening socket.

    :param pids: those of these processes only, each in its own network namespace. None = of everybody in ours. For a process that
        we may not look into (its program has capabilities of its own, say), those of everybody in its namespace.
    """
    if pids is None:
        return {endpoint for endpoint, _ in _listed(proc / "net")}
    found: set[Endpoint] = set()
    for pid in pids:
        try:
            found |= _of(proc / str(pid))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended, and what it listened on is closed
    return found


def _of(process: Path) -> set[Endpoint]:
    listed = list(_listed(process / "net"))
    try:
        own = set(_sockets(process / "fd"))
    except PermissionError:
        return {endpoint for endpoint, _ in listed}
    return {endpoint for endpoint, inode in listed if inode in own}


def _sockets(folder: Path) -> Iterator[str]:
    """Inodes of the sockets among a process's open files."""
    for name in os.listdir(folder):
        try:
            target = os.readlink(folder / name)
        except FileNotFoundError:
            continue  # closed meanwhile
        if target.startswith(_SOCKET):
            yield target[len(_SOCKET) : -1]


def _listed(folder: Path) -> Iterator[tuple[Endpoint, str]]:
    """Listening sockets of a network namespace, each with its inode."""
    for name in ("tcp", "tcp6"):
        path = folder / name
        # Without IPv6 in the kernel there is no tcp6.
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            columns = line.split()
            if columns[3] == _LISTEN:
                yield _endpoint(columns[1]), columns[9]


def _endpoint(text: str) -> Endpoint:
    """``0100007F:1F90`` → 127.0.0.1, 8080: each group of four bytes is in the order of this machine."""
    address, port = text.split(":")
    raw = bytes.fromhex(address)
    if sys.byteorder == "little":
        raw = b"".join(raw[start : start + 4][::-1] for start in range(0, len(raw), 4))
    return str(ipaddress.ip_address(raw)), int(port, 16)
