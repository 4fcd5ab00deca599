"""For how long nobody has answered."""

from __future__ import annotations

import contextlib

import pytest

from lbaas_scheduler.sdk import silence
from lbaas_scheduler.sdk.silence import Silence


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(silence.time, "monotonic", lambda: now[0])
    return now


def ask(quiet: Silence, error: Exception | None = None, seconds: float = 0.0, clock: list[float] | None = None) -> None:
    """A question that takes so long, and is answered unless it ends with an error."""
    with contextlib.suppress(Exception), quiet.asking():
        if clock is not None:
            clock[0] += seconds
        if error is not None:
            raise error


def test_a_silence_lasts_from_the_first_unanswered_question_to_the_next_answer(clock: list[float]) -> None:
    quiet = Silence(10, TimeoutError)
    ask(quiet, TimeoutError())
    clock[0] += 6
    ask(quiet, TimeoutError())
    assert not quiet.too_long
    clock[0] += 4
    assert quiet.too_long
    ask(quiet)
    assert not quiet.too_long


def test_the_time_that_a_question_waited_for_its_answer_counts(clock: list[float]) -> None:
    quiet = Silence(10, TimeoutError)
    ask(quiet, TimeoutError(), 10, clock)
    assert quiet.too_long


def test_other_errors_begin_no_silence_and_one_may_be_allowed_for_ever(clock: list[float]) -> None:
    quiet, patient = Silence(10, TimeoutError), Silence(0, TimeoutError)
    ask(quiet, ValueError())
    ask(patient, TimeoutError())
    clock[0] += 1e6
    assert not quiet.too_long
    assert not patient.too_long
