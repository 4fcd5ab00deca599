"""What an Envoy counts, read from answers as it gives them."""

from __future__ import annotations

import re
from typing import Any

from lbaas_scheduler.domain.deployments import MemberHealth, Version, VipStats
from lbaas_scheduler.vendors.envoy import stats
from lbaas_scheduler.vendors.envoy.admin import Admin
from lbaas_scheduler.vendors.envoy.folder import Record
from lbaas_scheduler.vendors.envoy.process import COUNTERS
from lbaas_scheduler.vendors.envoy.resources import Resources


class Answers(Admin):
    """An Envoy that was asked before."""

    def stats(self, pattern: str) -> dict[str, Any]:
        return {name: value for name, value in COUNTED.items() if re.search(pattern, name)}

    def clusters(self) -> list[dict[str, Any]]:
        return [{"name": "web", "host_statuses": [host(port, **status) for port, status in HEALTH.items()]}, {"name": "x"}]


COUNTED = {
    "listener.web.downstream_cx_active": 3,
    "listener.web.downstream_cx_total": 5_000_000_000,
    "http.web.downstream_cx_rx_bytes_total": 6_000_000_000,
    "http.web.downstream_cx_tx_bytes_total": 7_000_000_000,
    "listener.web.worker_0.downstream_cx_total": 1,
    "tcp.db.downstream_cx_rx_bytes_total": 11,
    "http.admin.downstream_cx_rx_bytes_total": 1,
}
HEALTH: dict[int, dict[str, Any]] = {
    1: {"eds_health_status": "HEALTHY"},
    2: {"failed_active_health_check": True, "eds_health_status": "HEALTHY"},
    3: {"failed_active_health_check": True, "pending_active_hc": True},
    4: {},
}


def host(port: int, **status: Any) -> dict[str, Any]:
    return {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}, "health_status": status}


def record(checked: bool) -> Record:
    members = {f"127.0.0.1 {port}": f"m{port}" for port in (1, 2, 3)}
    return Record(Version(1, 1), Resources(), members, checked)


def test_counters_are_of_the_vip_whatever_its_protocol(tmp_path: Any) -> None:
    read = stats.read(Answers(tmp_path), {"web": record(True), "db": record(True)})
    web, db = read["web"], read["db"]
    assert (web.bytes_in, web.bytes_out) == (6_000_000_000, 7_000_000_000)
    assert (web.active_connections, web.total_connections) == (3, 5_000_000_000)
    assert (db.bytes_in, db.bytes_out, db.members) == (11, 0, {})


def test_a_vip_without_a_connection_yet_counts_0(tmp_path: Any) -> None:
    assert stats.read(Answers(tmp_path), {"new": record(False)}) == {"new": VipStats()}


def test_health_is_known_once_a_check_has_ended(tmp_path: Any) -> None:
    assert stats.read(Answers(tmp_path), {"web": record(True)})["web"].members == {
        "m1": MemberHealth(True),
        "m2": MemberHealth(False, 1, "the health check failed"),
        "m3": MemberHealth(None),
    }


def test_without_a_monitor_health_is_unknown(tmp_path: Any) -> None:
    members = stats.read(Answers(tmp_path), {"web": record(False)})["web"].members
    assert {health.up for health in members.values()} == {None}


def test_only_counters_of_vips_are_asked_for() -> None:
    asked = {name for name in COUNTED if re.search(COUNTERS, name)}
    assert "listener.web.worker_0.downstream_cx_total" not in asked
    assert "listener.web.downstream_cx_total" in asked
