"""What agents may ask and tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from lbaas_scheduler.db import deployments
from lbaas_scheduler.domain import clock
from lbaas_scheduler.domain.deployments import Result, Version, VipStats
from lbaas_scheduler.errors import Unavailable
from lbaas_scheduler.plugins.callbacks import AgentCallbacks, Outcome
from lbaas_scheduler.rpc.codec import decode_device, from_document, to_document
from tests.functional.registry.fleet import KEY, Fleet


class RecordingReports:
    """Keeps what it is given; ``broken`` VIPs cannot be recorded."""

    def __init__(self) -> None:
        self.results: list[tuple[str, Result]] = []
        self.stats: list[tuple[str | None, set[str]]] = []
        self.disposed: list[str] = []
        self.broken: set[str] = set()
        self.away = False

    def apply_reports(self, conn: sa.Connection, reports: Sequence[tuple[str, Result]]) -> Outcome:
        results = [result for _, result in reports]
        if self.away:
            raise Unavailable(dependency="The database", reason="test")
        if self.broken & {result.vip_id for result in results}:
            raise ValueError("cannot be recorded")
        self.results += reports
        return Outcome([result.vip_id for result in results if result.removed])

    def apply_stats(self, conn: sa.Connection, stats: Mapping[str, VipStats], device_id: str | None = None) -> None:
        self.stats.append((device_id, set(stats)))

    def dispose(self, vip_ids: Collection[str]) -> None:
        self.disposed += vip_ids


@pytest.fixture
def reports() -> RecordingReports:
    return RecordingReports()


@pytest.fixture
def callbacks(fleet: Fleet, reports: RecordingReports) -> AgentCallbacks:
    return AgentCallbacks(fleet.database, fleet.agents, reports, fleet.load_vips)


@pytest.fixture
def device_id(fleet: Fleet) -> str:
    """On host-1, with three VIPs: two to be applied, one to go."""
    fleet.report("host-1")
    made = fleet.enrol(management={"address": "192.0.2.1", "password": "hunter2"})
    for vip in ("vip-1", "vip-2", "vip-3"):
        fleet.deploy(vip, made)
    fleet.database.write(lambda conn: deployments.mark_removal(conn, ["vip-2"], clock.utcnow()))
    return made


def result(vip_id: str, **fields: Any) -> Any:
    return to_document(Result(vip_id, Version(1, 1), **fields))


def test_an_agent_gets_its_devices_with_their_secrets_sealed(callbacks: AgentCallbacks, fleet: Fleet, device_id: str) -> None:
    (document,) = callbacks.get_devices(None, "host-1")
    device, token = decode_device(document)
    assert (device.id, device.management.address, device.management.secret) == (device_id, "192.0.2.1", {})
    assert fleet.vault.open(token) == {"password": "hunter2"}
    assert "hunter2" not in str(document)
    assert KEY not in str(document)
    assert callbacks.get_devices(None, "host-2") == []


def test_what_a_device_should_have_comes_in_pages(callbacks: AgentCallbacks, device_id: str) -> None:
    lines: list[dict[str, Any]] = []
    while page := callbacks.list_desired(None, "host-1", device_id, lines[-1]["vip_id"] if lines else None, 2):
        lines += page
    assert [(it["vip_id"], it["epoch"], it["revision"], it["operation"]) for it in lines] == [
        ("vip-1", 1, 1, "apply"),
        ("vip-2", 1, 2, "remove"),
        ("vip-3", 1, 1, "apply"),
    ]
    assert callbacks.list_desired(None, "host-2", device_id, None, 10) == []


def test_whole_states_are_given_of_what_is_to_be_applied_only(callbacks: AgentCallbacks, fleet: Fleet, device_id: str) -> None:
    wanted = ["vip-1", "vip-2", "vip-3", "elsewhere"]
    documents = callbacks.get_deployments(None, "host-1", device_id, wanted)
    assert [(it["vip"]["id"], it["version"]) for it in documents] == [("vip-1", [1, 1]), ("vip-3", [1, 1])]
    fleet.poisoned = {"vip-1"}
    assert [it["vip"]["id"] for it in callbacks.get_deployments(None, "host-1", device_id, wanted)] == ["vip-3"]
    assert callbacks.get_deployments(None, "host-2", device_id, wanted) == []


def test_results_are_taken_from_the_devices_own_agent_alone(
    callbacks: AgentCallbacks, reports: RecordingReports, device_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    callbacks.report_results(None, "host-2", {device_id: [result("vip-1")]})
    callbacks.report_results(None, "host-1", {"no-such-device": [result("vip-1")]})
    assert reports.results == []
    assert "The agent on host-2 speaks of device" in caplog.text
    callbacks.report_results(None, "host-1", {device_id: [result("vip-1"), result("vip-2", removed=True)]})
    assert [(it.vip_id, it.removed) for _, it in reports.results] == [("vip-1", False), ("vip-2", True)]
    assert reports.disposed == ["vip-2"]


def test_an_agent_that_lost_its_devices_is_not_believed(
    callbacks: AgentCallbacks, fleet: Fleet, reports: RecordingReports, device_id: str
) -> None:
    fleet.report("host-2")
    fleet.silence("host-1")
    fleet.assignments.take_over()
    callbacks.report_results(None, "host-1", {device_id: [result("vip-1")]})
    callbacks.report_stats(None, "host-1", device_id, {"vip-1": to_document(VipStats())})
    assert (reports.results, reports.stats) == ([], [])
    assert callbacks.get_devices(None, "host-1") == []
    callbacks.report_results(None, "host-2", {device_id: [result("vip-1")]})
    assert [it.vip_id for _, it in reports.results] == ["vip-1"]


def test_one_result_that_cannot_be_recorded_does_not_lose_the_others(
    callbacks: AgentCallbacks, reports: RecordingReports, device_id: str
) -> None:
    reports.broken = {"vip-2"}
    callbacks.report_results(None, "host-1", {device_id: [result("vip-1"), result("vip-2"), result("vip-3")]})
    assert [it.vip_id for _, it in reports.results] == ["vip-1", "vip-3"]


def test_a_result_that_is_no_result_is_left_out(callbacks: AgentCallbacks, reports: RecordingReports, device_id: str) -> None:
    callbacks.report_results(None, "host-1", {device_id: [None, {}, {"vip_id": 7}, result("vip-1")]})
    assert [it.vip_id for _, it in reports.results] == ["vip-1"]


def test_an_agent_learns_that_the_database_is_away_and_keeps_its_results(
    callbacks: AgentCallbacks, reports: RecordingReports, device_id: str
) -> None:
    reports.away = True
    with pytest.raises(Exception) as refused:  # noqa: PT011 - oslo.messaging wraps what is expected
        callbacks.report_results(None, "host-1", {device_id: [result("vip-1")]})
    assert refused.value.exc_info[0] is Unavailable  # type: ignore[attr-defined]


def test_statistics_are_handed_on_with_their_device(callbacks: AgentCallbacks, reports: RecordingReports, device_id: str) -> None:
    stats = {"vip-1": to_document(VipStats(bytes_in=5_000_000_000))}
    assert from_document(VipStats, stats["vip-1"]).bytes_in == 5_000_000_000
    callbacks.report_stats(None, "host-1", device_id, {**stats, "vip-2": {"bytes_in": "many"}})
    assert reports.stats == [(device_id, {"vip-1"})]


def test_a_report_of_state_reaches_the_directory(callbacks: AgentCallbacks, fleet: Fleet) -> None:
    callbacks.report_state(None, {"host": "host-9", "configurations": {"device_drivers": ["fake"]}})
    assert [it["host"] for it in fleet.agents.list()] == ["host-9"]
