"""What one attribute does to real traffic, the same on every vendor: a table of behaviours, each with a test."""

from __future__ import annotations

import http.client
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import ForwardedFor, Member, MonitorType, Protocol, Vip
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import deployment, member, monitor, vip, with_pool
from lbaas_scheduler.sdk.conformance.traffic import DEADLINE_SECONDS, wait_until
from lbaas_scheduler.sdk.drivers import AgentDriver
from lbaas_scheduler.sdk.handlers import DeviceHandler

HEADER_BYTES = 32_000
LOOPS = 50
"""Connections of the device in which a loop runs that nobody could know of."""


class Recorder:
    """An HTTP server that keeps what it was asked, line by line as it came, and answers after ``delay_seconds``."""

    def __init__(self, address: str) -> None:
        self.requests: list[list[str]] = []
        self.delay_seconds = 0.0
        self.answer_header = ""
        recorder = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                recorder.serve(self)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request: object, client_address: object) -> None:
                """Whoever hangs up is no news."""

        self._server = Server((address, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        host, port = self._server.server_address[:2]
        self.address = str(host)
        self.port = int(port)

    def serve(self, connection: socketserver.StreamRequestHandler) -> None:
        lines: list[str] = []
        while line := connection.rfile.readline().decode("latin-1").rstrip("\r\n"):
            lines.append(line)
        if not lines:
            return
        self.requests.append(lines)
        time.sleep(self.delay_seconds)
        extra = f"X-Answer: {self.answer_header}\r\n" if self.answer_header else ""
        connection.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{extra}Connection: close\r\n\r\nok".encode())

    def member(self, **changes: object) -> Member:
        return member(self.address, self.port, **changes)

    def headers(self, name: str) -> list[str]:
        """The values of each line of that header in the last request."""
        lines = (line.partition(":") for line in self.requests[-1][1:])
        return [value.strip() for key, _, value in lines if key.lower() == name.lower()]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Detour:
    """Takes connections on to a VIP: a way back to it that no scheduler and no driver can know of. It ends by :meth:`close`."""

    def __init__(self, address: str) -> None:
        self.taken = 0
        self.goal: tuple[str, int] | None = None
        self._open: list[socket.socket] = []
        self._server = socket.create_server((address, 0), backlog=1024)
        self.port = int(self._server.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self.taken += 1
            try:
                onward = socket.create_connection(self.goal, timeout=5)  # type: ignore[arg-type]
            except OSError:
                client.close()
                continue
            self._open += [client, onward]
            threading.Thread(target=_pass, args=(client, onward), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()
        for one in self._open:
            one.close()


def _pass(source: socket.socket, goal: socket.socket) -> None:
    try:
        source.settimeout(60)
        while data := source.recv(65536):
            goal.sendall(data)
    except OSError:
        pass
    finally:
        goal.close()


def ask(document: Vip, headers: list[tuple[str, str]] | None = None) -> http.client.HTTPResponse:
    """One GET through the VIP, with headers of which one may come several times. The answer's body is read."""
    with closing(http.client.HTTPConnection(document.address, document.protocol_port, timeout=DEADLINE_SECONDS)) as connection:
        connection.putrequest("GET", "/")
        for name, value in [("Connection", "close"), *(headers or [])]:
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        response.read()
        return response


class BehaviourConformance:
    """Needs the fixtures ``make_driver``, ``handler``, ``device``; the device carries traffic of this host."""

    @pytest.fixture
    def address(self) -> str:
        """An address that VIPs may take and that this host reaches; the suite picks free ports on it."""
        return documents.LOOPBACK

    @pytest.fixture
    def backend_address(self) -> str:
        """An address of this host that the device reaches."""
        return documents.LOOPBACK

    @pytest.fixture
    def make_impatient(self) -> Callable[[float], AgentDriver] | None:
        """Makes a driver whose devices give a silent client, or member, up after so many seconds. Default: cannot be done."""
        return None

    @pytest.fixture
    def make_small(self) -> Callable[[int], AgentDriver] | None:
        """Makes a driver whose devices take so many connections at once, and one VIP half of them. Default: cannot be done."""
        return None

    @pytest.fixture
    def driver(self, make_driver: Callable[[], AgentDriver], device: Device) -> Iterator[AgentDriver]:
        driver = make_driver()
        yield driver
        driver.remove(device, list(driver.list_deployed(device)))
        driver.stop()

    @pytest.fixture
    def recorder(self, backend_address: str) -> Iterator[Recorder]:
        with closing(Recorder(backend_address)) as server:
            yield server

    @pytest.fixture
    def web(self, address: str, recorder: Recorder) -> Vip:
        """An HTTP VIP over the recorder, without a monitor."""
        return vip(address, protocol=Protocol.HTTP, members=(recorder.member(),))

    def test_members_get_the_clients_address_in_one_line(
        self, driver: AgentDriver, device: Device, web: Vip, recorder: Recorder
    ) -> None:
        apply(driver, device, web)
        ask(web)
        assert recorder.headers("X-Forwarded-For") == [documents.LOOPBACK]

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [(ForwardedFor.REPLACE, "127.0.0.1"), (ForwardedFor.APPEND, "192.0.2.1, 192.0.2.2, 192.0.2.3, 127.0.0.1")],
    )
    def test_a_forged_client_address_is_replaced_or_stands_before_the_true_one(
        self, driver: AgentDriver, device: Device, web: Vip, recorder: Recorder, kind: ForwardedFor, expected: str
    ) -> None:
        apply(driver, device, replace(web, forwarded_for=kind))
        forged = [("X-Forwarded-For", "192.0.2.1, 192.0.2.2"), ("x-forwarded-for", "192.0.2.3")]
        ask(web, forged)
        (line,) = recorder.headers("X-Forwarded-For")
        assert line.replace(", ", ",").split(",") == expected.split(", "), line

    def test_headers_of_32_kilobytes_pass_in_both_directions(
        self, driver: AgentDriver, device: Device, web: Vip, recorder: Recorder
    ) -> None:
        apply(driver, device, web)
        recorder.answer_header = "a" * HEADER_BYTES
        response = ask(web, [("Cookie", f"big={'c' * HEADER_BYTES}")])
        assert (response.status, response.getheader("X-Answer")) == (200, recorder.answer_header)
        assert recorder.headers("Cookie") == [f"big={'c' * HEADER_BYTES}"]

    def test_a_connection_limit_of_0_lets_nobody_in(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, web: Vip, recorder: Recorder
    ) -> None:
        if traits.CONNECTION_LIMIT not in handler.traits:
            pytest.skip("the handler does not declare CONNECTION_LIMIT")
        apply(driver, device, replace(web, connection_limit=0))
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(web)
        assert recorder.requests == []
        apply(driver, device, replace(web, connection_limit=-1), revision=2)
        assert ask(web).status == 200

    @pytest.mark.parametrize("kind", [MonitorType.HTTP])
    def test_a_monitor_asks_as_browsers_do_with_the_members_address_as_host(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, web: Vip, recorder: Recorder, kind: MonitorType
    ) -> None:
        if f"MONITOR_{kind}" not in handler.traits:
            pytest.skip(f"the handler does not declare MONITOR_{kind}")
        check = monitor(kind, url_path="/health?deep=%20yes", http_method="OPTIONS")
        apply(driver, device, with_pool(web, health_monitors=(check,)))
        wait_until(lambda: bool(recorder.requests))
        assert recorder.requests[-1][0] == "OPTIONS /health?deep=%20yes HTTP/1.1"
        assert recorder.headers("Host") == [f"{recorder.address}:{recorder.port}"]

    def test_a_member_slower_than_its_monitors_timeout_is_down(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, web: Vip, recorder: Recorder
    ) -> None:
        """However long the delay and the time for a connection are: never does it count as up in between."""
        if traits.MONITOR_HTTP not in handler.traits:
            pytest.skip("the handler does not declare MONITOR_HTTP")
        recorder.delay_seconds = 2.2
        (slow,) = web.pool.members
        document = with_pool(web, health_monitors=(monitor(MonitorType.HTTP, delay=3, timeout=1, max_retries=1),))
        apply(driver, device, document)

        def up() -> bool | None:
            return driver.read_stats(device)[web.id].members[slow.id].up

        wait_until(lambda: up() is False)
        seen = []
        for _ in range(3):
            asked = len(recorder.requests)
            wait_until(lambda asked=asked: len(recorder.requests) > asked)  # type: ignore[misc]
            seen.append(up())
        assert seen == [False] * 3
        recorder.delay_seconds = 0.0
        wait_until(lambda: up() is True)

    def test_a_member_that_does_not_answer_in_time_is_given_up(
        self, make_impatient: Callable[[float], AgentDriver] | None, device: Device, web: Vip, recorder: Recorder
    ) -> None:
        if make_impatient is None:
            pytest.skip("the vendor's time-outs cannot be set")
        with driving(make_impatient(1), device) as driver:
            apply(driver, device, web)
            recorder.delay_seconds = 4
            started = time.monotonic()
            assert ask(web).status == 504
            assert time.monotonic() - started < 4

    def test_a_silent_connection_is_closed(
        self, make_impatient: Callable[[float], AgentDriver] | None, device: Device, web: Vip, address: str
    ) -> None:
        if make_impatient is None:
            pytest.skip("the vendor's time-outs cannot be set")
        with closing(socket.create_server((address, 0))) as silent, driving(make_impatient(1), device) as driver:
            document = vip(address, members=(member(address, silent.getsockname()[1]),))
            apply(driver, device, document)
            with socket.create_connection((document.address, document.protocol_port), timeout=DEADLINE_SECONDS) as client:
                assert client.recv(1) == b""

    @pytest.mark.parametrize("protocol", [Protocol.TCP, Protocol.HTTP])
    def test_a_loop_that_nobody_could_know_of_takes_its_vips_share_and_no_more(
        self,
        make_small: Callable[[int], AgentDriver] | None,
        device: Device,
        web: Vip,
        address: str,
        backend_address: str,
        protocol: Protocol,
    ) -> None:
        if make_small is None:
            pytest.skip("the vendor's devices cannot be made small")
        with closing(Detour(backend_address)) as detour, driving(make_small(LOOPS), device) as driver:
            looping = vip(address, protocol=protocol, members=(member(backend_address, detour.port),))
            detour.goal = looping.address, looping.protocol_port
            apply(driver, device, looping, web)
            with socket.create_connection(detour.goal, timeout=DEADLINE_SECONDS) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                wait_until(lambda: detour.taken >= LOOPS // 2 - 1)
                assert {ask(web).status for _ in range(10)} == {200}
            assert ask(web).status == 200
            assert driver.read_stats(device)[looping.id].active_connections <= LOOPS // 2

    def test_a_member_that_is_the_vip_itself_fails_alone(
        self, driver: AgentDriver, device: Device, web: Vip, recorder: Recorder
    ) -> None:
        itself = member(web.address, web.protocol_port)
        document = with_pool(web, members=(*web.pool.members, itself))
        (result,) = driver.apply(device, [deployment(document)])
        assert (result.error, set(result.object_errors)) == (None, {itself.id})
        assert [ask(document).status for _ in range(4)] == [200] * 4
        assert len(recorder.requests) == 4

    def test_a_monitor_or_member_that_cannot_be_is_reported_and_the_rest_applied(
        self, driver: AgentDriver, device: Device, address: str
    ) -> None:
        """Whatever it is that the API should have refused: it must not keep the VIP from its next change."""
        parts = (member("0.0.0.0"), monitor(MonitorType.HTTP, url_path="no path"))  # noqa: S104
        document = vip(address, protocol=Protocol.HTTP, members=(member(), parts[0]), monitors=(parts[1],))
        (result,) = driver.apply(device, [deployment(document)])
        assert (result.error, set(result.object_errors)) == (None, {part.id for part in parts})

    @pytest.mark.parametrize("together", [True, False])
    def test_vips_of_one_device_that_lead_to_each_other_are_cut_apart(
        self, driver: AgentDriver, device: Device, web: Vip, together: bool
    ) -> None:
        other = vip(web.address, protocol=Protocol.HTTP, members=(member(web.address, web.protocol_port),))
        front = with_pool(web, members=(*web.pool.members, member(other.address, other.protocol_port)))
        wanted = [deployment(front), deployment(other)]
        results = driver.apply(device, wanted) if together else [driver.apply(device, [item])[0] for item in wanted]
        assert [item.error for item in results] == [None, None]
        assert [set(item.object_errors) for item in results] == [set(), {other.pool.members[0].id}]
        assert (ask(other).status, ask(front).status in (200, 503)) == (503, True)


def apply(driver: AgentDriver, device: Device, *vips: Vip, revision: int = 1) -> None:
    """All must succeed, without any reservation."""
    results = driver.apply(device, [deployment(item, 1, revision) for item in vips])
    assert [(item.error, dict(item.object_errors)) for item in results] == [(None, {})] * len(vips)


@contextmanager
def driving(driver: AgentDriver, device: Device) -> Iterator[AgentDriver]:
    """The driver; afterwards nothing is left on the device."""
    try:
        yield driver
    finally:
        driver.remove(device, list(driver.list_deployed(device)))
        driver.stop()
