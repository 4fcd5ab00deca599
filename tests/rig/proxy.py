"""A way to a TCP service that can be broken as networks break."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Hands connections on to a port of the loopback. As a black hole it keeps them, takes new ones, and lets nothing through."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._passes = threading.Event()
        self._passes.set()
        self._sockets: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def swallow(self) -> None:
        """Become a black hole."""
        self._passes.clear()

    def pass_on(self) -> None:
        """Be a way again; what was sent meanwhile arrives."""
        self._passes.set()

    def close(self) -> None:
        """For good, with all connections."""
        self._passes.set()
        for each in (self._listener, *self._sockets):
            # Closing alone would not wake up who waits in accept or recv.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._sockets.append(near)
                self._start(self._connect, near)

    def _connect(self, near: socket.socket) -> None:
        self._passes.wait()
        try:
            far = socket.create_connection(self._target)
        except OSError:
            near.close()
            return
        self._sockets.append(far)
        for source, sink in ((near, far), (far, near)):
            self._start(self._pump, source, sink)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._passes.wait()
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _start(self, run: object, *arguments: object) -> None:
        threading.Thread(target=run, args=arguments, name="proxy", daemon=True).start()  # type: ignore[arg-type]
