"""``[database]``: oslo.db's options, with our defaults where its own do not fit."""

from __future__ import annotations

from oslo_config import cfg
from oslo_db import options

GROUP = "database"

DEFAULTS: dict[str, object] = {
    "connection": "sqlite:////var/lib/lbaas-scheduler/lbaas-scheduler.sqlite",
    # A server's threads, without opening a connection per request.
    "max_pool_size": 10,
    # The pause between two tries starts at 10 ms and doubles; these two bound the whole to about 30 s.
    "db_max_retries": 22,
    "db_max_retry_interval": 2,
}

# oslo.db shares its option objects, and cfg.set_defaults is how a project changes their defaults, in the sample file too.
cfg.set_defaults(options.database_opts, **DEFAULTS)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(options.database_opts, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(options.database_opts))]
