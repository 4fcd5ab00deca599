"""``[quotas]``: how much a tenant may have that has no quotas of its own."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "quotas"

_HELP = (
    "How many {what} a tenant may have; -1 for any number. {why} A tenant that needs another number gets its own through the API "
    "(PUT /v2.0/quotas/{{tenant}})."
)
_BOUNDED = "Raise it where tenants regularly ask for more."
_UNBOUNDED = "Set it where single tenants fill the database; each creation then takes its turn after the others of its tenant."

# As LBaaS v1 has them; devices are ours.
DEFAULTS = (
    ("vip", 10, "VIPs", _BOUNDED),
    ("pool", 10, "pools", _BOUNDED),
    ("member", -1, "members", _UNBOUNDED),
    ("health_monitor", -1, "health monitors", _UNBOUNDED),
    ("device", -1, "private devices", "Set it where [devices] tenant_device_types lets tenants register their own."),
)

OPTS: tuple[cfg.Opt, ...] = tuple(
    cfg.IntOpt(
        f"quota_{resource}",
        default=default,
        min=-1,
        max=2**31 - 1,
        mutable=True,
        help=_HELP.format(what=what, why=why),
    )
    for resource, default, what, why in DEFAULTS
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(OPTS))]
