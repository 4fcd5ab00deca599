"""What a tenant's words do to real traffic through Envoy, beyond the conformance suite."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Method, MonitorType, Persistence, Protocol, Vip
from lbaas_scheduler.sdk.conformance.documents import (
    LOOPBACK,
    deployment,
    free_port,
    member,
    monitor,
    persistence,
    vip,
    with_pool,
)
from lbaas_scheduler.sdk.conformance.traffic import Backend, send, spread, wait_until
from lbaas_scheduler.vendors.envoy.driver import EnvoyDriver


@pytest.fixture
def web(backends: list[Backend]) -> Vip:
    return vip(protocol=Protocol.HTTP, members=tuple(server.member() for server in backends))


class Echo:
    """A TCP server that sends back what it gets, on as many connections as are opened."""

    def __init__(self) -> None:
        self._server = socket.create_server((LOOPBACK, 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(client,), daemon=True).start()

    def _echo(self, client: socket.socket) -> None:
        with client:
            while data := client.recv(4096):
                client.sendall(data)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    with closing(Echo()) as server:
        yield server


def talk(client: socket.socket, text: bytes = b"hello") -> bytes:
    client.settimeout(10)
    client.sendall(text)
    return client.recv(4096)


def connect(document: Vip) -> socket.socket:
    return socket.create_connection((document.address, document.protocol_port), timeout=10)


def test_an_open_connection_survives_every_change_of_the_pool(driver: EnvoyDriver, device: Device, echo: Echo) -> None:
    kept = member(port=echo.port)
    document = vip(members=(kept,))
    driver.apply(device, [deployment(document)])
    with connect(document) as client:
        assert talk(client) == b"hello"
        for revision, changes in enumerate(
            (
                {"members": (kept, member())},
                {"members": (replace(kept, weight=9),)},
                {"lb_method": Method.LEAST_CONNECTIONS},
                {"lb_method": Method.SOURCE_IP},
                {"health_monitors": (monitor(),)},
                {"members": (replace(kept, weight=0),)},
            ),
            2,
        ):
            assert driver.apply(device, [deployment(with_pool(document, **changes), 1, revision)])[0].ok
            assert talk(client) == b"hello", changes
        driver.apply(device, [deployment(vip())])
        assert talk(client) == b"hello"


def test_a_kept_alive_http_connection_survives_changes_of_members(driver: EnvoyDriver, device: Device, web: Vip) -> None:
    driver.apply(device, [deployment(web)])
    client = http.client.HTTPConnection(web.address, web.protocol_port, timeout=10)
    with closing(client):
        client.request("GET", "/")
        client.getresponse().read()
        kept = client.sock
        for revision in range(2, 8):
            members = web.pool.members[: 1 + revision % 3]
            driver.apply(device, [deployment(with_pool(web, members=members), 1, revision)])
            client.request("GET", "/")
            assert client.getresponse().read().decode() in {item.id for item in members}
            assert client.sock is kept


def test_connections_beyond_the_limit_are_closed(driver: EnvoyDriver, device: Device, echo: Echo) -> None:
    document = vip(members=(member(port=echo.port),), connection_limit=2)
    driver.apply(device, [deployment(document)])
    with connect(document) as one, connect(document) as two:
        assert talk(one) == talk(two) == b"hello"
        with connect(document) as three, pytest.raises((ConnectionError, AssertionError)):
            assert talk(three)
    driver.apply(device, [deployment(replace(document, connection_limit=-1), 1, 2)])
    with connect(document) as one, connect(document) as two, connect(document) as three:
        assert {talk(client) for client in (one, two, three)} == {b"hello"}


def test_several_monitors_must_all_agree(driver: EnvoyDriver, device: Device, web: Vip, backends: list[Backend]) -> None:
    both = (monitor(MonitorType.TCP), monitor(MonitorType.HTTP))
    driver.apply(device, [deployment(with_pool(web, health_monitors=both))])
    assert {health.up for health in driver.read_stats(device)[web.id].members.values()} == {True}
    backends[0].healthy = False
    wait_until(lambda: driver.read_stats(device)[web.id].members[backends[0].name].up is False)
    assert backends[0].name not in spread(send, web, 12)
    driver.apply(device, [deployment(with_pool(web, health_monitors=both[:1]), 1, 2)])
    assert driver.read_stats(device)[web.id].members[backends[0].name].up is True


def test_max_retries_failures_in_a_row_are_needed(driver: EnvoyDriver, device: Device, web: Vip, backends: list[Backend]) -> None:
    patient = monitor(MonitorType.HTTP, delay=60, timeout=1, max_retries=10)
    driver.apply(device, [deployment(with_pool(web, health_monitors=(patient,)))])
    backends[0].healthy = False
    assert {health.up for health in driver.read_stats(device)[web.id].members.values()} == {True}


def test_an_https_monitor_speaks_tls_and_trusts_any_certificate(
    driver: EnvoyDriver, device: Device, tmp_path: Path, backends: list[Backend]
) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=nobody"),
            *("-out", str(certificate), "-keyout", str(key)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    backends[0]._server.socket = context.wrap_socket(backends[0]._server.socket, server_side=True)
    members = tuple(server.member() for server in backends[:2])
    document = vip(protocol=Protocol.HTTPS, members=members, monitors=(monitor(MonitorType.HTTPS),))
    driver.apply(device, [deployment(document)])
    health = driver.read_stats(device)[document.id].members
    assert (health[members[0].id].up, health[members[1].id].up) == (True, False)


def test_weight_0_keeps_those_whom_a_cookie_ties_to_the_member(driver: EnvoyDriver, device: Device, web: Vip) -> None:
    sticky = replace(web, session_persistence=persistence(Persistence.HTTP_COOKIE))
    driver.apply(device, [deployment(sticky)])
    first = send(sticky)
    cookie = {"Cookie": first.headers["set-cookie"].partition(";")[0]}
    members = tuple(replace(item, weight=0 if item.id == first.body else 1) for item in web.pool.members)
    driver.apply(device, [deployment(with_pool(sticky, members=members), 1, 2)])
    assert {send(sticky, cookie).body for _ in range(10)} == {first.body}
    assert first.body not in spread(send, sticky, 10)
    members = tuple(item for item in web.pool.members if item.id != first.body)
    driver.apply(device, [deployment(with_pool(sticky, members=members), 1, 3)])
    moved = send(sticky, cookie)
    assert (moved.status, moved.body != first.body) == (200, True)


def test_least_connections_levels_the_open_ones(driver: EnvoyDriver, device: Device, echo: Echo) -> None:
    with closing(Echo()) as idle:
        document = vip(members=(member(port=echo.port), member(port=idle.port)), method=Method.LEAST_CONNECTIONS)
        driver.apply(device, [deployment(document)])
        clients = []
        for _ in range(10):
            clients.append(connect(document))
            # A connection counts once it is open on both sides.
            talk(clients[-1])
        assert [_established(port) for port in (echo.port, idle.port)] == [5, 5]
        for client in clients:
            client.close()


def _established(port: int) -> int:
    """How many connections the server on ``port`` holds."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(1 for row in rows if row[3] == "01" and int(row[1].split(":")[1], 16) == port)


