"""A running installation, and the command line in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.command_line import Cli
from tests.demo import Demo
from tests.rig.run import Run


@pytest.fixture(scope="module")
def demo(rig: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with Demo(rig, tmp_path_factory.mktemp("demo")) as running:
        yield running


@pytest.fixture
def cli(demo: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name in list(os.environ):
        if name.startswith(("OS_", "LBAAS_ENDPOINT", "LBAAS_PROJECT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LBAAS_ENDPOINT", demo.url)
    return Cli(capsys)
