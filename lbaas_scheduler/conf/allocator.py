"""``[allocator]``: where allocations of VLANs, VXLANs, subnets and addresses are kept, and for how long what."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "allocator"

OPTS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "driver",
        default="sql",
        help="Where allocations are kept: 'sql' in the database of [database], 'etcd' in a cluster of its own, 'memory' in "
        "this process alone, or the name or class path of another installed driver. Take etcd where other programs that use it "
        "have to see the same allocations; a VIP's address is then held before its placement and made final after it.",
    ),
    cfg.ListOpt(
        "resources",
        default=["vlan", "vxlan", "subnet", "address"],
        help="Kinds of resources that can be defined: entry points of lbaas_scheduler.resources, or class paths. Add the kind "
        "of a package that you installed.",
    ),
    cfg.ListOpt(
        "etcd_endpoints",
        default=["http://127.0.0.1:2379"],
        help="Addresses of etcd's members, in the order in which they are tried; used with driver = etcd only. Use https:// "
        "together with etcd_ca_cert wherever the network is not yours alone.",
    ),
    cfg.StrOpt(
        "etcd_namespace",
        default="",
        help="What goes before every key. Set it, such as /site-1, where several installations share a cluster; the keys of the "
        "old namespace stay where they are.",
    ),
    cfg.StrOpt(
        "etcd_ca_cert",
        default="",
        help="File with the certificates of whoever signed the members' ones. Empty: those that the system trusts. Set it for "
        "a CA of your own.",
    ),
    cfg.StrOpt(
        "etcd_cert",
        default="",
        help="File with our own certificate, for a cluster with --client-cert-auth. Empty: we show none; set etcd_key with it.",
    ),
    cfg.StrOpt(
        "etcd_key", default="", help="File with the private key of etcd_cert. Readable to the service's user and to nobody else."
    ),
    cfg.StrOpt(
        "etcd_user",
        default="",
        help="User of etcd's own authentication. Empty: it is off. The user needs to read and write the prefix "
        "<etcd_namespace>/lbaas_scheduler/ and nothing else.",
    ),
    cfg.StrOpt(
        "etcd_password",
        default="",
        secret=True,
        help="Password of etcd_user. Change it in etcd first and then here on every host; leave it out where etcd asks for none.",
    ),
    cfg.FloatOpt(
        "etcd_timeout_seconds",
        default=5.0,
        min=0.1,
        max=60.0,
        help="How long to wait for a member's answer before the next one is asked. Raise it where disks or networks are slow.",
    ),
    cfg.IntOpt(
        "etcd_max_operations",
        default=128,
        min=8,
        max=100_000,
        help="How many operations the cluster does in one transaction: its --max-txn-ops. Raise both for requests of more "
        "than 25 values.",
    ),
    cfg.FloatOpt(
        "hold_ttl_seconds",
        default=300.0,
        min=1.0,
        max=86_400.0,
        help="How long a value may be held while a placement is under way; afterwards reconciling takes it back. Raise it where "
        "placements wait for slow systems.",
    ),
    cfg.StrOpt(
        "address_pick",
        default="lowest",
        choices=["lowest", "random", "next_fit", "longest_free"],
        help="Which free address of a subnet a VIP gets that asks for none. Take 'random' where many servers place VIPs in one "
        "subnet at once, so that they do not reach for the same one; 'longest_free' where what remembers addresses, such as a "
        "neighbour's cache, should have the time to forget them. Holds for subnets that are made or changed from then on.",
    ),
    cfg.FloatOpt(
        "reconcile_interval_seconds",
        default=300.0,
        min=0.0,
        help="How often each server takes back what nobody wants any more: holds that are over, values of VIPs that are gone. "
        "Lower it where etcd keeps the allocations and placements often die half-way; each round reads all allocations. 0 leaves "
        "it to whoever calls for it.",
    ),
    cfg.FloatOpt(
        "owner_grace_delay_seconds",
        default=3600.0,
        min=0.0,
        help="For how long an owner must have been missing before its values are taken back. Longer than your longest outage of "
        "whatever knows the owners; 0 takes them back at the second look.",
    ),
    cfg.FloatOpt(
        "history_days",
        default=90.0,
        min=0.0,
        help="How long the audit trail is kept. Raise it if your rules ask for it; 0 keeps it for ever, and it grows with "
        "every change.",
    ),
    cfg.FloatOpt(
        "request_days",
        default=7.0,
        min=0.01,
        help="For how long a repeated request id gets the answer it got before. Longer than any client goes on repeating.",
    ),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(OPTS))]
