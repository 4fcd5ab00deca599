"""All option groups of this package, for the entry points and for oslo.config's generator."""

from __future__ import annotations

from oslo_config import cfg

from lbaas_scheduler.conf import agent, allocator, api, database, default, devices, quotas, scheduler, security, service

MODULES = (default, api, service, scheduler, agent, allocator, security, devices, quotas, database)


def register_all(conf: cfg.ConfigOpts) -> None:
    """Register every group. May be called again."""
    for module in MODULES:
        module.register_opts(conf)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """(group, options) pairs."""
    return [pair for module in MODULES for pair in module.list_opts()]
