"""Options of the fake vendor, group ``[fake]``."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "fake"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "state_path",
        default="",
        help="Folder in which each fake device keeps its state as one JSON file. Empty keeps it in memory: it then ends "
        "with the process. Set it to let a device outlive its agent, or to look at a device from another process.",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options. May be called twice: handler and driver both do, and may live in one process."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """For the generator of the sample configuration."""
    return [(GROUP, OPTIONS)]
