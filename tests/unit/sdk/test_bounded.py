"""What blocks is left behind."""

from __future__ import annotations

import threading
import time

import pytest

from lbaas_scheduler.sdk.bounded import run_within


def test_what_ends_is_waited_for() -> None:
    done: list[int] = []
    assert run_within(time.monotonic() + 30, "quick", lambda: done.append(1))
    assert done == [1]


def test_what_blocks_is_left_behind_and_named(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()
    assert not run_within(time.monotonic(), "stuck", release.wait)
    assert "stuck did not end in time" in caplog.text
    release.set()
