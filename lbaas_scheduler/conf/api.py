"""``[api]``: the REST API, served by ``lbaas-scheduler-server`` itself or by a WSGI server of its own."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "api"

KEYSTONE = "keystone"
NOAUTH = "noauth"

OPTS: tuple[cfg.Opt, ...] = (
    cfg.BoolOpt(
        "enabled",
        default=True,
        help="Whether lbaas-scheduler-server serves the REST API itself. Turn it off where gunicorn or uWSGI serve "
        "lbaas_scheduler.wsgi:application instead.",
    ),
    cfg.HostAddressOpt(
        "bind_host",
        default="127.0.0.1",
        help="Address on which the REST API listens. The default keeps it on this machine; set an address of the machine, or "
        "0.0.0.0, to serve others, and put a proxy that speaks TLS in front of it.",
    ),
    cfg.PortOpt(
        "bind_port",
        default=9696,
        help="TCP port on which the REST API listens; 0 takes any free one, which the log names. Change it where Neutron, whose "
        "port this is, runs on the same machine.",
    ),
    cfg.IntOpt(
        "threads",
        default=16,
        min=1,
        max=1000,
        help="How many requests are worked on at a time. Raise it together with [database] max_pool_size where clients wait "
        "although processor and database have time to spare.",
    ),
    cfg.StrOpt(
        "auth_strategy",
        default=KEYSTONE,
        choices=[
            (KEYSTONE, "tokens, checked by keystonemiddleware as [keystone_authtoken] says; needs the extra [keystone]"),
            (NOAUTH, "whoever reaches the port is believed what its headers say: for tests, and behind a proxy that checks"),
        ],
        help="How callers prove who they are. With noauth the headers X-Project-Id, X-User-Id and X-Roles say it, and a request "
        "without any of them acts as an administrator; choose it for tries on one machine, or behind a proxy that sets them.",
    ),
    cfg.StrOpt(
        "noauth_project_id",
        default="admin",
        max_length=255,
        help="With auth_strategy noauth: the project of requests without identity headers, which act as administrators. Change "
        "it where clients that cannot send headers should own what a certain project owns.",
    ),
    cfg.IntOpt(
        "max_body_bytes",
        default=262_144,
        min=1024,
        max=67_108_864,
        help="Largest body of a request, in bytes; larger ones are refused with 413. Raise it only for vendors whose devices "
        "have much to be described.",
    ),
    cfg.IntOpt(
        "max_page_size",
        default=1000,
        min=1,
        max=10_000,
        mutable=True,
        help="How many objects one answer to a list holds at most; links lead to the rest. Lower it to bound the memory that one "
        "request can take; raise it for clients that do not follow links.",
    ),
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, list(OPTS))]
