"""``[agent]``: the process that applies desired state to devices."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "agent"

OPTS: tuple[cfg.Opt, ...] = (
    cfg.ListOpt(
        "drivers",
        default=["haproxy"],
        help="Device drivers that this agent loads: names of entry points in lbaas_scheduler.agent_drivers, or dotted class "
        "paths (module.Class or module:Class). Only devices of these types are assigned to this agent.",
    ),
    cfg.IntOpt(
        "report_interval_seconds",
        default=30,
        min=1,
        max=3600,
        mutable=True,
        help="Seconds between two reports of this agent's state to the server. Keep it below half of [scheduler] "
        "agent_down_seconds, or the server takes a healthy agent for dead.",
    ),
    cfg.IntOpt(
        "stats_interval_seconds",
        default=6,
        min=1,
        max=3600,
        mutable=True,
        help="Seconds between two readings of counters and member health, sent to the server. Raise it where many devices load "
        "the message bus; members then change their status later.",
    ),
    cfg.IntOpt(
        "resync_interval_seconds",
        default=300,
        min=0,
        max=86400,
        mutable=True,
        help="Seconds between two full comparisons of what the devices carry with what they should carry; 0 compares at start "
        "and on demand only. Lower it where devices lose their configuration behind the agent's back.",
    ),
    cfg.StrOpt(
        "state_path",
        default="/var/lib/lbaas-scheduler",
        help="Folder for what this agent and its local devices keep: configuration files, sockets, process ids. Must survive "
        "restarts, belong to the user that the agent runs as, and be on a local disk.",
    ),
    cfg.IntOpt(
        "result_batch_size",
        default=100,
        min=1,
        max=1000,
        mutable=True,
        help="How many results go into one report to the server. Lower it if messages grow beyond what the message bus takes.",
    ),
    cfg.IntOpt(
        "page_size",
        default=500,
        min=1,
        max=10000,
        mutable=True,
        help="How many desired resources are fetched at a time in a full comparison. Lower it if the replies are too large for "
        "the message bus.",
    ),
    cfg.IntOpt(
        "apply_timeout_seconds",
        default=60,
        min=1,
        max=3600,
        mutable=True,
        help="How long, in seconds, a driver may take for one change before it is reported as failed. Raise it for devices that "
        "commit slowly.",
    ),
    cfg.IntOpt(
        "fence_after_seconds",
        default=0,
        min=0,
        max=86400,
        mutable=True,
        help="After how many seconds without a sign of the message bus this agent takes its HAProxy and Envoy devices out of "
        "service, but for those that are pinned to its host: another agent may have taken them over, and both would answer "
        "at the same addresses. They come back when it hears of the bus again, as far as they are still its own. 0 never does "
        "it. A message bus that is away for longer then takes all such VIPs of all agents out of service: set it only where "
        "that is the lesser harm, above report_interval_seconds and near [scheduler] agent_down_seconds.",
    ),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(OPTS))]
