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
        help="How long, in seconds, one call of a vendor's device handler may take while a device is being chosen. A handler "
        "that takes longer loses its devices for this placement, and nothing else. Raise it only for a handler that must ask "
        "its devices over the network.",
    ),
    cfg.IntOpt(
        "page_size",
        default=32,
        min=1,
        max=1000,
        help="How many candidates are read, judged and ranked at a time. Smaller is faster and makes servers that choose at the "
        "same moment collide more often; larger gives weighers more to compare.",
    ),
    cfg.IntOpt(
        "max_rounds",
        default=4,
        min=1,
        max=1000,
        help="How many pages of candidates are tried before a resource is refused with NoValidDevice. Raise it where handlers "
        "refuse most devices that the database offers them, or where many devices have no VLAN left: the database does not count "
        "those, the claim does.",
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
        help="After how many seconds without a report an agent counts as dead: its devices take no new resources and go to "
        "another agent that can drive them. Should be at least twice [agent] report_interval_seconds, or devices move at every "
        "lost message.",
    ),
    cfg.IntOpt(
        "max_clock_difference_seconds",
        default=5,
        min=1,
        max=3600,
        mutable=True,
        help="By how many seconds this server's clock may differ from the database's. Beyond, the server says so in its log, its "
        "health check fails, and it judges nobody: it declares no agent dead, no change overdue and no device lost, and leaves "
        "that to servers whose clocks are right. What it writes has the database's time all the same. Raise it only where clocks "
        "cannot be synchronised; where all servers complain, it is the database's clock that is wrong.",
    ),
    cfg.IntOpt(
        "max_moves",
        default=10,
        min=1,
        max=10000,
        mutable=True,
        help="How many resources may be on their way from one device to another at once, where nobody waits for a single one: in "
        "evacuations and rebalancing. Counted are those between devices that work. Raise it where agents and devices take many "
        "changes at once.",
    ),
    cfg.IntOpt(
        "max_moves_per_device",
        default=4,
        min=1,
        max=10000,
        mutable=True,
        help="As max_moves, counted for each device, as the source or the target. Raise it for devices that apply changes fast; "
        "lower it where a change disturbs what the device serves.",
    ),
    cfg.IntOpt(
        "max_rescues_per_device",
        default=100,
        min=1,
        max=10000,
        mutable=True,
        help="How many resources may be on their way to one device at once off lost devices: those that are OFFLINE, or that no "
        "living agent drives. They are sent together and applied together. Lower it for devices that would need longer than "
        "[agent] apply_timeout_seconds for so many.",
    ),
    cfg.IntOpt(
        "move_timeout_seconds",
        default=180,
        min=1,
        mutable=True,
        help="After how many seconds without success on its target a move is undone; the resource stays on its source. Raise it "
        "for devices that take minutes to apply a change.",
    ),
    cfg.IntOpt(
        "check_interval_seconds",
        default=10,
        min=1,
        max=3600,
        mutable=True,
        help="How often, in seconds, each device is asked how it is, if its handler can ask. Servers share the work. Lower it "
        "to notice a lost device sooner, raise it to relieve large fleets.",
    ),
    cfg.FloatOpt(
        "check_timeout_seconds",
        default=5.0,
        min=0.1,
        max=300,
        mutable=True,
        help="How long, in seconds, a device may take to say how it is. Raise it for devices whose management is slow.",
    ),
    cfg.IntOpt(
        "load_max_age_seconds",
        default=60,
        min=1,
        max=86400,
        help="How old, in seconds, what a device reported of its load may be where least_loaded_by counts it; older reports "
        "count as none. Should exceed check_interval_seconds and the agents' stats_interval_seconds by far: raise it along with "
        "them.",
    ),
    cfg.IntOpt(
        "check_failures",
        default=3,
        min=1,
        max=100,
        mutable=True,
        help="After how many failed checks in a row a device counts as lost: it turns OFFLINE and takes nothing new. Raise it "
        "where the way to the devices is shaky.",
    ),
    cfg.IntOpt(
        "check_workers",
        default=16,
        min=1,
        max=1000,
        help="How many devices one server asks at the same time. Raise it for fleets of thousands, or where many devices are so "
        "slow that checks fall behind.",
    ),
    cfg.IntOpt(
        "breaker_lost_percent",
        default=40,
        min=1,
        max=100,
        mutable=True,
        help="When more than this share of the checked devices, or of the agents, vanishes within breaker_window_seconds, it is "
        "rather the way to them that is lost: moves that nobody has asked for freeze, until they are back or an administrator "
        "says so. 100 disables it. Raise it for small fleets where single losses are a large share.",
    ),
    cfg.IntOpt(
        "breaker_min_losses",
        default=3,
        min=1,
        mutable=True,
        help="Fewer losses than this never freeze anything, however small the fleet. Lower it to 2 where two losses at once are "
        "suspicious already.",
    ),
    cfg.IntOpt(
        "breaker_window_seconds",
        default=300,
        min=1,
        mutable=True,
        help="The time, in seconds, within which losses count as one event. Should exceed the time that monitoring takes to "
        "notice all losses of one cause.",
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
