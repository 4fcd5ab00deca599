"""The client's environment, and a server of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.demo import Demo
from tests.house.sources import ROOT
from tests.rig.fixtures import require
from tests.rig.run import Run

VERSION = "9.0.0"
"""The last one with the commands for LBaaS v1."""

UNAVAILABLE = 69


@pytest.fixture(scope="session")
def client_python() -> Path:
    """Python of the virtual environment that ``tools/neutronclient`` makes."""
    folder = ROOT / ".venv-neutronclient"
    made = subprocess.run(
        [ROOT / "tools" / "neutronclient", folder, VERSION], capture_output=True, text=True, check=False, timeout=900
    )
    require("neutronclient", f"PyPI: {made.stderr[-300:]}" if made.returncode == UNAVAILABLE else "")
    assert made.returncode == 0, made.stderr
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def demo(rig: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with Demo(rig, tmp_path_factory.mktemp("demo")) as running:
        yield running


class Neutron:
    """The command ``neutron``. ``driven``: the commands that were run."""

    def __init__(self, python: Path, url: str) -> None:
        self.driven: set[str] = set()
        environment = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": url, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        self._runner = subprocess.Popen(
            [python, "-I", Path(__file__).with_name("runner.py")],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> str:
        """:returns: standard output of a command that succeeds."""
        answer = self._call(words)
        assert answer["code"] == 0, (words, answer["err"])
        return str(answer["out"])

    def show(self, *words: str) -> dict[str, Any]:
        """The object that a command shows."""
        found: dict[str, Any] = json.loads(self.run(*words[:1], "-f", "json", *words[1:]))
        return found

    def list(self, *words: str) -> list[dict[str, Any]]:
        """The rows that a command shows."""
        found: list[dict[str, Any]] = json.loads(self.run(*words[:1], "-f", "json", *words[1:]))
        return found

    def refused(self, *words: str) -> str:
        """:returns: what a command that fails says."""
        answer = self._call(words)
        assert answer["code"] != 0, (words, answer["out"])
        return str(answer["err"])

    def close(self) -> None:
        assert self._runner.stdin is not None
        self._runner.stdin.close()
        self._runner.wait(20)
        assert self._runner.stdout is not None
        self._runner.stdout.close()

    def _call(self, words: tuple[str, ...]) -> dict[str, Any]:
        self.driven.add(words[0])
        assert self._runner.stdin is not None
        assert self._runner.stdout is not None
        print(json.dumps(words), file=self._runner.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._runner.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def neutron(client_python: Path, demo: Demo) -> Iterator[Neutron]:
    found = Neutron(client_python, demo.url)
    yield found
    found.close()
