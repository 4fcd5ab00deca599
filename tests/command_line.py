"""The command line in this process, for tests."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from lbaas_scheduler.cli import entry


class Cli:
    """``lbaas-scheduler``; what it needs to find the server is in the environment."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def call(self, *words: str) -> tuple[int, str, str]:
        """:returns: exit code, standard output, standard error."""
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        self._capsys.readouterr()
        try:
            code = entry.main(words)
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)
        out, err = self._capsys.readouterr()
        return code, out, err

    def run(self, *words: str) -> str:
        code, out, err = self.call(*words)
        assert code == 0, (words, err)
        return out

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "-f", "json"))

    def refused(self, *words: str) -> str:
        """:returns: the one line that says why."""
        code, _, err = self.call(*words)
        assert code != 0, words
        (line,) = err.strip().splitlines()
        return line
