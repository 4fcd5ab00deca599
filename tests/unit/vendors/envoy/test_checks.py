"""A health monitor in Envoy's words."""

from __future__ import annotations

from typing import Any

import pytest

from lbaas_scheduler.domain.loadbalancers import MonitorType
from lbaas_scheduler.errors import DriverError
from lbaas_scheduler.sdk.conformance.documents import monitor
from lbaas_scheduler.vendors.envoy.checks import health_check


def http(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = health_check(monitor(MonitorType.HTTP, **changes))["http_health_check"]
    return found


@pytest.mark.parametrize(
    ("codes", "ranges"),
    [
        ("200", [(200, 201)]),
        ("200,202", [(200, 201), (202, 203)]),
        ("200, 301 ,404", [(200, 201), (301, 302), (404, 405)]),
        ("200-204", [(200, 205)]),
        ("599", [(599, 600)]),
    ],
)
def test_expected_codes_become_half_open_ranges(codes: str, ranges: list[tuple[int, int]]) -> None:
    found = http(expected_codes=codes)["expected_statuses"]
    assert [(item["start"], item["end"]) for item in found] == ranges


@pytest.mark.parametrize(
    "codes",
    ["", "20", "2000", "000", "600", "299-200", "200-", "200,", "200-204,301", "２００", "200\n", "100-99999999999", "abc"],
)
def test_codes_that_make_no_sense_are_refused(codes: str) -> None:
    with pytest.raises(DriverError, match="expected_codes"):
        http(expected_codes=codes)


def test_an_unexpected_answer_counts_as_one_failure_only() -> None:
    assert http()["retriable_statuses"] == [{"start": 100, "end": 600}]


@pytest.mark.parametrize("method", ["", "get", "CONNECT", "PURGE", "GET /", "GET\r\n"])
def test_methods_that_envoy_does_not_send_are_refused(method: str) -> None:
    with pytest.raises(DriverError, match="http_method"):
        http(http_method=method)


@pytest.mark.parametrize("path", ["", "health", "/a b", "/ü", "/a\n", "/a\x7f"])
def test_paths_that_would_not_be_one_word_are_refused(path: str) -> None:
    with pytest.raises(DriverError, match="url_path"):
        http(url_path=path)


def test_only_https_checks_use_tls() -> None:
    criteria = {kind: "transport_socket_match_criteria" in health_check(monitor(kind)) for kind in CHECKED}
    assert criteria == {MonitorType.TCP: False, MonitorType.HTTP: False, MonitorType.HTTPS: True}


CHECKED = (MonitorType.TCP, MonitorType.HTTP, MonitorType.HTTPS)


def test_ping_is_refused_with_what_would_do() -> None:
    with pytest.raises(DriverError, match="TCP, HTTP or HTTPS"):
        health_check(monitor(MonitorType.PING))


@pytest.mark.parametrize("changes", [{"delay": 0}, {"delay": 86_401}, {"timeout": 0}, {"max_retries": 0}, {"max_retries": 11}])
def test_numbers_beyond_the_apis_limits_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(DriverError, match="expected a whole number"):
        health_check(monitor(**changes))
