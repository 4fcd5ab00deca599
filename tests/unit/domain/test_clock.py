"""The database's time between measurements."""

from __future__ import annotations

import time

import pytest

from lbaas_scheduler.domain.clock import DatabaseClock, Measurement

SECOND = 10**9
MONDAY = 1_600_000_000 * SECOND


class Site:
    """A clock whose monotonic time is set by hand."""

    def __init__(self) -> None:
        self.monotonic = 0
        self.clock = DatabaseClock(lambda: self.monotonic)

    def measure(self, database_ns: int, ahead_seconds: float = 0.0, uncertain_ns: int = 0) -> None:
        self.clock.set(Measurement(database_ns, self.monotonic, uncertain_ns, ahead_seconds))


@pytest.fixture
def site() -> Site:
    return Site()


def test_without_a_database_it_is_the_hosts_time(site: Site) -> None:
    assert abs(site.clock.time_ns() - time.time_ns()) < SECOND
    assert site.clock.trouble(5) == ""


@pytest.mark.parametrize("ahead", [-600.0, 0.0, 600.0])
def test_the_databases_time_goes_on_whatever_the_hosts_clock_says(site: Site, ahead: float) -> None:
    site.measure(MONDAY, ahead)
    site.monotonic += 3 * SECOND
    assert site.clock.time_ns() == MONDAY + 3 * SECOND


def test_a_clock_that_drifts_is_put_right_by_the_next_measurement(site: Site) -> None:
    site.measure(MONDAY)
    site.monotonic += 10 * SECOND
    site.measure(MONDAY + 11 * SECOND)
    assert site.clock.time_ns() == MONDAY + 11 * SECOND
    assert site.clock.trouble(5, settle_seconds=75) == "", "a second is no jump"


def test_time_does_not_go_back_by_the_jitter_of_measurements(site: Site) -> None:
    site.measure(MONDAY)
    site.monotonic += 10 * SECOND
    site.measure(MONDAY + 10 * SECOND - 1000, uncertain_ns=2000)
    assert site.clock.time_ns() == MONDAY + 10 * SECOND


@pytest.mark.parametrize(("ahead", "complaint"), [(600.0, "600 s ahead of"), (-6.0, "6 s behind"), (4.9, ""), (-5.0, "")])
def test_a_server_that_differs_from_the_database_by_too_much_is_told_how_far(site: Site, ahead: float, complaint: str) -> None:
    site.measure(MONDAY, ahead)
    assert complaint in site.clock.trouble(5)
    assert bool(site.clock.trouble(5)) == bool(complaint)
    site.measure(MONDAY)
    assert site.clock.trouble(5) == ""


@pytest.mark.parametrize("jump", [-600, 600])
def test_nobody_is_judged_by_rows_that_another_database_clock_wrote(
    site: Site, jump: int, caplog: pytest.LogCaptureFixture
) -> None:
    site.measure(MONDAY)
    site.monotonic += 10 * SECOND
    site.measure(MONDAY + (10 + jump) * SECOND)
    assert f"jumped by {jump}.0 s" in caplog.text
    assert "just jumped" in site.clock.trouble(5, settle_seconds=75)
    assert site.clock.trouble(5) == "", "and yet the server itself is well"
    site.monotonic += 75 * SECOND
    assert site.clock.trouble(5, settle_seconds=75) == ""
