"""Which addresses of this host accept TCP connections, from the kernel itself."""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path

Endpoint = tuple[str, int]
"""Address and port."""

_LISTEN = "0A"


def listening(proc: Path = Path("/proc/net")) -> set[Endpoint]:
    """Every address and port with a listening socket in this network namespace."""
    found = set()
    for name in ("tcp", "tcp6"):
        path = proc / name
        # Without IPv6 in the kernel there is no tcp6.
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            columns = line.split()
            if columns[3] == _LISTEN:
                found.add(_endpoint(columns[1]))
    return found


def _endpoint(text: str) -> Endpoint:
    """``0100007F:1F90`` → 127.0.0.1, 8080: each group of four bytes is in the order of this machine."""
    address, port = text.split(":")
    raw = bytes.fromhex(address)
    if sys.byteorder == "little":
        raw = b"".join(raw[start : start + 4][::-1] for start in range(0, len(raw), 4))
    return str(ipaddress.ip_address(raw)), int(port, 16)
