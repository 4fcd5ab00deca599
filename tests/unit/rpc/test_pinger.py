"""Whether a server answers, asked in bounded time."""

from __future__ import annotations

import threading
import time

import oslo_messaging
import pytest

from lbaas_scheduler.rpc import topics
from lbaas_scheduler.rpc.pinger import Pinger
from lbaas_scheduler.rpc.transport import get_server, get_transport
from tests.agent_side import bus_conf
from tests.rig.waiting import wait_for


class Answers:
    target = oslo_messaging.Target(version=topics.VERSION)

    def ping(self, context: object) -> None:
        """Here."""


class Hangs:
    """A client whose first connection is never made, until the end of the test."""

    def __init__(self) -> None:
        self.end = threading.Event()

    def prepare(self, timeout: float) -> Hangs:
        return self

    def call(self, *_: object) -> None:
        self.end.wait(30)


def test_a_server_that_is_there_answers() -> None:
    transport = get_transport(bus_conf())
    server = get_server(transport, topics.SERVERS, "server-1", [Answers()])
    server.start()
    try:
        Pinger(transport).ping(5)
    finally:
        server.stop()
        server.wait()


def test_nobody_there_is_a_time_out() -> None:
    with pytest.raises(oslo_messaging.MessagingTimeout):
        Pinger(get_transport(bus_conf())).ping(0.1)


def test_a_ping_ends_after_its_time_out_though_the_first_connection_was_never_made() -> None:
    pinger, hangs = Pinger(get_transport(bus_conf())), Hangs()
    pinger._client = hangs  # type: ignore[assignment]
    for _ in range(3):
        began = time.monotonic()
        with pytest.raises(oslo_messaging.MessagingTimeout):
            pinger.ping(0.1)
        assert time.monotonic() - began < 2
    assert sum(thread.name == "ping" for thread in threading.enumerate()) == 1, "questions that hang do not pile up"
    hangs.end.set()  # and it answers
    wait_for(lambda: not any(thread.name == "ping" for thread in threading.enumerate()), 5, "the question to end")
    pinger.ping(0.1)
