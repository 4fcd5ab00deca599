"""What the library says of a broker's 406, and what becomes of it."""

from __future__ import annotations

import logging

from lbaas_scheduler.rpc.mismatches import NamesMismatches

REFUSED = "(406) PRECONDITION_FAILED - inequivalent arg"
QUEUE = (
    f"[68] AMQP server on 127.0.0.1:5672 is unreachable: Queue.declare: {REFUSED} 'x-queue-type' for queue "
    "'lbaas_scheduler_server' in vhost 'lbaas': received the value 'quorum' of type 'longstr' but current is none. "
    "Trying again in 6 seconds."
)
EXCHANGE = (
    f"Failed to declare consumer: Exchange.declare: {REFUSED} 'durable' for exchange 'lbaas_scheduler' in vhost '/': received "
    "'true' but current is 'false'"
)


def _shown(*texts: str) -> list[str]:
    names = NamesMismatches()
    records = [logging.LogRecord("rabbit", logging.INFO, "", 1, "%s", (text,), None) for text in texts]
    return [record.getMessage() for record in records if names.filter(record)]


def test_each_queue_and_exchange_is_named_once_with_what_differs() -> None:
    queue, exchange = _shown(QUEUE, "Force creating a non durable exchange.", EXCHANGE, QUEUE, EXCHANGE)
    assert "the queue 'lbaas_scheduler_server' in virtual host 'lbaas'" in queue
    assert "(x-queue-type: there none, here the value 'quorum' of type 'longstr')" in queue
    assert "the exchange 'lbaas_scheduler' in virtual host '/'" in exchange
    assert "(durable: there 'false', here 'true')" in exchange


def test_what_else_the_library_says_is_left_as_it_is() -> None:
    lines = [
        "AMQP server on 127.0.0.1:5672 is unreachable: timed out",
        "Basic.ack: (406) PRECONDITION_FAILED - unknown delivery tag 3",
    ]
    assert _shown(*lines, *lines) == lines * 2
