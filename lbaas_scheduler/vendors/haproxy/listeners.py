"""Whether an address and port can be listened on, found out without HAProxy.

HAProxy itself must not be the one to find out: when a bind fails during a reload it makes the old worker stop listening for up to
a second, on all VIPs, in the hope that this frees the address. And it shares an address with whoever of its user lets it.
"""

from __future__ import annotations

from functools import partial

from lbaas_scheduler.sdk import listening
from lbaas_scheduler.vendors.haproxy.namespace import Namespace


def why_not(bind: str, namespace: Namespace | None = None, shared: bool = False) -> str | None:
    """None when ``bind`` ("10.0.0.1:80", "[::1]:80") is free, else a sentence for the tenant.

    :param namespace: where to listen; None = where we are.
    :param shared: whether others of our user who share the address may listen already.
    """
    host, _, port = bind.rpartition(":")
    ask = partial(listening.why_not, (host.strip("[]"), int(port)), shared)
    if namespace is None:
        return ask()
    if not namespace.exists:
        return f"{bind} is not an address of the device."
    return namespace.run(ask)


def free(bind: str, namespace: Namespace | None = None) -> bool:
    """Whether nobody listens on ``bind``."""
    return not listening.in_use(why_not(bind, namespace))
