"""What a link does to a connection, and what a seed draws."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import pytest

from tests.functional.chaos import faults
from tests.functional.chaos.links import Link, Mode
from tests.rig.waiting import wait_for


@pytest.fixture
def heard() -> list[bytes]:
    """What the service was sent."""
    return []


@pytest.fixture
def link(heard: list[bytes]) -> Iterator[Link]:
    """To a service that sends everything back."""
    service = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_echo, args=(service, heard), daemon=True).start()
    link = Link("client to service", service.getsockname()[1])
    yield link
    link.close()
    service.close()


def _echo(service: socket.socket, heard: list[bytes]) -> None:
    with suppress(OSError):
        while True:
            near, _ = service.accept()
            threading.Thread(target=_answer, args=(near, heard), daemon=True).start()


def _answer(near: socket.socket, heard: list[bytes]) -> None:
    with near, suppress(OSError):
        while data := near.recv(1000):
            heard.append(data)
            near.sendall(data)


@pytest.fixture
def client(link: Link) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", link.port), timeout=10) as client:
        assert _asked(client, b"hello") == b"hello"
        yield client


def _asked(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return client.recv(1000)


def _connect_and_read(port: int) -> None:
    """The reset may come before the connection is reported as made, or after."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as late:
        late.recv(1)


def test_a_cut_resets_connections_and_refuses_new_ones_until_it_is_healed(link: Link, client: socket.socket) -> None:
    link.mode = Mode.CUT
    with pytest.raises(OSError, match="reset"):
        client.recv(1)
    with pytest.raises(OSError, match="reset"):
        _connect_and_read(link.port)
    assert link.broken == 2
    link.mode = Mode.OPEN
    with socket.create_connection(("127.0.0.1", link.port), timeout=10) as late:
        assert _asked(late, b"again") == b"again"


def test_a_black_hole_takes_everything_and_answers_nothing_until_it_is_healed(link: Link, client: socket.socket) -> None:
    link.mode = Mode.SILENT
    client.settimeout(0.3)
    with pytest.raises(TimeoutError):
        _asked(client, b"x")
    client.settimeout(10)
    link.mode = Mode.OPEN
    assert client.recv(1) == b"x"


def test_a_slow_link_delays_both_directions(link: Link, client: socket.socket) -> None:
    link.mode = Mode.SLOW
    began = time.monotonic()
    assert _asked(client, b"x") == b"x"
    assert time.monotonic() - began > 2 * link.SLOW_SECONDS * 0.9


@pytest.mark.parametrize("mode", [Mode.LOSES_COMMITS, Mode.LOSES_ANSWERS])
def test_a_commit_gets_a_reset_for_an_answer_and_other_statements_get_theirs(
    link: Link, client: socket.socket, heard: list[bytes], mode: Mode
) -> None:
    link.mode = mode
    assert _asked(client, b"SELECT") == b"SELECT"
    with pytest.raises(OSError, match="reset"):
        _asked(client, b"COMMIT")
    if mode is Mode.LOSES_ANSWERS:
        wait_for(lambda: b"COMMIT" in heard, 10)
    else:
        assert b"COMMIT" not in heard


def test_a_connection_that_its_client_closed_is_closed_on_the_other_side(link: Link, client: socket.socket) -> None:
    client.close()
    wait_for(lambda: not link.open, 10)
    assert link.broken == 0


KINDS = {kind: ["one", "two", "three"] for kind in faults.WEIGHTS}


def test_the_same_seed_draws_the_same_faults_and_another_seed_others() -> None:
    first = faults.draw("1", 300, KINDS, ["broker"])
    assert first == faults.draw("1", 300, KINDS, ["broker"])
    assert first != faults.draw("2", 300, KINDS, ["broker"])


def test_no_target_is_hit_by_two_faults_at_once_and_all_end_with_the_run() -> None:
    drawn = faults.draw("3", 300, KINDS, ["broker"])
    assert len(drawn) > 50
    for target in ("one", "two", "three", "broker"):
        hits = [fault for fault in drawn if fault.target == target]
        assert all(one.at + one.lasts <= other.at for one, other in pairwise(hits))
    assert max(fault.at + fault.lasts for fault in drawn) <= 300 + faults.SHORTEST + 0.2


def test_every_kind_of_fault_is_drawn_in_a_long_run() -> None:
    assert {fault.kind for fault in faults.draw("4", 1000, KINDS, ["broker"])} == set(faults.WEIGHTS)
