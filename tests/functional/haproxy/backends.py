"""HTTP servers on loopback that answer with their name and remember what they were asked."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lbaas_scheduler.domain.loadbalancers import Member
from lbaas_scheduler.sdk.conformance import documents


class Backend:
    """``statuses``: path → status of the answer, 200 for the rest. ``hangs_up``: closes instead of answering."""

    def __init__(self, name: str, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.name = name
        self.statuses: dict[str, int] = {}
        self.hangs_up = False
        self.headers: Mapping[str, str] = {}
        self.requests: list[tuple[str, str, Mapping[str, str]]] = []
        """Method, path and headers."""
        self.release = threading.Event()
        """A GET of /slow is answered once it is set."""
        self._server = _server(address)((address, 0), _handler(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.address, self.port = self._server.server_address[:2]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def member(self, **changes: object) -> Member:
        return documents.member(str(self.address), int(self.port), id=self.name, **changes)

    @property
    def paths(self) -> set[str]:
        return {path for _, path, _ in self.requests}

    def close(self) -> None:
        self.release.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


def _server(address: str) -> type[ThreadingHTTPServer]:
    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up is no news: health checks do."""

    return Server


def _handler(backend: Backend) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            backend.requests.append((self.command, self.path, dict(self.headers)))
            if backend.hangs_up:
                self.close_connection = True
                return
            if self.path == "/slow":
                backend.release.wait(20)
            body = backend.name.encode()
            self.send_response(backend.statuses.get(self.path, 200))
            for name, value in backend.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    return Handler
