"""Puts the scheduler together from the configuration."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.conf import scheduler as scheduler_options
from lbaas_scheduler.db.candidates import SqlCandidates
from lbaas_scheduler.db.session import Database
from lbaas_scheduler.errors import ConfigurationError, InvalidRequest
from lbaas_scheduler.plugins.device_scheduler.placer import Placer
from lbaas_scheduler.scheduler.algorithms.weighted import multipliers
from lbaas_scheduler.scheduler.framework import Scheduler
from lbaas_scheduler.scheduler.gate import HandlerGate
from lbaas_scheduler.sdk.handlers import DeviceHandler
from lbaas_scheduler.sdk.networks import NetworkConnector

LOG = logging.getLogger(__name__)


def build_gates(conf: cfg.ConfigOpts) -> Mapping[str, HandlerGate]:
    """Service → the gate to its handlers, for every installed service that has handlers configured.

    :raises ConfigurationError: a service or a handler cannot be loaded.
    """
    scheduler_options.register_opts(conf)
    gates = {}
    for service in extensions.load_services():
        handlers = extensions.load_handlers(conf, service)
        if handlers:
            gates[service] = HandlerGate(handlers, conf.scheduler.handler_timeout_seconds)
        else:
            LOG.info("Service %s is installed, but [%s] device_handlers is empty: it is not scheduled", service, service)
    return gates


def handlers_of(gates: Mapping[str, HandlerGate]) -> Mapping[tuple[str, str], DeviceHandler]:
    """(service, device type) → handler."""
    return {(service, type_): handler for service, gate in gates.items() for type_, handler in gate.handlers.items()}


def build_placer(
    conf: cfg.ConfigOpts,
    database: Database,
    gates: Mapping[str, HandlerGate] | None = None,
    connector: NetworkConnector | None = None,
) -> Placer:
    """The placer of all services.

    :param gates: from :func:`build_gates`, to share them with others that call handlers.
    :param connector: wires devices to networks; None = they all are.
    :raises ConfigurationError: a service, handler or algorithm cannot be loaded.
    """
    used = gates if gates is not None else build_gates(conf)
    reader = SqlCandidates(database, conf.scheduler.agent_down_seconds, conf.scheduler.load_max_age_seconds)
    return Placer(database, reader, {service: _scheduler(conf, service, gate) for service, gate in used.items()}, connector)


def _scheduler(conf: cfg.ConfigOpts, service: str, gate: HandlerGate) -> Scheduler:
    algorithms, default = extensions.load_algorithms(conf, service)
    ours = conf[service]
    options = {"strict": ours.strict_affinity, "weighers": ours.weighers, "least_loaded_by": ours.least_loaded_by}
    try:
        multipliers(options)
    except InvalidRequest as error:
        raise ConfigurationError(reason=f"[{service}] weighers: {error.details['reason']}") from error
    return Scheduler(
        gate,
        algorithms,
        default,
        page_size=conf.scheduler.page_size,
        max_rounds=conf.scheduler.max_rounds,
        seed=conf.scheduler.random_seed,
        options=options,
    )
