"""The real server, killed by the first VIP that it accepted: after the commit and before the cast."""

import os
import signal
import sys
from typing import Any

from lbaas_scheduler.cmd import server
from lbaas_scheduler.plugins.casts import Caster


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    Caster.cast = die  # type: ignore[method-assign,assignment]
    sys.exit(server.main())
