"""The command line in this process, and a server that is a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from lbaas_scheduler.cli import session
from lbaas_scheduler.cli.client import Client
from tests.command_line import Cli

DEVICE_ID = "00000000-0000-4000-8000-00000000000d"
VIP_ID = "00000000-0000-4000-8000-000000000001"
RULE_ID = "00000000-0000-4000-8000-00000000000a"

NAMES: Mapping[tuple[str, str], Any] = {
    ("GET", "/v2.0/devices"): {"devices": [{"id": DEVICE_ID}]},
    ("GET", "/v2.0/lb/vips"): {"vips": [{"id": VIP_ID}]},
    ("GET", "/v2.0/placement-rules"): {"placement_rules": [{"id": RULE_ID}]},
}
"""Where names are looked up: whatever the name, it is found."""


class Answer:
    def __init__(self, status: int, document: Any) -> None:
        self.status_code = status
        self.text = "" if document is None else json.dumps(document)


class TableServer:
    """Stands where keystoneauth's adapter does. ``answers``: (method, path) → document, or an :class:`Answer`, or a list of them
    of which the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Any] = dict(NAMES)
        self.asked: list[tuple[str, str, Any, Any]] = []

    def request(self, path: str, method: str, json: Any = None, params: Any = None, **_words: Any) -> Answer:
        self.asked.append((method, path, json, params))
        found = self.answers.get((method, path))
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        if isinstance(found, Answer):
            return found
        if found is None:
            return Answer(404, {"NeutronError": {"type": "NotFound", "message": f"No {path}.", "detail": ""}})
        return Answer(200, found)

    def told(self) -> list[tuple[str, str, Any]]:
        """What was asked but for names: method, path, body."""
        return [(method, path, body) for method, path, body, _ in self.asked if (method, path) not in NAMES]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> TableServer:
    made = TableServer()
    monkeypatch.setattr(session, "connect", lambda _options, _environment: Client(made))  # type: ignore[arg-type]
    return made


@pytest.fixture
def cli(server: TableServer, capsys: pytest.CaptureFixture[str]) -> Cli:  # noqa: ARG001 - whoever types needs a server
    return Cli(capsys)
