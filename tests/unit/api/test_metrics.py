"""What is counted passes on what it was given, and measures by its own clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import falcon.testing
import pytest

from lbaas_scheduler.api.app import AccessLog
from lbaas_scheduler.api.metrics import MeteredPlacer, Meters, RequestMeter
from lbaas_scheduler.domain.requests import ScheduleRequest
from lbaas_scheduler.domain.simulation import Simulation
from lbaas_scheduler.domain.trail import Decision
from lbaas_scheduler.plugins.device_scheduler.placer import Within

REQUEST: Any = object()
DECISION: Any = object()
SIMULATION: Any = object()


class Recording:
    """A placer that writes down what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def algorithms(self) -> Mapping[str, Collection[str]]:
        return {"loadbalancer": ["binpack"]}

    def place(self, request: ScheduleRequest, within: Within | None = None, role: str = "current") -> Decision:
        self.asked.append((request, within, role))
        return DECISION

    def simulate(self, request: ScheduleRequest, count: int = 1) -> Simulation:
        self.asked.append((request, count))
        return SIMULATION


def test_a_counted_placement_may_be_of_any_role() -> None:
    placer, meters = Recording(), Meters()
    metered = MeteredPlacer(placer, meters)
    assert metered.place(REQUEST, role="target") is DECISION
    assert metered.place(REQUEST) is DECISION
    assert placer.asked == [(REQUEST, None, "target"), (REQUEST, None, "current")]
    for role in ("target", "current"):
        labels = {"role": role, "outcome": "placed", "reason": ""}
        assert meters.registry.get_sample_value("lbaas_scheduler_placements_total", labels) == 1


def test_what_is_only_asked_is_not_counted() -> None:
    placer, meters = Recording(), Meters()
    metered = MeteredPlacer(placer, meters)
    assert metered.simulate(REQUEST, 3) is SIMULATION
    assert metered.algorithms() == {"loadbalancer": ["binpack"]}
    assert placer.asked == [(REQUEST, 3)]
    assert b"placements_total{" not in meters.render()


def test_the_access_log_does_not_set_the_clock_by_which_requests_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    meters = Meters()
    layers = RequestMeter(meters), AccessLog()
    req = falcon.testing.create_req()
    req.uri_template = "/v2.0/lb/vips"
    readings = iter((5_000_000.0, 5_000_002.0))
    monkeypatch.setattr("lbaas_scheduler.api.metrics.time", SimpleNamespace(perf_counter=lambda: next(readings)))
    resp = falcon.Response()
    for layer in layers:
        layer.process_request(req, resp)
    for layer in reversed(layers):
        layer.process_response(req, resp, None, True)
    labels = {"method": "GET", "route": "/v2.0/lb/vips", "status": "200"}
    assert meters.registry.get_sample_value("lbaas_scheduler_request_seconds_sum", labels) == 2.0
