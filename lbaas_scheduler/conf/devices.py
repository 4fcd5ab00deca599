"""``[devices]``: what tenants may register themselves."""

from __future__ import annotations

import ipaddress

from oslo_config import cfg, types

GROUP = "devices"


class _Network(types.String):
    """A network in CIDR notation, without host bits."""

    def __call__(self, value: str) -> str:
        return str(ipaddress.ip_network(super().__call__(value)))


OPTS: tuple[cfg.Opt, ...] = (
    cfg.ListOpt(
        "tenant_device_types",
        default=[],
        mutable=True,
        help="Device types of which tenants may register private devices of their own, such as virtual balancers that they "
        "launched; empty: tenants register none. Such a device takes VIPs of its tenant only. Name only types whose devices are "
        "reached over the network: a type that runs on the agent's host would let tenants start processes there. Set [quotas] "
        "quota_device as well.",
    ),
    cfg.ListOpt(
        "tenant_management_networks",
        default=[],
        item_type=_Network(),
        mutable=True,
        help="Networks (CIDR) in which the management address of a tenant's own device must lie; empty: tenants register none. "
        "Agents and servers talk to that address, so name only networks where nothing else listens that a tenant must not "
        "reach: not the control plane's, and no loopback or link-local ones.",
    ),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(OPTS))]
