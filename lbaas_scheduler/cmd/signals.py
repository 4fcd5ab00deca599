"""What a process does with signals: SIGTERM and SIGINT end it in order, SIGHUP lets it read its options again."""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading

from oslo_config import cfg

from lbaas_scheduler.conf import loading
from lbaas_scheduler.errors import ConfigurationError

LOG = logging.getLogger(__name__)

LOOK_SECONDS = 0.5

LEAVE_SECONDS = 2.0
"""How long the interpreter may take to end by itself: it waits for every thread that is no daemon."""

CAUGHT = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """Catches signals from its making on: one that comes while the process still starts ends it in order, only later."""

    def __init__(self) -> None:
        self._came: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in CAUGHT:
            signal.signal(number, lambda number, _frame: self._came.put(number))

    def wait_for_end(self, conf: cfg.ConfigOpts) -> None:
        """Return at the first SIGTERM or SIGINT; until then, read mutable options again at each SIGHUP."""
        while (number := self._next()) == signal.SIGHUP:
            _reread(conf)
        LOG.info("Got %s", signal.Signals(number).name)

    def _next(self) -> int:
        """Awake now and then: a handler runs in this thread only, and the kernel may have woken another one for the signal."""
        while True:
            try:
                return self._came.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue


def leave_soon(seconds: float = LEAVE_SECONDS) -> None:
    """All that had to be done is done: end the process by then with exit code 0, whoever still waits.

    oslo.messaging answers a caller again and again for as long as the broker is away, in a thread that the interpreter waits for
    before it ends.
    """
    timer = threading.Timer(seconds, _leave)
    timer.daemon = True
    timer.start()


def _leave() -> None:
    waiting = [thread.name for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    LOG.warning("Ending, though these threads still wait: %s", ", ".join(waiting))
    logging.shutdown()
    os._exit(0)


def _reread(conf: cfg.ConfigOpts) -> None:
    try:
        # Mutating checks nothing: a wrong value would show only when it is used, again and again.
        files = [f"--config-file={path}" for path in conf.config_file] + [f"--config-dir={path}" for path in conf.config_dir]
        loading.read(cfg.ConfigOpts(), files, conf.prog)
    except ConfigurationError as error:
        LOG.error("The configuration stays as it was: %s", error.message)
    else:
        LOG.info("Read the configuration again, %d options changed", len(conf.mutate_config_files()))
