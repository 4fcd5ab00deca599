"""What a server keeps in memory of what comes in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest

from lbaas_scheduler.rpc import serving, topics
from lbaas_scheduler.rpc.transport import get_client, get_server, get_transport, service_context
from tests.agent_side import bus_conf
from tests.rig.waiting import wait_for

HOST = "server-of-test-serving"
ROOM = 30


class Slow:
    """An endpoint whose database does not answer until the door opens."""

    target = oslo_messaging.Target(version=topics.VERSION)

    def __init__(self) -> None:
        self.door = threading.Event()
        self.begun = 0
        self.done = 0
        self._lock = threading.Lock()

    def report_state(self, context: Any, state: Any) -> None:
        with self._lock:
            self.begun += 1
        self.door.wait(30)
        with self._lock:
            self.done += 1


class Site:
    def __init__(self) -> None:
        conf = bus_conf()
        transport = get_transport(conf)
        self.slow = Slow()
        self.server = get_server(transport, topics.SERVERS, HOST, [self.slow])
        self.server.start()
        self._client = get_client(transport, topics.SERVERS).prepare(server=HOST)

    def send(self, count: int) -> None:
        for _ in range(count):
            self._client.cast(service_context(), "report_state", state={"padding": "x" * 1000})

    def held(self) -> int:
        """How many messages the server has taken and not worked off."""
        return self.slow.begun - self.slow.done + self.server._work_executor._work_queue.qsize()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(serving, "MAX_WAITING", ROOM)
    made = Site()
    yield made
    made.slow.door.set()
    made.server.stop()
    made.server.wait()


def test_a_slow_database_does_not_let_messages_pile_up_in_memory_and_none_is_lost(site: Site) -> None:
    site.send(300)
    wait_for(lambda: site.held() >= ROOM, 10, "the server to be full")
    site.send(100)
    assert site.held() <= ROOM
    site.slow.door.set()
    wait_for(lambda: site.slow.done == 400, 20, "all to be worked off")


def test_what_finds_no_room_for_too_long_is_dropped_and_said(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "PATIENCE_SECONDS", 0.01)
    site.send(ROOM + 20)
    wait_for(lambda: "some are dropped" in caplog.text, 10, "the drop to be said")
    site.slow.door.set()
    wait_for(lambda: site.slow.done >= ROOM and not site.held(), 20, "the rest to be worked off")
    done = site.slow.done
    site.send(5)
    wait_for(lambda: site.slow.done >= done + 5, 10, "it to go on")
    assert caplog.text.count("some are dropped") == 1


def test_a_server_has_few_threads_unless_the_operator_says_otherwise() -> None:
    conf = bus_conf()
    get_transport(conf)
    assert conf.executor_thread_pool_size == serving.THREADS
    conf.set_override("executor_thread_pool_size", 64)
    get_transport(conf)
    assert conf.executor_thread_pool_size == 64
