"""A command of the product on a host whose clock is wrong by as many seconds as a file says.

``python -m tests.functional.chaos.skewed FILE MODULE ARGUMENT...``. The monotonic clock is right, as it is on such a host.
"""

from __future__ import annotations

import runpy
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

# The module alone, before anybody else can import the function out of it.
from lbaas_scheduler.domain import clock

LOOK_SECONDS = 0.5


class Clock:
    """The wall clock of a wrong host."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._right = time.time
        self._offset = 0.0
        self._looked = float("-inf")

    def time(self) -> float:
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            self._offset = float(self._file.read_text() or self._offset)
        return self._right() + self._offset

    def utcnow(self) -> datetime:
        return datetime.fromtimestamp(self.time(), UTC)


def main(file: str, module: str, *arguments: str) -> None:
    wrong = Clock(Path(file))
    clock.utcnow = wrong.utcnow
    time.time = wrong.time
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
