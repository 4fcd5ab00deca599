"""``lbaas-scheduler-demo --serve``, for tests that want a whole installation and speak HTTP to it."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Any

import requests

from tests.rig.daemon import Daemon
from tests.rig.run import Run
from tests.rig.waiting import wait_for

READY = "Ctrl-C ends it"


class Demo:
    """A context manager. ``url``: of its REST API.

    :param words: further words of the command line.
    """

    def __init__(self, rig: Run, folder: Path, *words: str) -> None:
        program = str(Path(sys.executable).with_name("lbaas-scheduler-demo"))
        command = [program, "--serve", *(words or ("--port", "0"))]
        self.daemon = Daemon(rig, "demo", command, log=folder / "demo.log", stop_signal=signal.SIGINT)
        self.url = ""

    def __enter__(self) -> Demo:
        self.daemon.start()
        wait_for(lambda: READY in self.daemon.tail() or self.daemon.must_run(), 60, "the demo's welcome")
        found = re.search(r"REST API is on (\S+)", self.daemon.tail())
        assert found
        self.url = found[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.daemon.stop()

    def get(self, path: str) -> Any:
        """What is under the only key, of a list or an object."""
        answer = requests.get(f"{self.url}/v2.0/{path}", timeout=10)
        answer.raise_for_status()
        document = answer.json()
        return next(value for name, value in document.items() if not name.endswith("_links"))

    def find(self, path: str, **attributes: Any) -> dict[str, Any]:
        """The only one of a list that has these attributes."""
        (found,) = [it for it in self.get(path) if all(it[name] == value for name, value in attributes.items())]
        return found
