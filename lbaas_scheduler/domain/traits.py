"""What a device can do, in the vocabulary that a VIP's needs are expressed in.

A trait is an upper-case name. A device declares the traits it has; a request lists those that it requires, forbids or prefers.
Vendors' own traits start with ``CUSTOM_``.
"""

from __future__ import annotations

import re

PROTOCOL_TCP = "PROTOCOL_TCP"
PROTOCOL_HTTP = "PROTOCOL_HTTP"
PROTOCOL_HTTPS = "PROTOCOL_HTTPS"
METHOD_ROUND_ROBIN = "METHOD_ROUND_ROBIN"
METHOD_LEAST_CONNECTIONS = "METHOD_LEAST_CONNECTIONS"
METHOD_SOURCE_IP = "METHOD_SOURCE_IP"
PERSISTENCE_SOURCE_IP = "PERSISTENCE_SOURCE_IP"
PERSISTENCE_HTTP_COOKIE = "PERSISTENCE_HTTP_COOKIE"
PERSISTENCE_APP_COOKIE = "PERSISTENCE_APP_COOKIE"
MONITOR_PING = "MONITOR_PING"
MONITOR_TCP = "MONITOR_TCP"
MONITOR_HTTP = "MONITOR_HTTP"
MONITOR_HTTPS = "MONITOR_HTTPS"
MONITOR_SEVERAL = "MONITOR_SEVERAL"
"""More than one health monitor on a pool, all of them applied."""
CONNECTION_LIMIT = "CONNECTION_LIMIT"
ADDRESS_IPV4 = "ADDRESS_IPV4"
ADDRESS_IPV6 = "ADDRESS_IPV6"
OVERLAPPING_IPS = "OVERLAPPING_IPS"

STANDARD = frozenset(
    value for name, value in list(globals().items()) if name.isupper() and isinstance(value, str) and name == value
)

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,254}")


def is_trait(name: str) -> bool:
    """Whether ``name`` may be used as a trait: a standard one, or a vendor's own ``CUSTOM_*``."""
    return name in STANDARD or (name.startswith("CUSTOM_") and _NAME.fullmatch(name) is not None)
