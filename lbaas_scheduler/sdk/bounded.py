"""Calls that may block for ever, and what goes on all the same."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

LOG = logging.getLogger(__name__)


def run_within(deadline: float, name: str, part: Callable[[], object]) -> bool:
    """Run ``part`` in a thread and wait for it until ``deadline`` at most; a call of a library or a vendor may block for ever.

    :param deadline: by :func:`time.monotonic`.
    :param name: of the thread, and in the log when it is left behind.
    :returns: whether it ended.
    """
    thread = threading.Thread(target=part, name=name, daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    if thread.is_alive():
        LOG.warning("%s did not end in time and is left behind", name)
    return not thread.is_alive()
