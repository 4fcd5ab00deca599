"""One group per service, named as the service: ``[LoadBalancer]`` first. Another service's plugin registers its own."""

from __future__ import annotations

from oslo_config import cfg

LOAD_BALANCER = "LoadBalancer"


def options(service: str, device_handlers: list[str], scheduling_algorithm: str) -> list[cfg.Opt]:
    """Options of one service.

    :param service: name of the service; part of the entry points' namespaces.
    :param device_handlers: default of the option of that name.
    :param scheduling_algorithm: default of the option of that name.
    """
    return [
        cfg.ListOpt(
            "device_handlers",
            default=device_handlers,
            help=f"Device handlers that the server loads for service {service}: names of entry points in "
            f"lbaas_scheduler.device_handlers.{service}, or dotted class paths (module.Class or module:Class). Each serves one "
            "device type; two for one type are refused. Add a vendor's name after installing its package; remove one to take "
            "no more devices of its type into account.",
        ),
        cfg.StrOpt(
            "scheduling_algorithm",
            default=scheduling_algorithm,
            help=f"How a device is chosen among those that can take a resource of service {service}: the name of an entry point "
            f"in lbaas_scheduler.algorithms.{service}, or a dotted class path. Change it to spread, pack or group differently.",
        ),
        *_of_algorithms(),
    ]


def _of_algorithms() -> list[cfg.Opt]:
    """What service types and placement rules may say otherwise: see :mod:`lbaas_scheduler.scheduler.algorithms`."""
    return [
        cfg.StrOpt(
            "least_loaded_by",
            default="placed",
            choices=[
                ("placed", "what is placed on a device, in shares of its capacities"),
                ("reported", "the connections that a device has open, as it or its agent reported"),
                ("both", "the mean of the two"),
            ],
            help="What makes a device the emptiest, for least_loaded and wherever another algorithm falls back to it. Take "
            "reported or both where resources differ much in what they serve. Reports lag behind, so with reported alone "
            "all that is placed between two of them goes to the same few devices. It orders the page of candidates that is "
            "read, by what is placed, so raise [scheduler] page_size along with it. Devices without a recent report "
            "([scheduler] load_max_age_seconds) come last.",
        ),
        cfg.BoolOpt(
            "strict_affinity",
            default=False,
            help="For tenant_affinity, network_affinity and wired: whether nearness is a must, not a preference. Set it where "
            "a resource on a device of its own is worse than none; a full device then refuses further ones.",
        ),
        cfg.DictOpt(
            "weighers",
            default={"load": "1.0", "wired": "1.0", "handler": "1.0"},
            help="For weighted: weighers (load, wired, network, tenant, handler, zone) with their multipliers. Raise one to let "
            "it outweigh the others; a negative one prefers the opposite.",
        ),
    ]


def register_service_opts(
    conf: cfg.ConfigOpts,
    service: str,
    device_handlers: list[str] | None = None,
    scheduling_algorithm: str = "least_loaded",
) -> None:
    """Register the group of a service. May be called again; the first call's defaults stay.

    :param device_handlers: default list of handlers; by default haproxy and envoy for the load balancer, else none.
    """
    if service in conf and "device_handlers" in conf[service]:
        return
    handlers = device_handlers if device_handlers is not None else _shipped_handlers(service)
    conf.register_opts(options(service, handlers, scheduling_algorithm), group=service)


def _shipped_handlers(service: str) -> list[str]:
    return ["haproxy", "envoy"] if service == LOAD_BALANCER else []


def register_opts(conf: cfg.ConfigOpts) -> None:
    register_service_opts(conf, LOAD_BALANCER)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(LOAD_BALANCER, options(LOAD_BALANCER, _shipped_handlers(LOAD_BALANCER), "least_loaded"))]
