"""A broker that has a queue or an exchange with other settings than are asked for (AMQP's 406, PRECONDITION_FAILED).

oslo.messaging takes it for a fault of the network: it tries again for ever, and says every few seconds that the broker cannot be
reached. Here it is named once as what it is.
"""

from __future__ import annotations

import logging
import re
import threading

LOGGER = "oslo.messaging._drivers.impl_rabbit"
"""Where the library says so."""

_MARK = "PRECONDITION_FAILED"
_ECHOES = ("Force creating a non durable exchange", "Retrying to declare the exchange")
"""What the library tries then, each time anew."""

_FACTS = re.compile(
    r"inequivalent arg '(?P<setting>[^']+)' for (?P<kind>exchange|queue) '(?P<name>[^']+)' in vhost '(?P<vhost>[^']*)': "
    r"received (?P<ours>.+?) but current is (?P<theirs>.+?)(?:\.? Trying again| \(retrying|, class|\.?$)",
    re.DOTALL,
)
_TEXT = (
    "RabbitMQ has the {kind} '{name}' in virtual host '{vhost}' with other settings than this process asks for ({setting}: there "
    "{theirs}, here {ours}). It can use the bus once the options of all processes are alike ([oslo_messaging_rabbit] "
    "rabbit_quorum_queue, amqp_durable_queues, ...) and the virtual host is made anew: see 'Another type of queues' in the guide"
)


def mismatch_of(error: Exception) -> str:
    """What differs, if that is what an error is about, else ""."""
    found = _FACTS.search(str(error))
    return "" if found is None else f"the settings of the {found['kind']} '{found['name']}' are others there"


class NamesMismatches(logging.Filter):
    """Turns the first line about each queue or exchange into one that says what is wrong, and drops all that follow."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._told: set[tuple[str, str]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if any(echo in text for echo in _ECHOES):
            return False
        if _MARK not in text or (found := _FACTS.search(text)) is None:
            return True
        with self._lock:
            fact = (found["kind"], found["name"])
            if fact in self._told:
                return False
            self._told.add(fact)
        record.msg, record.args, record.exc_info, record.exc_text = _TEXT.format(**found.groupdict()), (), None, None
        record.levelno, record.levelname = logging.ERROR, "ERROR"
        return True


def name_mismatches() -> None:
    """Have the process's log say so. May be called twice."""
    logger = logging.getLogger(LOGGER)
    if not any(isinstance(it, NamesMismatches) for it in logger.filters):
        logger.addFilter(NamesMismatches())
