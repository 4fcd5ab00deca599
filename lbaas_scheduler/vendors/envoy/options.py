"""Group ``[envoy]``: what an operator decides for all Envoy devices of one agent."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from lbaas_scheduler.vendors.envoy.binary import find_binary, require_version
from lbaas_scheduler.vendors.envoy.resources import Terms

GROUP = "envoy"
MANY_FILES = 1_000_000
"""Where the host has no limit."""

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "binary",
        default="",
        help="Path of Envoy 1.40 or newer. Empty: the one of the package lbaas-scheduler[envoy], else 'envoy' in PATH. Set it to "
        "run an Envoy of your own.",
    ),
    cfg.StrOpt(
        "state_path",
        default="/var/lib/lbaas-scheduler/envoy",
        help="Folder with one folder per device: configuration, log and the socket of the administration interface. The agent's "
        "user must be able to write there. It must survive a restart of the agent, or running Envoys are lost sight of.",
    ),
    cfg.IntOpt(
        "concurrency",
        default=1,
        min=1,
        max=128,
        help="Worker threads of each device's process. Raise it when one processor core does not carry a device's traffic. A "
        "device's own extra.concurrency comes first. Takes effect when the process is next started.",
    ),
    cfg.IntOpt(
        "max_connections",
        default=0,
        min=0,
        help="How many connections the VIPs of one device are expected to have at once; 0 = half as many as the host allows a "
        "process files (ulimit -Hn), for a connection takes two. Lower it where a device must not take all memory of its host.",
    ),
    cfg.IntOpt(
        "vip_share_percent",
        default=50,
        min=1,
        max=100,
        help="How many of a device's connections one VIP may have at once, in percent. New connections beyond it are closed, so "
        "that a flood, or members that lead back to the VIP by ways that nobody knows of, leave its neighbours theirs. A VIP's "
        "own connection limit counts where it is lower. Raise it where a device has one busy VIP; 100 is no limit.",
    ),
    cfg.IntOpt(
        "connect_timeout_seconds",
        default=5,
        min=1,
        max=300,
        help="How long, in seconds, a connection to a member may take to open before another member is tried. Raise it for "
        "members that are far away.",
    ),
    cfg.IntOpt(
        "idle_timeout_seconds",
        default=50,
        min=0,
        max=604800,
        help="After how many seconds without a byte in either direction a connection, or an HTTP request, is given up; 0 never "
        "does. As long as HAProxy's by default. Raise it for protocols that keep idle connections open, or for members that "
        "think for long before they answer.",
    ),
    cfg.IntOpt(
        "drain_seconds",
        default=60,
        min=1,
        max=3600,
        help="How long, in seconds, open connections may go on after their VIP was removed or switched off, or after its "
        "persistence or connection limit changed. Raise it where connections live long. Changes of members and weights cut "
        "nothing, however low this is.",
    ),
    cfg.IntOpt(
        "start_timeout_seconds",
        default=20,
        min=1,
        max=300,
        help="How long, in seconds, a process may take to start before the device is reported as failed. Raise it on slow hosts.",
    ),
    cfg.IntOpt(
        "change_timeout_seconds",
        default=20,
        min=1,
        max=300,
        help="How long, in seconds, Envoy may take to take a change over before the change is reported as failed. Keep it below "
        "half of [agent] apply_timeout_seconds.",
    ),
    cfg.IntOpt(
        "hang_timeout_seconds",
        default=60,
        min=0,
        help="How long an Envoy that runs may answer nothing on its administration interface, in seconds, before it is killed "
        "and started again with all its VIPs; to notice it takes some 20 seconds more. 0 never does it. Raise it on hosts that "
        "stand still for long.",
    ),
]


@dataclass(frozen=True, slots=True)
class Settings:
    """The options as values; times in seconds."""

    binary: Path
    state_path: Path
    concurrency: int
    max_connections: int
    vip_share_percent: int
    connect_timeout: int
    idle_timeout: int
    drain: int
    start_timeout: int
    change_timeout: int
    hang_timeout: int

    def terms(self) -> Terms:
        """What a VIP is granted."""
        return Terms(self.connect_timeout, self.idle_timeout, max(self.max_connections * self.vip_share_percent // 100, 1))


def _connections() -> int:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return (MANY_FILES if most == resource.RLIM_INFINITY else most) // 2


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options. May be called twice."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """For the generator of the sample configuration."""
    return [(GROUP, OPTIONS)]


def read(conf: cfg.ConfigOpts) -> Settings:
    """:raises ConfigurationError: there is no Envoy, or it is too old."""
    group = conf[GROUP]
    binary = find_binary(group.binary)
    require_version(binary)
    return Settings(
        binary=binary,
        # Absolute: it is found in the command lines of processes whose working folder is another one.
        state_path=Path(group.state_path).absolute(),
        concurrency=group.concurrency,
        max_connections=group.max_connections or _connections(),
        vip_share_percent=group.vip_share_percent,
        connect_timeout=group.connect_timeout_seconds,
        idle_timeout=group.idle_timeout_seconds,
        drain=group.drain_seconds,
        start_timeout=group.start_timeout_seconds,
        change_timeout=group.change_timeout_seconds,
        hang_timeout=group.hang_timeout_seconds,
    )
