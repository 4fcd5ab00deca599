"""What an agent says of itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from lbaas_scheduler.agent import heartbeat
from lbaas_scheduler.agent.heartbeat import Heartbeat


class Site:
    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []

    def report_state(self, state: dict[str, Any]) -> None:
        self.states.append(state)

    def note(self, error: Exception) -> None:
        raise error

    def heard(self) -> None:
        """As the agent's contact has it."""


def test_reports_stay_in_order_when_the_hosts_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    site, true = Site(), heartbeat.utcnow
    agent = Heartbeat("host-1", site, site, ["fake"], dict)  # type: ignore[arg-type]
    agent.beat()
    monkeypatch.setattr(heartbeat, "utcnow", lambda: true() - timedelta(hours=1))
    agent.beat()
    first, second = site.states
    assert first["started_at"] == second["started_at"]
    sent = [datetime.fromisoformat(state["sent_at"]) for state in site.states]
    assert sent[0] < sent[1] < sent[0] + timedelta(minutes=1)
    assert [state["start_flag"] for state in site.states] == [True, False]
