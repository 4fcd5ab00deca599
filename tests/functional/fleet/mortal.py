"""A real server or agent that kills itself at one step: ``python -m … server|agent MODULE:NAME before|after OPTIONS``.

``before``: when it would take the step for the first time. ``after``: when it has taken it, and before anybody hears so.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

from lbaas_scheduler.cmd import agent, server

MAINS = {"server": server.main, "agent": agent.main}


def arm(step: str, moment: str) -> None:
    module, _, path = step.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    genuine = getattr(owner, name)

    def die(*arguments: Any, **named: Any) -> Any:
        if moment == "after":
            genuine(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, die)


if __name__ == "__main__":
    kind, step, moment, *options = sys.argv[1:]
    arm(step, moment)
    sys.argv[1:] = options
    sys.exit(MAINS[kind]())
