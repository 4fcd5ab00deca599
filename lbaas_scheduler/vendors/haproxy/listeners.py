"""Whether an address and port can be listened on, found out without HAProxy.

HAProxy itself must not be the one to find out: when a bind fails during a reload it makes the old worker stop listening for up to
a second, on all VIPs, in the hope that this frees the address.
"""

from __future__ import annotations

import errno
import socket

from lbaas_scheduler.vendors.haproxy.namespace import Namespace

_REASONS = {
    errno.EADDRINUSE: "is already in use on the device.",
    errno.EADDRNOTAVAIL: "is not an address of the device.",
    errno.EACCES: "may not be listened on: the device's process is not privileged to use this port.",
}


def why_not(bind: str, namespace: Namespace | None = None) -> str | None:
    """None when ``bind`` ("10.0.0.1:80", "[::1]:80") is free, else a sentence for the tenant.

    :param namespace: where to listen; None = where we are.
    """
    if namespace is None:
        return _why_not(bind)
    if not namespace.exists:
        return f"{bind} {_REASONS[errno.EADDRNOTAVAIL]}"
    return namespace.run(lambda: _why_not(bind))


def _why_not(bind: str) -> str | None:
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As HAProxy does: connections in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((host, int(port)))
        except OSError as error:
            return f"{host} port {port} " + _REASONS.get(error.errno or 0, f"cannot be listened on: {error.strerror}.")
    return None


def free(bind: str, namespace: Namespace | None = None) -> bool:
    """Whether nobody listens on ``bind``."""
    return "in use" not in (why_not(bind, namespace) or "")
