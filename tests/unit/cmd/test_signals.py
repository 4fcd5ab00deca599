"""Signals end a process whichever of its threads the kernel hands them to."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from lbaas_scheduler.cmd import signals as signals_module
from lbaas_scheduler.cmd.signals import CAUGHT, Signals
from tests.rig.waiting import wait_for


@pytest.fixture
def signals() -> Iterator[Signals]:
    before = {number: signal.getsignal(number) for number in CAUGHT}
    yield Signals()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_that_another_thread_was_handed_ends_the_wait(signals: Signals) -> None:
    def be_handed_it() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        wait_for(_main_thread_waits, 10, "the main thread to wait for signals")
        os.kill(os.getpid(), signal.SIGTERM)

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        thread = threading.Thread(target=be_handed_it)
        thread.start()
        signals.wait_for_end(cfg.ConfigOpts())
        thread.join()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def _main_thread_waits() -> bool:
    main = threading.main_thread().ident
    assert main is not None
    return sys._current_frames()[main].f_code.co_filename == signals_module.__file__


def test_a_signal_that_came_before_is_not_lost(signals: Signals) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    signals.wait_for_end(cfg.ConfigOpts())
