"""``lbaas-scheduler-agent``: drives the devices that servers give to this host."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from oslo_config import cfg

from lbaas_scheduler import extensions
from lbaas_scheduler.agent.service import AgentService
from lbaas_scheduler.cmd.signals import Signals, leave_soon
from lbaas_scheduler.conf import loading
from lbaas_scheduler.devices.secrets import Vault
from lbaas_scheduler.errors import ConfigurationError
from lbaas_scheduler.rpc.transport import get_transport

PROG = "lbaas-scheduler-agent"


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. SIGHUP reads the mutable options again.

    :returns: 0 after an orderly stop, 1 if the configuration does not allow to start.
    """
    conf = cfg.CONF
    loading.load(conf, sys.argv[1:] if argv is None else argv, PROG)
    signals = Signals()
    try:
        service = build(conf)
    except ConfigurationError as error:
        print(f"{PROG}: {error.message}", file=sys.stderr)
        return 1
    service.start()
    signals.wait_for_end(conf)
    service.stop()
    leave_soon()
    return 0


def build(conf: cfg.ConfigOpts) -> AgentService:
    """The agent that ``conf`` describes, not started.

    :raises ConfigurationError: says what is wrong.
    """
    drivers = extensions.load_drivers(conf, conf.agent.drivers)
    vault = Vault(conf.security.encryption_keys)
    return AgentService(conf, get_transport(conf), drivers, vault, conf.host)


if __name__ == "__main__":
    sys.exit(main())
