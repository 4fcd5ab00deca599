"""Group ``[haproxy]``: what an operator decides for all HAProxy devices of one agent."""

from __future__ import annotations

import grp
import os
import pwd
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oslo_config import cfg

from lbaas_scheduler.errors import ConfigurationError

GROUP = "haproxy"

OPTS = [
    cfg.StrOpt(
        "binary",
        default="haproxy",
        help="HAProxy 2.6 or newer: a path, or a name to look up in PATH. Change it when HAProxy was installed elsewhere.",
    ),
    cfg.StrOpt(
        "state_path",
        default="/var/lib/lbaas-scheduler/haproxy",
        help="Folder with one folder per device: configuration, sockets and process id. The agent's user must be able to "
        "write there. It must survive a restart of the agent, or running HAProxy processes are lost sight of.",
    ),
    cfg.StrOpt(
        "user",
        default="nobody",
        help="The user that HAProxy's workers run as. Applies only when the agent runs as root; otherwise HAProxy runs as "
        "the agent's own user.",
    ),
    cfg.StrOpt(
        "group",
        default="",
        help="The group that HAProxy's workers run as, when the agent runs as root. Empty: the user's own group.",
    ),
    cfg.IntOpt(
        "threads",
        default=1,
        min=1,
        max=64,
        help="Threads of each device's worker. Raise it when one processor core does not carry a device's traffic. A "
        "device's own extra.nbthread comes first.",
    ),
    cfg.IntOpt(
        "max_open_files",
        default=500_000,
        min=1_000,
        help="Upper bound of the files that one HAProxy process may hold open; a connection takes two. The system's own "
        "limit (ulimit -n) comes first. Raise it, and the system's, when a VIP's connection limit is above half of it.",
    ),
    cfg.IntOpt(
        "vip_share_percent",
        default=50,
        min=1,
        max=100,
        help="How many of a device's connections one VIP may have at once, in percent. A VIP beyond it lets new clients wait, so "
        "that a flood, or members that lead back to the VIP by ways that nobody knows of, leave its neighbours theirs. A VIP's "
        "own connection limit counts where it is lower. Raise it where a device has one busy VIP; 100 is no limit.",
    ),
    cfg.IntOpt(
        "connect_timeout_ms",
        default=5_000,
        min=1,
        help="How long to wait for a connection to a member, in milliseconds. Raise it for members far away.",
    ),
    cfg.IntOpt(
        "client_timeout_ms",
        default=50_000,
        min=1,
        help="Longest silence of a client, in milliseconds. Raise it for protocols that keep idle connections open.",
    ),
    cfg.IntOpt(
        "server_timeout_ms",
        default=50_000,
        min=1,
        help="Longest silence of a member, in milliseconds. Raise it when members think for long before they answer.",
    ),
    cfg.IntOpt(
        "drain_timeout_seconds",
        default=600,
        min=1,
        help="After a reload, the old worker keeps its open connections for at most this long, in seconds. Raise it for "
        "long-lived connections; each reload in that time leaves one more worker in memory.",
    ),
    cfg.IntOpt(
        "max_old_workers",
        default=50,
        min=1,
        help="How many old workers may stay for the connections they still have. One more, and the oldest ends with its "
        "connections, however long drain_timeout_seconds is. Each takes memory (some 10 MB, more with many VIPs). Raise it on "
        "hosts with memory to spare, where VIPs change often and connections live long.",
    ),
    cfg.IntOpt(
        "reload_timeout_seconds",
        default=30,
        min=1,
        help="How long a start, a reload or a stop of HAProxy may take before it counts as failed, in seconds. Raise it "
        "for devices with thousands of VIPs.",
    ),
    cfg.IntOpt(
        "hang_timeout_seconds",
        default=60,
        min=0,
        help="How long a HAProxy that runs may answer nothing on its socket, in seconds, before it is killed and started again "
        "with all its VIPs; to notice it takes up to reload_timeout_seconds more. 0 never does it. Raise it on hosts that "
        "stand still for long.",
    ),
    cfg.BoolOpt(
        "network_namespaces",
        default=False,
        help="Put each device into a network namespace of its own, attached to the networks of its VIPs by the interfaces it "
        "is registered with: flat ones name bridges of this host, others links to build VLANs or VXLANs on. Needs root and "
        "iproute2. Leave it off where the VIPs' addresses are this host's own. A device's own extra.netns comes first.",
    ),
    cfg.StrOpt(
        "log_target",
        default="",
        help="Where HAProxy sends its traffic log: /dev/log, or host:port of a syslog server. Empty: no log.",
    ),
    cfg.StrOpt(
        "log_facility",
        default="local0",
        choices=[f"local{number}" for number in range(8)],
        help="Syslog facility of HAProxy's traffic log. Change it to keep it apart from other services' messages.",
    ),
]


def register_opts(conf: Any) -> None:
    conf.register_group(_group())
    conf.register_opts(OPTS, group=GROUP)


def _group() -> cfg.OptGroup:
    """A new one each time: a group object holds the values that were set, and two configurations must not share them."""
    return cfg.OptGroup(GROUP, title="HAProxy devices of this agent")


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """For the sample configuration (entry point ``oslo.config.opts``)."""
    return [(_group(), OPTS)]


@dataclass(frozen=True, slots=True)
class Settings:
    """The group's values, checked. ``user`` and ``group`` are empty when HAProxy cannot change its user."""

    binary: str
    state_path: Path
    user: str
    group: str
    threads: int
    max_open_files: int
    vip_share_percent: int
    connect_timeout_ms: int
    client_timeout_ms: int
    server_timeout_ms: int
    drain_timeout_seconds: int
    max_old_workers: int
    reload_timeout_seconds: int
    hang_timeout_seconds: int
    network_namespaces: bool
    log_target: str
    log_facility: str

    @classmethod
    def from_conf(cls, conf: Any) -> Settings:
        """:raises ConfigurationError: names the option and says what would be right."""
        group = conf.haproxy
        user, user_group = _identity(group.user, group.group) if os.geteuid() == 0 else ("", "")
        if any(character.isspace() or character in "\"'\\#" for character in group.log_target):
            raise ConfigurationError("[haproxy] log_target: expected a path or host:port, without spaces or quotes.")
        return cls(
            binary=_find(group.binary),
            state_path=Path(os.path.realpath(group.state_path)),
            user=user,
            group=user_group,
            **{
                name: getattr(group, name)
                for name in cls.__dataclass_fields__
                if name not in ("binary", "state_path", "user", "group")
            },
        )

    def connections(self, maxconn: int | None) -> int:
        """How many connections one VIP of a device may have at once.

        :param maxconn: how many the device may; None = as many as HAProxy finds files for, of which a connection takes two.
        """
        if maxconn is None:
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            files = self.max_open_files if most == resource.RLIM_INFINITY else min(self.max_open_files, most)
            maxconn = files // 2
        return max(maxconn * self.vip_share_percent // 100, 1)


def _find(binary: str) -> str:
    found = shutil.which(binary)
    if found is None:
        raise ConfigurationError(
            f"[haproxy] binary: no executable '{binary}' was found. Install HAProxy 2.6 or newer, or set the option to the "
            "path of its executable."
        )
    return os.path.abspath(found)


def _identity(user: str, group: str) -> tuple[str, str]:
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise ConfigurationError(f"[haproxy] user: there is no user '{user}' on this host.") from None
    try:
        return user, (group and grp.getgrnam(group).gr_name) or grp.getgrgid(entry.pw_gid).gr_name
    except KeyError:
        raise ConfigurationError(f"[haproxy] group: there is no group '{group or entry.pw_gid}' on this host.") from None
