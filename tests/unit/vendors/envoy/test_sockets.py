"""Listening sockets, as the kernel lists them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lbaas_scheduler.vendors.envoy.sockets import listening


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
    (tmp_path / "tcp").write_text("  sl  local_address rem_address   st\n")
    assert listening(tmp_path) == set()
