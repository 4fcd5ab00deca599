"""``lbaas-scheduler-agent``: drives the devices that servers give to this host."""

from __future__ import annotations

import logging
import queue
import signal
import sys
from collections.abc import Sequence

from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.agent.service import AgentService
from lbaas_scheduler.conf import loading
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.rpc.transport import get_transport

LOG = logging.getLogger(__name__)

PROG = "lbaas-scheduler-agent"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. SIGHUP reads the mutable options again.

    :returns: 0 after an orderly stop, 1 if the configuration does not allow to start.
    """
    conf = cfg.CONF
    loading.load(conf, sys.argv[1:] if argv is None else argv, PROG)
    # Before anything is started: a signal that comes meanwhile then ends the agent in order, only later.
    signals = _catch()
    try:
        service = build(conf)
    except ConfigurationError as error:
        print(f"{PROG}: {error.message}", file=sys.stderr)
        return 1
    service.start()
    while (number := signals.get()) == signal.SIGHUP:
        _reread(conf)
    LOG.info("Got %s", signal.Signals(number).name)
    service.stop()
    return 0


def build(conf: cfg.ConfigOpts) -> AgentService:
    """The agent that ``conf`` describes, not started.

    :raises ConfigurationError: says what is wrong.
    """
    drivers = extensions.load_drivers(conf, conf.agent.drivers)
    vault = Vault(conf.security.encryption_keys)
    return AgentService(conf, get_transport(conf), drivers, vault, conf.host)


def _catch() -> queue.SimpleQueue[int]:
    signals: queue.SimpleQueue[int] = queue.SimpleQueue()

    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: signals.put(number))
    return signals


def _reread(conf: cfg.ConfigOpts) -> None:
    try:
        changed = conf.mutate_config_files()
    except (cfg.Error, ValueError) as error:
        LOG.error("The configuration is wrong and stays as it was: %s", " ".join(str(error).split()))
    else:
        LOG.info("Read the configuration again, %d options changed", len(changed))


if __name__ == "__main__":
    sys.exit(main())
