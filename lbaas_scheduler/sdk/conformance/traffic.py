"""What tenants notice: tests that send real requests through the device."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lbaas_scheduler.domain import traits
from lbaas_scheduler.domain.devices import Device
from lbaas_scheduler.domain.loadbalancers import Member, Method, MonitorType, Persistence, Protocol, Vip
from lbaas_scheduler.sdk.conformance import documents
from lbaas_scheduler.sdk.conformance.documents import deployment, member, monitor, vip, with_pool
from lbaas_scheduler.sdk.drivers import AgentDriver
from lbaas_scheduler.sdk.handlers import DeviceHandler

DEADLINE_SECONDS = 20.0
CONNECTIONS = 50
CHANGES = 20
THINKING_SECONDS = 0.5
"""How long a member thinks under load: every change then meets requests in flight, and the test does not load the host."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back through a VIP. ``body`` is the name of the backend that answered."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


Sender = Callable[..., Reply]
"""``send(vip, headers=None) -> Reply``; raises OSError when the VIP does not accept the connection."""


class Backend:
    """An HTTP server that answers with its name. ``healthy`` false: it answers 500. ``delay_seconds`` = how long it thinks."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.healthy = True
        self.delay_seconds = 0.0
        self._server = _Server((address, 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def member(self, **changes: object) -> Member:
        address, port = self._server.server_address[:2]
        return member(str(address), int(port), id=self.name, **changes)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # The default of 5 would let the kernel drop connections of the load test: a failure of ours, not of the device.
    request_queue_size = 256


def _handler(backend: Backend) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            time.sleep(backend.delay_seconds)
            body = backend.name.encode()
            self.send_response(200 if backend.healthy else 500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    return Handler


def send(document: Vip, headers: Mapping[str, str] | None = None) -> Reply:
    """One GET through the VIP on a connection of its own."""
    connection = http.client.HTTPConnection(document.address, document.protocol_port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("GET", "/", headers={"Connection": "close", **(headers or {})})
        response = connection.getresponse()
        return Reply(response.status, response.read().decode(), {name.lower(): text for name, text in response.getheaders()})
    finally:
        connection.close()


class TrafficConformance:
    """Needs the fixtures ``make_driver``, ``handler`` and ``device``; the device carries traffic of this host."""

    @pytest.fixture
    def address(self) -> str:
        """An address that VIPs may take and that this host reaches; the suite picks free ports on it."""
        return documents.LOOPBACK

    @pytest.fixture
    def backend_address(self) -> str:
        """An address of this host that the device reaches."""
        return documents.LOOPBACK

    @pytest.fixture
    def send(self) -> Sender:
        """How to send a request through a VIP. Default: straight from this host."""
        return send

    @pytest.fixture
    def driver(self, make_driver: Callable[[], AgentDriver], device: Device) -> Iterator[AgentDriver]:
        driver = make_driver()
        yield driver
        driver.remove(device, list(driver.list_deployed(device)))
        driver.stop()

    @pytest.fixture
    def backends(self, backend_address: str) -> Iterator[list[Backend]]:
        servers = [Backend(documents.new_id(), backend_address) for _ in range(3)]
        yield servers
        for server in servers:
            server.close()

    @pytest.fixture
    def web(self, address: str, backends: list[Backend]) -> Vip:
        """An HTTP VIP over all backends, without a monitor."""
        return vip(address, protocol=Protocol.HTTP, members=tuple(server.member() for server in backends))

    @pytest.mark.parametrize("protocol", Protocol)
    def test_requests_reach_every_member(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, web: Vip, send: Sender, protocol: Protocol
    ) -> None:
        if f"PROTOCOL_{protocol}" not in handler.traits:
            pytest.skip(f"the handler does not declare PROTOCOL_{protocol}")
        document = with_pool(replace(web, protocol=protocol), protocol=protocol)
        assert driver.apply(device, [deployment(document)])[0].error is None
        assert set(spread(send, document, 30)) == {item.id for item in web.pool.members}

    def test_weights_shift_the_load_and_weight_0_takes_nothing_new(
        self, driver: AgentDriver, device: Device, web: Vip, send: Sender
    ) -> None:
        weights = dict(zip((item.id for item in web.pool.members), (0, 1, 4), strict=True))
        members = tuple(replace(item, weight=weights[item.id]) for item in web.pool.members)
        driver.apply(device, [deployment(with_pool(web, members=members))])
        none, light, heavy = (spread(send, web, 50)[item.id] for item in web.pool.members)
        assert none == 0
        assert 5 <= light <= 15
        assert heavy == 50 - light

    def test_a_member_that_is_switched_off_takes_nothing(
        self, driver: AgentDriver, device: Device, web: Vip, send: Sender
    ) -> None:
        driver.apply(device, [deployment(web)])
        off, *on = web.pool.members
        driver.apply(device, [deployment(with_pool(web, members=(replace(off, admin_state_up=False), *on)), 1, 2)])
        assert set(spread(send, web, 20)) == {item.id for item in on}

    def test_a_vip_that_is_switched_off_refuses_connections(
        self, driver: AgentDriver, device: Device, web: Vip, send: Sender
    ) -> None:
        driver.apply(device, [deployment(web)])
        driver.apply(device, [deployment(replace(web, admin_state_up=False), 1, 2)])
        with pytest.raises(OSError):  # noqa: PT011 - refused, reset or unreachable: the device decides
            send(web)
        driver.apply(device, [deployment(web, 1, 3)])
        assert send(web).status == 200

    def test_a_removed_vip_refuses_connections(self, driver: AgentDriver, device: Device, web: Vip, send: Sender) -> None:
        neighbour = replace(web, id=documents.new_id(), protocol_port=documents.free_port(web.address))
        driver.apply(device, [deployment(web), deployment(neighbour)])
        driver.remove(device, [web.id])
        with pytest.raises(OSError):  # noqa: PT011 - as above
            send(web)
        assert send(neighbour).status == 200

    def test_a_pool_that_is_switched_off_or_empty_answers_503(
        self, driver: AgentDriver, device: Device, web: Vip, send: Sender
    ) -> None:
        driver.apply(device, [deployment(with_pool(web, admin_state_up=False))])
        assert send(web).status == 503
        driver.apply(device, [deployment(web, 1, 2)])
        assert send(web).status == 200
        driver.apply(device, [deployment(with_pool(web, members=()), 1, 3)])
        assert send(web).status == 503

    @pytest.mark.parametrize("method", Method)
    def test_every_method_serves(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, web: Vip, send: Sender, method: Method
    ) -> None:
        if f"METHOD_{method}" not in handler.traits:
            pytest.skip(f"the handler does not declare METHOD_{method}")
        driver.apply(device, [deployment(with_pool(web, lb_method=method))])
        members = len(spread(send, web, 20))
        assert members == 1 if method is Method.SOURCE_IP else members >= 1

    @pytest.mark.parametrize("protocol", [Protocol.TCP, Protocol.HTTP])
    def test_persistence_by_source_address_keeps_a_client_on_its_member(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, web: Vip, send: Sender, protocol: Protocol
    ) -> None:
        if traits.PERSISTENCE_SOURCE_IP not in handler.traits:
            pytest.skip("the handler does not declare PERSISTENCE_SOURCE_IP")
        document = with_pool(replace(web, protocol=protocol), protocol=protocol)
        document = replace(document, session_persistence=documents.persistence(Persistence.SOURCE_IP))
        driver.apply(device, [deployment(document)])
        assert len(spread(send, document, 20)) == 1

    def test_persistence_by_cookie_keeps_a_client_on_its_member(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, web: Vip, send: Sender
    ) -> None:
        if traits.PERSISTENCE_HTTP_COOKIE not in handler.traits:
            pytest.skip("the handler does not declare PERSISTENCE_HTTP_COOKIE")
        driver.apply(device, [deployment(replace(web, session_persistence=documents.persistence(Persistence.HTTP_COOKIE)))])
        first = send(web)
        cookie = first.headers["set-cookie"].partition(";")[0]
        assert {send(web, {"Cookie": cookie}).body for _ in range(15)} == {first.body}
        assert len(spread(send, web, 15)) == 3

    def test_a_member_that_fails_its_check_takes_nothing_until_it_is_well(
        self, driver: AgentDriver, handler: DeviceHandler, device: Device, web: Vip, send: Sender, backends: list[Backend]
    ) -> None:
        if traits.MONITOR_HTTP not in handler.traits:
            pytest.skip("the handler does not declare MONITOR_HTTP")
        driver.apply(device, [deployment(with_pool(web, health_monitors=(monitor(MonitorType.HTTP),)))])
        ill = backends[0]
        ill.healthy = False
        wait_until(lambda: driver.read_stats(device)[web.id].members[ill.name].up is False)
        assert ill.name not in spread(send, web, 20)
        ill.healthy = True
        wait_until(lambda: driver.read_stats(device)[web.id].members[ill.name].up is True)
        wait_until(lambda: send(web).body == ill.name)

    def test_stats_count_what_passed(self, driver: AgentDriver, device: Device, web: Vip, send: Sender) -> None:
        driver.apply(device, [deployment(web)])
        before = driver.read_stats(device)[web.id]
        for _ in range(10):
            send(web)
        wait_until(lambda: driver.read_stats(device)[web.id].total_connections >= before.total_connections + 10)
        after = driver.read_stats(device)[web.id]
        assert after.bytes_in - before.bytes_in > 10 * len("GET / HTTP/1.1")
        assert after.bytes_out - before.bytes_out > 10 * len("HTTP/1.1 200 OK")

    def test_no_request_fails_while_members_weights_vip_and_neighbours_change(
        self,
        driver: AgentDriver,
        handler: DeviceHandler,
        device: Device,
        web: Vip,
        send: Sender,
        backends: list[Backend],
    ) -> None:
        driver.apply(device, [deployment(web)])
        neighbour = replace(web, id=documents.new_id(), protocol_port=documents.free_port(web.address))
        for server in backends:
            server.delay_seconds = THINKING_SECONDS
        with load(send, web) as outcomes:
            for change in range(CHANGES):
                document = changed(web, change, handler.traits)
                assert driver.apply(device, [deployment(document, 1, change + 2)])[0].ok
                assert driver.apply(device, [deployment(neighbour, change + 1)])[0].ok
                assert driver.remove(device, [neighbour.id])[0].ok
        assert sum(outcomes.values()) > CONNECTIONS
        assert set(outcomes) == {"200"}


def changed(web: Vip, change: int, declared: frozenset[str]) -> Vip:
    """The VIP after the ``change``-th change of its members and weights, of its method, and now and then of itself."""
    members = tuple(replace(item, weight=1 + change) for item in web.pool.members[: 1 + change % 3])
    methods = [method for method in Method if f"METHOD_{method}" in declared]
    sticky = [kind for kind in (Persistence.SOURCE_IP, Persistence.HTTP_COOKIE) if f"PERSISTENCE_{kind}" in declared]
    kinds = [None, None, *sticky]
    document = with_pool(web, members=members, lb_method=methods[change % len(methods)])
    return replace(document, session_persistence=documents.persistence(kinds[change % len(kinds)]))


def spread(send: Sender, document: Vip, requests: int) -> Counter[str]:
    """How many of ``requests`` each backend answered; all must succeed."""
    replies = [send(document) for _ in range(requests)]
    assert {reply.status for reply in replies} == {200}
    return Counter(reply.body for reply in replies)


def wait_until(holds: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    """Wait for a condition; fail when it does not hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        time.sleep(0.05)


@contextmanager
def load(send: Sender, document: Vip, connections: int = CONNECTIONS) -> Iterator[Counter[str]]:
    """Keep ``connections`` requests going; afterwards the counter holds how often each status, or error, came."""
    outcomes: Counter[str] = Counter()
    over = threading.Event()

    def client() -> Counter[str]:
        seen: Counter[str] = Counter()
        while not over.is_set():
            try:
                seen[str(send(document).status)] += 1
            except (OSError, http.client.HTTPException) as error:
                seen[repr(error)] += 1
        return seen

    with ThreadPoolExecutor(connections) as pool:
        clients: list[Future[Counter[str]]] = [pool.submit(client) for _ in range(connections)]
        try:
            yield outcomes
        finally:
            over.set()
        for future in clients:
            outcomes.update(future.result())
