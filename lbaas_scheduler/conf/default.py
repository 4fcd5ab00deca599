"""``[DEFAULT]``: who this process is and which service plugins it runs."""

from __future__ import annotations

import socket

from oslo_config import cfg, types

GROUP = "DEFAULT"

MAX_HOST_BYTES = 232
"""AMQP's names have at most 255 bytes, and a queue's is the host's after a topic and a dot."""


class HostName(types.String):
    """A name that is part of a queue's."""

    def __init__(self) -> None:
        super().__init__(type_name="name of at most 232 bytes")

    def __call__(self, value: object) -> str:
        name = str(super().__call__(value))
        size = len(name.encode())
        if not 0 < size <= MAX_HOST_BYTES:
            raise ValueError(f"it has {size} bytes; names of queues, which it is a part of, leave 1 to {MAX_HOST_BYTES}")
        return name


OPTS: tuple[cfg.Opt, ...] = (
    cfg.ListOpt(
        "service_plugins",
        default=["LoadBalancer"],
        help="Service plugins that the server loads: names of entry points in lbaas_scheduler.service_plugins, or dotted class "
        "paths (module.Class or module:Class). Add the name of another service's plugin here after installing its package.",
    ),
    cfg.StrOpt(
        "default_service_type",
        default="default",
        max_length=255,
        help="Name of the service type that resources get which name none. The server creates it, enabled and without "
        "definitions (every loaded device type may serve), when it is absent at start. Change it before the first start; later, "
        "mark another service type as the default through the API instead.",
    ),
    cfg.StrOpt(
        "network_connector",
        default="local",
        help="Where addresses of VIPs come from: the name of an entry point in lbaas_scheduler.network_connectors, or a dotted "
        "class path. 'local' keeps networks and subnets in this database; change it where another system owns the addresses.",
    ),
    cfg.Opt(
        "host",
        type=HostName(),
        default=socket.gethostname(),
        sample_default="<hostname>",
        help="Name under which this process is known on the message bus. Must differ between all agents, and must stay the same "
        "over restarts: devices are assigned to an agent by it. Change it to run two agents on one machine, or where the "
        "machine's own name is not stable. At most 232 bytes.",
    ),
    cfg.IntOpt(
        "graceful_shutdown_seconds",
        default=30,
        min=1,
        max=3600,
        help="How long, in seconds, a process that was told to stop (SIGTERM) may take to finish what it has begun before it is "
        "ended. Raise it above the time that the slowest device needs for one change; keep it below the time-out of whatever "
        "stops the process (systemd: TimeoutStopSec).",
    ),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(OPTS))]