def test_the_member_sees_the_clients_address_and_an_unchanged_request(driver: EnvoyDriver, device: Device) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        document = vip(protocol=Protocol.HTTP, members=(member(port=server.getsockname()[1]),))
        driver.apply(device, [deployment(document)])
        with connect(document) as client:
            client.sendall(b"GET /a//b/../c%2fd?x=%41 HTTP/1.1\r\nHost: Shop.example\r\nX-MiXeD: 1\r\n\r\n")
            server.settimeout(10)
            upstream, _ = server.accept()
            with upstream:
                upstream.settimeout(10)
                request = upstream.recv(65536).decode()
    assert request.startswith("GET /a//b/../c%2fd?x=%41 HTTP/1.1\r\n")
    assert "Host: Shop.example\r\n" in request
    assert "X-MiXeD: 1\r\n" in request
    # For a client on loopback Envoy writes an address of the host.
    assert "\r\nx-forwarded-for: " in request.lower()
    assert "x-envoy" not in request.lower()
    assert "x-request-id" not in request.lower()


def test_an_old_client_without_a_host_header_is_served(driver: EnvoyDriver, device: Device, web: Vip) -> None:
    driver.apply(device, [deployment(web)])
    with connect(web) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        client.settimeout(10)
        assert client.recv(65536).startswith(b"HTTP/1.0 200")


def test_ipv6_addresses_and_members_serve(driver: EnvoyDriver, device: Device) -> None:
    if not _has_ipv6():
        pytest.skip("this host has no ::1")
    document = vip("::1", protocol=Protocol.TCP, members=(member("::1", free_port("::1")),), monitors=(monitor(),))
    (result,) = driver.apply(device, [deployment(document)])
    assert result.ok
    assert driver.read_stats(device)[document.id].members[document.pool.members[0].id].up is False


def _has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


def test_several_workers_serve_and_change_alike(driver: EnvoyDriver, device: Device, web: Vip) -> None:
    wide = replace(device, extra={"concurrency": 3})
    driver.apply(wide, [deployment(web)])
    for revision in range(2, 8):
        only = web.pool.members[revision % 3]
        driver.apply(wide, [deployment(with_pool(web, members=(only,)), 1, revision)])
        assert set(spread(send, web, 6)) == {only.id}
    driver.apply(wide, [deployment(replace(web, admin_state_up=False), 1, 9)])
    with pytest.raises(ConnectionRefusedError):
        send(web)


NON_ROOT = """
    import os, tempfile
    from pathlib import Path
    from oslo_config import cfg
    from lbaas_scheduler.domain.devices import Device
    from lbaas_scheduler.domain.loadbalancers import Protocol
    from lbaas_scheduler.sdk.conformance.documents import LOOPBACK, deployment, new_id, vip
    from lbaas_scheduler.sdk.conformance.traffic import Backend, send
    from lbaas_scheduler.vendors.envoy.driver import EnvoyDriver

    # Loaded late otherwise, when a Python in somebody's home is out of reach.
    "x".encode("idna")
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    conf = cfg.ConfigOpts()
    EnvoyDriver.register_opts(conf)
    conf([])
    with tempfile.TemporaryDirectory() as folder:
        conf.set_override("state_path", folder, group="envoy")
        driver, device = EnvoyDriver(conf), Device(new_id(), "lab", "LoadBalancer", "envoy")
        web = vip(protocol=Protocol.HTTP, members=(Backend("backend", LOOPBACK).member(),))
        try:
            print(driver.apply(device, [deployment(web)])[0].error, send(web).body)
            print(driver.remove(device, [web.id])[0].removed, os.listdir(folder))
        finally:
            driver.purge(device.id)
"""


def test_no_root_is_needed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(NON_ROOT)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.splitlines(), done.stderr) == (["None backend", "True []"], "")
