"""``[security]``: how secrets are kept."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "security"

OPTS: tuple[cfg.Opt, ...] = (
    cfg.ListOpt(
        "encryption_keys",
        default=[],
        secret=True,
        help="Fernet keys for the devices' management secrets, the same list on every server and agent. The first encrypts, all "
        "decrypt. Make one with 'lbaas-scheduler-manage keys generate'. To replace a key: put the new one first everywhere, "
        "restart, run 'lbaas-scheduler-manage keys rotate', then remove the old one. Needed as soon as a device has secrets.",
    ),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(OPTS))]
