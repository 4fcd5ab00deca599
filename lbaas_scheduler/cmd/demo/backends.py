"""Real HTTP servers on the loopback, to be balanced."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Backend:
    """Answers every GET with its own name. Can be stopped and started again on the same address.

    :param name: what it answers with.
    :param address: a loopback address; the port is chosen at the first start.
    """

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        self._server = _Server((self.address, self.port), _handler(self.name))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name=self.name, daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on. May be called twice."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def _handler(name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = name.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: the demo's output is not a web server's log."""

    return Handler
