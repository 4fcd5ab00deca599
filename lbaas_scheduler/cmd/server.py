"""``lbaas-scheduler-server``: service plugins, the endpoint for agents, and the reconciler."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from oslo_config import cfg

from lbaas_scheduler.cmd import wiring
from lbaas_scheduler.cmd.signals import Signals, leave_soon
from lbaas_scheduler.conf import loading
from lbaas_scheduler.errors import LBaaSError
from lbaas_scheduler.rpc.transport import get_transport

LOG = logging.getLogger(__name__)

PROG = "lbaas-scheduler-server"


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. SIGHUP reads the mutable options again.

    :returns: 0 after an orderly stop, 1 if the server cannot start.
    """
    conf = cfg.CONF
    loading.load(conf, sys.argv[1:] if argv is None else argv, PROG)
    signals = Signals()
    try:
        server = wiring.build(conf, get_transport(conf))
        server.start()
    except LBaaSError as error:
        print(f"{PROG}: {error.message}", file=sys.stderr)
        return 1
    LOG.info("Server %s runs", conf.host)
    signals.wait_for_end(conf)
    server.stop()
    leave_soon()
    return 0


if __name__ == "__main__":
    sys.exit(main())
