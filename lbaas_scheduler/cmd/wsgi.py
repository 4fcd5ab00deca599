"""The REST API for a WSGI server of its own: what :mod:`lbaas_scheduler.wsgi` serves.

Its processes answer requests and cast to agents. Reports of agents and the reconciler stay with ``lbaas-scheduler-server``,
of which at least one must run beside.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from lbaas_scheduler.cmd import wiring
from lbaas_scheduler.conf import loading
from lbaas_scheduler.conf.api import NOAUTH
from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc.agent_api import AgentAPI
from lbaas_scheduler.rpc.pinger import Pinger
from lbaas_scheduler.rpc.transport import get_transport

LOG = logging.getLogger(__name__)

PROG = "lbaas_scheduler.wsgi"

FILES = "LBAAS_SCHEDULER_CONFIG_FILES"
"""Environment variable with paths of configuration files, separated like those of PATH; without it the usual places are read."""


def application() -> Callable[..., Any]:
    """Built of the configuration. What is wrong with it ends the process with one line."""
    conf = cfg.CONF
    files = [word for path in os.environ.get(FILES, "").split(os.pathsep) if path for word in ("--config-file", path)]
    loading.load(conf, files, PROG)
    try:
        transport = get_transport(conf)
        plant = wiring.assemble(conf, AgentAPI(transport))
        for plugin in plant.plugins:
            plugin.start()
        app = wiring.rest_application(plant, Pinger(transport).ping)
    except LBaaSError as error:
        print(f"{PROG}: {error.message}", file=sys.stderr)
        sys.exit(1)
    if conf.api.auth_strategy == NOAUTH:
        LOG.warning("[api] auth_strategy is noauth: everybody who reaches this application is an administrator")
    # Nobody tells an application that it ends. Each process that is forked from this one has an outbox of its own.
    atexit.register(plant.outbox.stop)
    # Servers may fork after this: no process may use a connection of another one's.
    plant.parts.database.dispose()
    return app
