"""Listening sockets, as the kernel lists them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lbaas_scheduler.sdk.listening import in_use, listening, why_not


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_socket_is_listed_while_it_listens_and_not_when_it_is_only_bound(family: int, address: str) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip(f"this host has no {address}")
        endpoint = (address, server.getsockname()[1])
        assert endpoint not in listening()
        server.listen()
        assert endpoint in listening()
    assert endpoint not in listening()


def test_a_kernel_without_ipv6_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text("  sl  local_address rem_address   st\n")
    assert listening(proc=tmp_path) == set()


def test_a_process_is_asked_for_its_own_sockets_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as other:
        endpoint = server.getsockname()
        assert endpoint in listening([os.getpid()])
        assert listening([other.pid]) == set()
        other.communicate(b"\n")
    assert listening([other.pid]) == set(), "it has ended"


@pytest.mark.parametrize(("theirs", "shared", "free"), [(True, True, True), (True, False, False), (False, True, False)])
def test_an_address_is_shared_only_where_both_sides_want_it(theirs: bool, shared: bool, free: bool) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, theirs)
        server.bind(("127.0.0.1", 0))
        server.listen()
        reason = why_not(server.getsockname(), shared)
    assert (reason is None) is free
    assert in_use(reason) is not free


def test_an_address_of_somebody_else_is_not_in_use() -> None:
    reason = why_not(("203.0.113.9", 80))
    assert reason == "203.0.113.9 port 80 is not an address of the device."
    assert not in_use(reason)
