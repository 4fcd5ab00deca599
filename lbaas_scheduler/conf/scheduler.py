"""``[scheduler]``: choosing devices, and repairing what did not arrive on them."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "scheduler"

OPTS: tuple[cfg.Opt, ...] = (
    cfg.FloatOpt(
        "handler_timeout_seconds",
        default=1.0,
        min=0.01,
        max=60,
        mutable=True,
        help="How long, in seconds, one call of a vendor's device handler may take while a device is being chosen. A handler "
        "that takes longer loses its devices for this placement, and nothing else. Raise it only for a handler that must ask "
        "its devices over the network.",
    ),
    cfg.IntOpt(
        "page_size",
        default=32,
        min=1,
        max=1000,
        mutable=True,
        help="How many candidates are read, judged and ranked at a time. Smaller is faster and makes servers that choose at the "
        "same moment collide more often; larger gives weighers more to compare.",
    ),
    cfg.IntOpt(
        "max_rounds",
        default=4,
        min=1,
        max=1000,
        mutable=True,
        help="How many pages of candidates are tried before a resource is refused with NoValidDevice. Raise it where handlers "
        "refuse most devices that the database offers them.",
    ),
    cfg.IntOpt(
        "pending_timeout_seconds",
        default=300,
        min=1,
        mutable=True,
        help="After how many seconds without success a pending resource turns ERROR, with the cause. It is still repaired in the "
        "background and turns ACTIVE when that succeeds. Raise it for devices that take minutes to apply a change.",
    ),
    cfg.IntOpt(
        "cast_deadline_seconds",
        default=10,
        min=1,
        mutable=True,
        help="After how many seconds without a result a change is sent to the agent again. Should exceed the time that a healthy "
        "device takes for one change.",
    ),
    cfg.IntOpt(
        "reconcile_interval_seconds",
        default=5,
        min=1,
        max=3600,
        mutable=True,
        help="Pause, in seconds, between two looks for changes that are overdue. Raise it to relieve the database of a large "
        "fleet; a lost message is then repaired later.",
    ),
    cfg.IntOpt(
        "reconcile_batch_size",
        default=100,
        min=1,
        max=10000,
        mutable=True,
        help="How many overdue changes one server takes up per look. Raise it where a returning agent leaves a long queue.",
    ),
    cfg.IntOpt(
        "max_backoff_seconds",
        default=120,
        min=1,
        mutable=True,
        help="Longest pause, in seconds, between two tries of a change that fails again and again; the pause doubles up to this. "
        "Lower it to notice a repaired device sooner.",
    ),
    cfg.IntOpt(
        "agent_down_seconds",
        default=75,
        min=1,
        mutable=True,
        help="After how many seconds without a report an agent counts as dead: its devices take no new resources and go to "
        "another agent that can drive them. Should be at least twice [agent] report_interval_seconds, or devices move at every "
        "lost message.",
    ),
    cfg.IntOpt(
        "random_seed",
        help="Seed of the random choice between equally good devices. Leave it unset in production; set it to repeat a decision "
        "in a test.",
    ),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(OPTS))]
