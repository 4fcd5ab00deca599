"""Topics, namespaces and versions of everything that is said on the bus."""

from __future__ import annotations

EXCHANGE = "lbaas_scheduler"
"""Default control exchange, so that a broker may be shared with other services."""

PLUGINS = "lbaas_scheduler"
"""Clients → service plugins. Any server answers; each plugin has its own namespace."""

SERVERS = "lbaas_scheduler_server"
"""Agents → servers. Any server answers."""

AGENTS = "lbaas_scheduler_agent"
"""Servers → one agent, addressed by its host."""

LOADBALANCER_NAMESPACE = "loadbalancer"
DEVICES_NAMESPACE = "devices"
ALLOCATOR_NAMESPACE = "allocator"

VERSION = "1.0"
"""Of this release's messages. A minor version adds what older readers may leave out: :mod:`lbaas_scheduler.rpc.dispatching`."""

ON_THE_WIRE = f"{VERSION.partition('.')[0]}.0"
"""What messages call themselves: releases that check the minor version take no higher one than their own."""
